"""The quickstart gives what its page says, verifies, and its tasks pass their own check."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from real_runs import Proctor, proctor

QUICKSTART = Path(__file__).resolve().parents[2] / "examples/quickstart"
ARMS = ("no-skill", "with-skill")

__all__ = ["proctor"]
pytestmark = pytest.mark.real


def expected() -> dict[tuple[str, str], str]:
    """The table of the quickstart's page: a grade by task and arm."""
    text = (QUICKSTART / "README.md").read_text()
    rows = re.findall(r"^\| ([a-z-]+) \| (pass|fail) \| (pass|fail) \|", text, re.M)
    return {(f"quickstart/{row[0]}", arm): grade for row in rows for arm, grade in zip(ARMS, row[1:], strict=True)}


def passed() -> dict[str, int]:
    """How many questions pass in each arm, by the same page."""
    found = re.search(r"^\| all twenty \| (\d+) pass \| (\d+) pass \|", (QUICKSTART / "README.md").read_text(), re.M)
    assert found is not None
    return dict(zip(ARMS, map(int, found.groups()), strict=True))


def test_grades_are_those_of_the_page_and_verify(proctor: Proctor, tmp_path: Path) -> None:
    run = tmp_path / "run"
    status, said = proctor("run", QUICKSTART / "study.toml", "--out", run, "--waive", "git_dirty", "--quiet")
    assert status == 0, said
    status, rows = proctor("results", run, "--jsonl")
    grades = [((row["task"], row["arm"]), row["grade"]) for row in map(json.loads, rows.splitlines())]
    wanted = expected()
    assert len(wanted) == 10
    assert sorted(each for each in grades if each[0] in wanted) == sorted(wanted.items())
    questions = [(arm, grade) for (task, arm), grade in grades if (task, arm) not in wanted]
    assert len(questions) == 40
    assert {arm: questions.count((arm, "pass")) for arm in ARMS} == passed()
    assert {grade for _, grade in questions} == {"pass", "fail"}
    proctor.check(run)


def test_every_task_passes_with_its_solution_and_fails_without(proctor: Proctor) -> None:
    tasks = sorted((QUICKSTART / "tasks").iterdir())
    status, said = proctor("tasks", "check", *tasks)
    assert status == 0, said
