"""Whatever step of a rollout fails, and however, the attempt ends on the record once, and a resume completes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fake_worlds import ABORTS, TROUBLE, Bench, Steps, bodies, check_record, entries, write_study
from proctor.core.exits import Exit
from proctor.evidence.kinds import Kind
from proctor.report.progress import Progress

STEPS = 16
POSTS = 17


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(write_study(tmp_path / "study"), monkeypatch)


async def test_every_step_is_known(bench: Bench, tmp_path: Path) -> None:
    steps, journal = Steps(), Steps()
    assert await bench.run(tmp_path / "run", steps, journal=journal) is Exit.DONE
    assert (steps.done, journal.done) == (STEPS, POSTS), (steps.names, journal.names)
    check_record(tmp_path / "run")


@pytest.mark.parametrize("at", range(1, STEPS + 1))
@pytest.mark.parametrize("how", TROUBLE)
async def test_a_step_that_fails_ends_its_attempt_and_not_the_run(
    bench: Bench, tmp_path: Path, how: str, at: int
) -> None:
    run = tmp_path / "run"
    status = await bench.run(run, Steps(at, how))
    check_record(run)
    assert not bench.kind.live
    ends = [(body["outcome"], body["exception"]) for body in bodies(run, Kind.ATTEMPT_ENDED)]
    if how == "finds no room":
        assert (status, ends) == (Exit.INFRASTRUCTURE, [("interrupted", "disk_full")])
        assert await bench.run(run, resume=True) is Exit.DONE
        check_record(run)
    else:
        exception = "sandbox_lost" if how == "refuses" else "internal_error"
        assert (status, ends) == (Exit.DONE, [("infrastructure", exception), ("completed", None)])
    (final,) = bodies(run, Kind.TRIAL_FINAL)
    assert (final["grade"], final["attempt"][-2:]) == ("pass", "/1")
    last = bodies(run, Kind.ATTEMPT_ADMITTED)[-1]
    assert (last["replaces"] is None, last["supersedes"] is None) == (how == "finds no room", how != "finds no room")


@pytest.mark.parametrize("at", range(1, STEPS + 1))
@pytest.mark.parametrize("how", ABORTS)
async def test_an_abort_during_any_step_is_resumed(bench: Bench, tmp_path: Path, how: str, at: int) -> None:
    run = tmp_path / "run"
    assert await bench.run(run, Steps(at, how)) is Exit.TERMINATED
    check_record(run)
    assert not bench.kind.live
    assert [body["outcome"] for body in bodies(run, Kind.ATTEMPT_ENDED)] == ["interrupted"]
    await _resumed(bench, run, replaced=False)


@pytest.mark.parametrize("at", range(1, POSTS + 1))
async def test_an_abort_after_any_entry_is_resumed(bench: Bench, tmp_path: Path, at: int) -> None:
    run = tmp_path / "run"
    journal = Steps(at)
    assert await bench.run(run, journal=journal) is Exit.TERMINATED
    check_record(run)
    assert not bench.kind.live
    await _resumed(bench, run, replaced=False)


async def _resumed(bench: Bench, run: Path, *, replaced: bool) -> None:
    ended = entries(run)[-1].body
    if ended["complete"]:
        return
    assert await bench.run(run, resume=True) is Exit.DONE
    check_record(run)
    (final,) = bodies(run, Kind.TRIAL_FINAL)
    assert final["grade"] == "pass"
    graded = [body["attempt"] for body in bodies(run, Kind.ATTEMPT_GRADED)]
    assert graded == [final["attempt"]], "what was graded is not run again"
    assert any(body["replaces"] for body in bodies(run, Kind.ATTEMPT_ADMITTED)) is replaced


async def test_a_disk_that_is_full_from_any_operation_on_is_resumed(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Steps()
    assert await bench.run(tmp_path / "whole", disk=seen) is Exit.DONE
    for at in range(1, seen.done + 1):
        run = tmp_path / str(at)
        status = await bench.run(run, disk=Steps(at))
        check_record(run)
        assert not bench.kind.live
        assert status in (Exit.INFRASTRUCTURE, Exit.DONE), seen.names[at - 1]
        if status is Exit.INFRASTRUCTURE:
            assert entries(run)[-1].body["reason"] == "disk_full"
            await _resumed(bench, run, replaced=False)


async def test_an_entry_that_is_too_large_ends_its_attempt_and_not_the_run(bench: Bench, tmp_path: Path) -> None:
    run = tmp_path / "run"
    bench.prepare = lambda kind: setattr(kind, "facts", {"kind": "namespace", "tier": "x" * 70_000})
    assert await bench.run(run) is Exit.DOES_NOT_HOLD
    check_record(run)
    ends = [(body["outcome"], body["exception"]) for body in bodies(run, Kind.ATTEMPT_ENDED)]
    assert ends == [("infrastructure", "entry_too_large")] * 2
    assert [body["reason"] for body in bodies(run, Kind.TRIAL_FINAL)] == ["entry_too_large"]


async def test_a_failing_display_ends_an_attempt_at_most(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"

    def broken(*_: object) -> None:
        raise SystemExit(1)

    monkeypatch.setattr(Progress, "phase", broken)
    assert await bench.run(run) in (Exit.DOES_NOT_HOLD, Exit.INFRASTRUCTURE)
    check_record(run)


async def test_a_disk_that_gets_full_in_a_later_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier end had written stands there, and does not say what the journal says now."""
    bench = Bench(write_study(tmp_path / "study", arms=2), monkeypatch)
    first = tmp_path / "first"
    assert await bench.run(first, Steps(20, "is aborted")) is Exit.TERMINATED
    seen = Steps()
    shutil.copytree(first, tmp_path / "whole")
    assert await bench.run(tmp_path / "whole", resume=True, disk=seen) is Exit.DONE
    for at in range(1, seen.done + 1):
        run = tmp_path / str(at)
        shutil.copytree(first, run)
        status = await bench.run(run, resume=True, disk=Steps(at))
        check_record(run)
        if status is Exit.INFRASTRUCTURE and not entries(run)[-1].body["complete"]:
            assert await bench.run(run, resume=True) is Exit.DONE, seen.names[at - 1]
            check_record(run)
        assert {body["grade"] for body in bodies(run, Kind.TRIAL_FINAL)} == {"pass"}
