"""proctor tasks check: what fails says what was printed last, and the command that prints the rest."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from real_runs import Proctor, proctor, write_task

__all__ = ["proctor"]
pytestmark = pytest.mark.real
WRONG = "echo first; echo 'the answer is not there'; echo 0 > /logs/verifier/reward.txt\n"
LATE = "echo right > /app/answer; sleep 300\n"


def test_a_solution_that_fails_shows_what_to_read(proctor: Proctor, tmp_path: Path) -> None:
    task = write_task(tmp_path / "one", tests=WRONG)
    status, said = proctor("tasks", "check", task, "--out", tmp_path / "checks")
    assert status == 3 and "task_solution_fails" in said and f"checking {task}" in said
    assert "the last line that its tests printed: the answer is not there" in said
    (typed,) = re.findall(r"do: .*`(.*)` prints", said)
    words = shlex.split(typed)
    status, printed = proctor(*words[words.index("logs") :])
    assert status == 0 and "first\nthe answer is not there" in printed


def test_a_solution_that_passes_late_is_noted(proctor: Proctor, tmp_path: Path) -> None:
    task = write_task(tmp_path / "one", toml="[agent]\ntimeout_sec = 8.0\n")
    (task / "solution/solve.sh").write_text(LATE)
    status, said = proctor("tasks", "check", task, "--out", tmp_path / "checks")
    assert status == 0 and "own solution: pass" in said
    assert "note: its own solution ended by agent_timeout" in said
