"""Models that work in sandboxes: over HTTP in each format, and until their money has run out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from provider_runs import KEY, VARIABLE, model, provider
from real_runs import Leftovers, Proctor, bodies, ended, finals, proctor, write_task

from money_runs import Plan, check_money, dear, write_study
from proctor.core.money import Usd
from proctor.evidence.kinds import Kind
from scripted_provider import USAGE, ScriptedProvider

__all__ = ["proctor", "provider"]
pytestmark = pytest.mark.real

QUICKSTART = Path(__file__).resolve().parents[2] / "examples/quickstart"


def test_a_ceiling_in_the_middle_of_a_conversation(proctor: Proctor, tmp_path: Path) -> None:
    tasks = len(list((QUICKSTART / "tasks").iterdir()))
    study = write_study(
        tmp_path / "study",
        tasks=str(QUICKSTART / "tasks"),
        # 1,000 are held for an answer, of which some tens are charged
        models={"luna": dear("luna", "luna", most=1_000)},
        money=Plan({"luna": "100"}, allocation="1300", margin="100"),
        blocks=tasks,
        arms="[arms.plain]\n",
        agent='name = "toolloop"\ntimeout = "10m"\n[agent.settings]\nsteps = 12\n',
        grading="",
        stage="lanes = 1\n",
    )
    left, run = Leftovers(), tmp_path / "run"
    status, said = proctor("run", study, "--out", run, "--waive", "git_dirty", "--quiet")
    assert (status, ended(run)["reason"]) == (4, "ceiling_reached"), said
    proctor.check(run)
    check_money(run)
    left.check(run)
    (met,) = [body for body in bodies(run, Kind.ATTEMPT_ENDED) if body["exception"] is not None]
    assert (met["outcome"], met["exception"]) == ("completed", "ceiling_reached")
    paid = [body for body in bodies(run, Kind.EXCHANGE_ENDED) if body["attempt"] == met["attempt"]]
    assert paid, "it was met in the middle"
    (graded,) = [body for body in bodies(run, Kind.ATTEMPT_GRADED) if body["attempt"] == met["attempt"]]
    assert (graded["grade"], graded["reason"], graded["assurance"]) == ("ungraded", "ceiling_reached", None)
    rows = [json.loads(line) for line in proctor("results", run, "--jsonl")[1].splitlines()]
    assert len(rows) == tasks
    assert {row["reason"] for row in rows if row["grade"] == "ungraded"} == {"ceiling_reached", "not_run"}
    before = check_money(run)
    status, said = proctor("resume", run, "--waive", "git_dirty", "--quiet")
    assert (status, ended(run)["reason"], check_money(run)) == (4, "ceiling_reached", before), said
    proctor.check(run)


def test_each_format_works_in_a_sandbox(proctor: Proctor, provider: ScriptedProvider, tmp_path: Path) -> None:
    proctor.env[VARIABLE] = KEY
    formats = ("chat", "anthropic", "gemini")
    study = write_study(
        tmp_path / "study",
        tasks="tasks",
        models={name: model(name, f"{provider.url}/{name}", name) for name in formats},
        money=Plan(dict.fromkeys(formats, "1000"), allocation="60000", margin="60000"),
        blocks=1,
        grading="",
    )
    write_task(study.parent / "tasks/one")
    left, run = Leftovers(), tmp_path / "run"
    status, said = proctor("run", study, "--out", run, "--waive", "git_dirty", "--yes", "--quiet")
    assert status == 0, said
    proctor.check(run)
    left.check(run)
    assert {grade for grade, _, _ in finals(run).values()} == {"pass"}
    # a call of the shell, and the last word
    assert check_money(run).total == Usd(len(formats) * 2 * sum(USAGE) * 10**12)
    for name in formats:
        assert [asked.key for asked in provider.of(name)] == [KEY] * 2
    shown = [proctor("show", run, trial, "--full")[1] for trial in finals(run)]
    assert all("/app/answer" in text for text in shown), shown
    assert not [path for path in run.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
