"""A run whose disk is full ends on the record, verifies, and is resumed once there is room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from real_runs import (
    ENOUGH_SEC,
    WORD,
    Held,
    Leftovers,
    Proctor,
    bodies,
    ended,
    has_entry,
    outcomes,
    proctor,
    until,
    write_study,
)
from small_disks import fill, mounted

from proctor.evidence.kinds import Kind

__all__ = ["proctor"]
pytestmark = pytest.mark.real


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path, "48m")


def resumed(proctor: Proctor, run: Path) -> None:
    status, said = proctor("resume", run, "--waive", "git_dirty", "--quiet")
    assert status == 0, said
    proctor.check(run)
    assert ended(run)["totals"] == {"trials": 4, "finals": 4, "pass": 4, "fail": 0, "ungraded": 0}
    assert [body for body in bodies(run, Kind.ATTEMPT_ADMITTED) if body["replaces"]] == []


def test_a_disk_that_othersfill(proctor: Proctor, small_disk: Path) -> None:
    left, run, held = Leftovers(), small_disk / "run", Held()
    study = write_study(
        proctor.home / "study",
        command=f"echo right > /app/answer; {held.command}; head -c 300000 /dev/urandom",
        tasks={f"t{number}": WORD for number in range(4)},
        stage="lanes = 2\n",
    )
    process = proctor.start("run", study, "--out", run, "--waive", "git_dirty", "--quiet")
    until("two agents work", lambda: process.poll() is not None or has_entry(run, Kind.AGENT_STARTED, 2)())
    fill(small_disk / "others")
    with held.going(), process:
        said = process.communicate(timeout=ENOUGH_SEC)[0]
    assert process.returncode == 5, said
    assert (ended(run)["exit_status"], ended(run)["reason"]) == (5, "disk_full"), said
    assert outcomes(run) == {"interrupted": 2}
    left.check(run)

    with held.going():
        status, said = proctor("resume", run, "--waive", "git_dirty", "--json")
    # what the run itself gave back may be enough to be admitted, and is not enough to work
    assert (status in (3, 5), "disk_full" in said) == (True, True), said
    proctor.check(run)
    (small_disk / "others").unlink()
    with held.going():
        resumed(proctor, run)
    left.check(run)


def test_a_disk_that_agentsfill(proctor: Proctor, small_disk: Path) -> None:
    """Without a storage limit an agent can take all the room there is: it is told so, and the run goes on or stops."""
    left, run = Leftovers(), small_disk / "run"
    study = write_study(
        proctor.home / "study", command="echo right > /app/answer; cat /dev/zero > /app/big", stage="replacements = 0\n"
    )
    status, said = proctor("run", study, "--out", run, "--waive", "git_dirty", "--quiet")
    assert status in (0, 5), said
    assert ended(run)["exit_status"] == status
    proctor.check(run)
    left.check(run)


def test_no_room_for_a_run_at_all(proctor: Proctor, small_disk: Path) -> None:
    fill(small_disk / "others")
    study = write_study(proctor.home / "study")
    status, said = proctor("run", study, "--out", small_disk / "run", "--waive", "git_dirty", "--json")
    assert (status, "disk_full" in said) == (3, True), said
