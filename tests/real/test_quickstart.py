"""The quickstart gives what its page says, verifies, and its tasks pass their own check."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from real_runs import Proctor, proctor

QUICKSTART = Path(__file__).resolve().parents[2] / "examples/quickstart"

__all__ = ["proctor"]
pytestmark = pytest.mark.real


def expected() -> dict[tuple[str, str], str]:
    """The table of the quickstart's page: a grade by task and arm."""
    text = (QUICKSTART / "README.md").read_text()
    rows = re.findall(r"^\| ([a-z-]+) \| (pass|fail) \| (pass|fail) \|", text, re.M)
    return {
        (f"quickstart/{row[0]}", arm): grade
        for row in rows
        for arm, grade in zip(("no-skill", "with-skill"), row[1:], strict=True)
    }


def test_grades_are_those_of_the_page_and_verify(proctor: Proctor, tmp_path: Path) -> None:
    run = tmp_path / "run"
    status, said = proctor("run", QUICKSTART / "study.toml", "--out", run, "--waive", "git_dirty", "--quiet")
    assert status == 0, said
    status, rows = proctor("results", run, "--jsonl")
    grades = [((row["task"], row["arm"]), row["grade"]) for row in map(json.loads, rows.splitlines())]
    wanted = expected()
    assert len(wanted) == 10
    assert sorted(grades) == sorted(list(wanted.items()) * 2)
    proctor.check(run)


def test_every_task_passes_with_its_solution_and_fails_without(proctor: Proctor) -> None:
    tasks = sorted((QUICKSTART / "tasks").iterdir())
    status, said = proctor("tasks", "check", *tasks)
    assert status == 0, said
