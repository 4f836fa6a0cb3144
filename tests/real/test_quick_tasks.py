"""The project's own tasks as a study, under the agents without a model: its solution passes, doing nothing fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from real_runs import Proctor, bodies, finals, proctor

from proctor.evidence.kinds import Kind

__all__ = ["proctor"]
pytestmark = pytest.mark.real

TASKS = Path(__file__).resolve().parents[2] / "examples/quickstart/tasks"


@pytest.mark.parametrize(("agent", "grade"), [("oracle", "pass"), ("nop", "fail")])
def test_every_task_of_the_project_ends_as_it_must(proctor: Proctor, agent: str, grade: str) -> None:
    study, run = proctor.home / "study.toml", proctor.home / "run"
    study.write_text(
        f'[study]\nname = "own"\n[tasks]\npath = {json.dumps(str(TASKS))}\n[draw]\nseed = 7\n'
        f'[agent]\nname = "{agent}"\n[sandbox]\nkind = "namespace"\nnetwork = "none"\n'
        '[arms.plain]\n[stages.main]\ntype = "standard"\narms = ["plain"]\nlanes = 2\n'
    )
    status, said = proctor("run", study, "--out", run, "--quiet")
    assert status == 0, said
    proctor.check(run)
    tried = [body["task"] for body in bodies(run, Kind.ATTEMPT_ADMITTED)]
    assert len(tried) == len(list(TASKS.iterdir())) >= 4
    assert [final[0] for final in finals(run).values()] == [grade] * len(tried)
