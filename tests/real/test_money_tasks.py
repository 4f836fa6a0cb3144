"""Task folders whose model runs out of money: the attempt that meets the ceiling is over, and its world with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from real_runs import Leftovers, Proctor, bodies, ended, proctor

from money_runs import Plan, check_money, dear, write_study
from proctor.evidence.kinds import Kind

__all__ = ["proctor"]
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
        agent='name = "toolloop"\ntimeout = "1m"\n[agent.settings]\nsteps = 12\n',
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
