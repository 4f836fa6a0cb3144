"""Several processes that start at the same time: each task gets a folder of its own, and a folder one run."""

from __future__ import annotations

import json
import subprocess

import pytest
from real_runs import ENOUGH_SEC, Leftovers, Proctor, ended, proctor, write_study, write_task

__all__ = ["proctor"]
pytestmark = pytest.mark.real

AT_ONCE = 4


def all_at_once(proctor: Proctor, *words: object) -> list[tuple[int, str]]:
    """The same words, several times at once: exit statuses, and what was said."""
    started: list[subprocess.Popen[str]] = [proctor.start(*words) for _ in range(AT_ONCE)]
    ends = []
    for process in started:
        with process:
            said = process.communicate(timeout=ENOUGH_SEC)[0]
        ends.append((process.returncode, said))
    return ends


def test_one_task_started_several_times_at_once(proctor: Proctor) -> None:
    task, left = write_task(proctor.home / "task"), Leftovers()
    ends = all_at_once(proctor, "run", "--task", task, "--agent", "oracle", "--quiet")
    assert [status for status, _ in ends] == [0] * AT_ONCE, ends
    runs = sorted((proctor.home / "runs/task-oracle").iterdir())
    assert [run.name for run in runs] == [f"{number:03d}" for number in range(1, AT_ONCE + 1)]
    for run in runs:
        assert ended(run)["totals"]["pass"] == 1
        assert len(list((run / "manifests").iterdir())) == 1
        proctor.check(run)
        left.check(run)


def test_one_folder_for_several_runs_at_once(proctor: Proctor) -> None:
    study, run, left = write_study(proctor.home / "study"), proctor.home / "run", Leftovers()
    ends = all_at_once(proctor, "run", study, "--out", run, "--quiet")
    assert sorted(status for status, _ in ends) == [0] + [3] * (AT_ONCE - 1), ends
    manifests = [json.loads(path.read_bytes()) for path in sorted((run / "manifests").iterdir())]
    assert sorted(manifest["verdict"] for manifest in manifests) == ["admitted"] + ["refused"] * (AT_ONCE - 1)
    said = {refusal["reason"] for manifest in manifests for refusal in manifest["refusals"]}
    assert said <= {"run_locked", "run_exists"} and said
    proctor.check(run)
    left.check(run)


def test_one_run_gone_on_with_several_times_at_once(proctor: Proctor) -> None:
    study, run, left = write_study(proctor.home / "study"), proctor.home / "run", Leftovers()
    status, said = proctor("run", study, "--out", run, "--prepare-only", "--quiet")
    assert status in (0, 4), said
    ends = all_at_once(proctor, "resume", run, "--quiet")
    assert sorted(status for status, _ in ends) == [0] + [3] * (AT_ONCE - 1), ends
    assert ended(run)["totals"]["pass"] == 1
    proctor.check(run)
    left.check(run)
