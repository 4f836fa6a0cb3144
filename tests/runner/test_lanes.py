"""The schedule: what runs next, how often, what stops it, and that any prefix of its record can be gone on from."""

from __future__ import annotations

import asyncio
import io
import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fake_worlds import Bench, bodies, check_record, entries, write_study
from proctor.admission.finish import Stop
from proctor.core.exits import Exit
from proctor.core.outcomes import SUPERSEDED, Outcome
from proctor.core.reasons import Reason
from proctor.evidence.anchors.places import AnchorKind
from proctor.evidence.fold import RunState
from proctor.evidence.kinds import Kind
from proctor.grading.grade import ungraded
from proctor.report.progress import Progress
from proctor.rollout.job import Result
from proctor.runner.gate import Gate
from proctor.runner.lanes import Lanes
from proctor.sandbox.base import Exec
from proctor.study.plan import Block, Plan, Trial


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(write_study(tmp_path / "study", tasks=2, arms=2), monkeypatch)


def finals(run: Path) -> dict[str, tuple[str, str | None]]:
    return {body["trial"]: (body["grade"], body["reason"]) for body in bodies(run, Kind.TRIAL_FINAL)}


async def test_blocks_run_in_the_drawn_order_with_all_their_arms(make: Bench, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert await make.run(run) is Exit.DONE
    check_record(run)
    assert [body["block"] for body in bodies(run, Kind.BLOCK_ADMITTED)] == [0, 1]
    assert sorted(body["block"] for body in bodies(run, Kind.BLOCK_ENDED)) == [0, 1]
    assert Counter(body["block"] for body in bodies(run, Kind.ATTEMPT_ADMITTED)) == {0: 2, 1: 2}


@pytest.mark.parametrize("replacements", [0, 1, 3])
async def test_infrastructure_is_replaced_up_to_the_bound_and_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replacements: int
) -> None:
    bench, run = Bench(write_study(tmp_path / "study", replacements=replacements), monkeypatch), tmp_path / "run"
    bench.prepare = lambda kind: setattr(kind, "refusal", Reason.SANDBOX_START_FAILED)
    assert await bench.run(run) is Exit.DOES_NOT_HOLD
    check_record(run)
    admitted = bodies(run, Kind.ATTEMPT_ADMITTED)
    assert [body["replaces"] for body in admitted] == [None, *[body["attempt"] for body in admitted[:-1]]]
    assert len(admitted) == 1 + replacements
    assert list(finals(run).values()) == [("ungraded", "sandbox_start_failed")]


@pytest.mark.parametrize("reason", [Reason.IMAGE_MISSING, Reason.IMAGE_MOVED, Reason.IMAGE_BUILD_FAILED])
async def test_what_is_for_want_of_an_image_is_not_replaced(make: Bench, tmp_path: Path, reason: Reason) -> None:
    run = tmp_path / "run"
    make.prepare = lambda kind: setattr(kind, "refusal", reason)
    assert await make.run(run) is Exit.DOES_NOT_HOLD
    check_record(run)
    assert [body["replaces"] for body in bodies(run, Kind.ATTEMPT_ADMITTED)] == [None] * 4
    assert set(finals(run).values()) == {("ungraded", reason.id)}


async def test_what_would_end_every_attempt_stops_the_schedule_and_costs_no_replacement(
    make: Bench, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    make.prepare = lambda kind: setattr(kind, "refusal", Reason.SANDBOX_UNAVAILABLE)
    assert await make.run(run) is Exit.INFRASTRUCTURE
    check_record(run)
    assert entries(run)[-1].body["reason"] == "sandbox_unavailable"
    assert len(bodies(run, Kind.ATTEMPT_ADMITTED)) <= 2
    make.prepare = lambda kind: None
    assert await make.run(run, resume=True) is Exit.DONE
    check_record(run)
    assert [body for body in bodies(run, Kind.ATTEMPT_ADMITTED) if body["replaces"]] == []


async def test_any_prefix_of_the_record_is_gone_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a kill at any moment: what was final stays, what was graded is not run again, the rest is tried anew."""
    make, whole = Bench(write_study(tmp_path / "study", arms=2), monkeypatch), tmp_path / "whole"
    assert await make.run(whole) is Exit.DONE
    lines = (whole / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for size in range(1, len(lines)):
        run = tmp_path / f"run{size}"
        shutil.copytree(whole, run)
        (run / "journal.jsonl").write_bytes(b"".join(lines[:size]))
        for note in (run / "checkpoints").iterdir():
            if int(note.name[:12]) > size:
                note.unlink()
        _without_folders_of_what_never_was(run)
        seen = Counter(body["attempt"] for body in bodies(run, Kind.ATTEMPT_GRADED))
        completed = {body["attempt"] for body in bodies(run, Kind.ATTEMPT_ENDED)}
        assert await make.run(run, resume=True) is Exit.DONE, size
        check_record(run)
        assert finals(run) == finals(whole)
        admitted = bodies(run, Kind.ATTEMPT_ADMITTED)
        assert [body for body in admitted if body["replaces"]] == []
        superseded = {body["attempt"] for body in bodies(run, Kind.ATTEMPT_ENDED) if body["outcome"] in SUPERSEDED}
        assert {body["supersedes"] for body in admitted} - {None} == superseded
        assert superseded & completed == set(), "what had its end keeps it"
        assert seen <= Counter(body["attempt"] for body in bodies(run, Kind.ATTEMPT_GRADED))


def _without_folders_of_what_never_was(run: Path) -> None:
    admitted = {body["folder"] for body in bodies(run, Kind.ATTEMPT_ADMITTED)}
    for folder in list((run / "trials").glob("*/*")):
        if folder.relative_to(run).as_posix() not in admitted:
            shutil.rmtree(folder)
    for trial in list((run / "trials").iterdir()):
        if not any(trial.iterdir()):
            trial.rmdir()


async def test_a_drain_lets_what_is_in_flight_get_its_final(make: Bench, tmp_path: Path) -> None:
    run = tmp_path / "run"
    make.prepare = lambda kind: setattr(kind, "on_exec", _interrupt_once())
    assert await make.run(run) is Exit.INTERRUPTED
    check_record(run)
    ends = [body["outcome"] for body in bodies(run, Kind.ATTEMPT_ENDED)]
    assert ends == ["completed"] * len(bodies(run, Kind.TRIAL_FINAL))
    assert 1 <= len(ends) <= 2
    make.prepare = lambda kind: None
    assert await make.run(run, resume=True) is Exit.DONE
    check_record(run)


def _interrupt_once() -> Callable[[Exec], None]:
    told: list[Exec] = []

    def on_exec(command: Exec) -> None:
        if not told:
            os.kill(os.getpid(), signal.SIGINT)
        told.append(command)

    return on_exec


async def test_a_pause_that_follows_at_once_holds_lanes_that_were_woken() -> None:
    journal, stop = SimpleNamespace(append=_appended), Stop()
    lanes = Lanes(*(SimpleNamespace(),) * 4, SimpleNamespace(journal=journal), Progress(io.StringIO()), 1, Gate(()))
    await lanes.pause(True)
    waiting = asyncio.create_task(lanes.may_start(stop))
    await settled()
    await lanes.pause(False)
    await lanes.pause(True)
    await settled()
    assert not waiting.done()
    await lanes.pause(False)
    assert await waiting is True


@pytest.mark.parametrize("seed", range(30))
async def test_trials_begin_as_they_are_drawn_whoever_is_woken_first(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lane that comes just when a block opens, or the gate does, does not overtake the one that waited for that."""
    drawn = random.Random(seed)
    begun: list[Trial] = []
    gate = Gate(())

    async def some_steps() -> None:
        for _ in range(drawn.randrange(5)):
            await asyncio.sleep(0)

    async def admit_block(*_: object) -> None:
        await gate.passed()
        await some_steps()

    async def attempt(job: SimpleNamespace, _: object) -> Result:
        begun.append(job.trial)
        if drawn.random() < 0.3:
            gate.shut(AnchorKind.GIT)
            asyncio.get_running_loop().call_soon(gate.open, AnchorKind.GIT)
        await some_steps()
        return Result(Outcome.COMPLETED, ungraded(Reason.REWARD_MISSING, ""), None)

    monkeypatch.setattr(
        "proctor.runner.lanes.make_job",
        lambda ready, inputs, trial, coming: SimpleNamespace(trial=trial, label=trial.id),
    )
    monkeypatch.setattr("proctor.runner.lanes.run_attempt", attempt)
    plan = Plan(tuple(Block(at, f"t{at}", None, 1, ("one", "two")) for at in range(6)), 3)
    authority = SimpleNamespace(admit_block=admit_block, end_block=lambda index: None)
    journal = SimpleNamespace(append=_appended, post=lambda *_: asyncio.ensure_future(_appended()))
    ready = SimpleNamespace(design=SimpleNamespace(stage=SimpleNamespace(deadline_sec=None, replacements=0)))
    tools = SimpleNamespace(authority=authority, journal=journal)
    progress = SimpleNamespace(attempt_over=lambda *_: None, final=lambda *_: None)
    made: Any = Lanes
    await made(ready, SimpleNamespace(), plan, RunState(), tools, progress, 3, gate).run(Stop())
    assert begun == list(plan.trials())


async def _appended(*_: object) -> int:
    return 0


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)
