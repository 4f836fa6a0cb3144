"""Admission that is killed half-way, or is not alone: what is left can be gone on from, and verifies."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fake_worlds import Bench, FakeKind, Steps, _to_the_end, bodies, check_record, write_study
from journal_parts import KEY
from launching import manifests, refusals_of
from proctor.admission.admit import Admission, Verdict, admit
from proctor.admission.facts import Request
from proctor.admission.finish import Stop
from proctor.admission.gather import Gathered, gather
from proctor.core.exits import Exit
from proctor.core.reasons import Reason
from proctor.evidence.kinds import Kind
from proctor.runner.control import socket_path

TESTS = Path(__file__).resolve().parents[1]
# the manifest is written first, then the verdict in it, then the design, then the journal
DIES = """
import asyncio, os, signal, sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {src!r}]
from fake_worlds import FakeKind, Steps
from journal_parts import KEY
from proctor.admission import admit, worlds
from proctor.admission.facts import Request
from proctor.admission.finish import Stop
from proctor.evidence.journal import Journal

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

worlds.sandbox_kind = lambda name: FakeKind(Steps())
{point} = die
asyncio.run(admit.admit(Request("run", Path({out!r}), study=Path({study!r})), KEY, Stop(), control="nowhere"))
"""
POINTS = {"admit.gather": "pending", "admit._create": "admitted", "Journal.create": "admitted"}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr("proctor.admission.worlds.sandbox_kind", lambda name: FakeKind(Steps()))
    return Bench(write_study(tmp_path / "study"), monkeypatch)


async def die(script: str) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script)
    assert await asyncio.wait_for(process.wait(), 60) == -signal.SIGKILL


@pytest.mark.parametrize(("point", "verdict"), POINTS.items())
async def test_a_run_killed_before_its_first_entry_leaves_room_for_another(
    bench: Bench, tmp_path: Path, point: str, verdict: str
) -> None:
    out = tmp_path / "run"
    places = {"tests": str(TESTS), "src": str(TESTS.parent / "src"), "out": str(out), "study": str(bench.study)}
    await die(DIES.format(point=point, **places))
    assert [manifest["verdict"] for manifest in manifests(out)] == [verdict]
    assert not (out / "journal.jsonl").exists()
    assert await bench.run(out) is Exit.DONE
    check_record(out)
    (admitted,) = bodies(out, Kind.RUN_ADMITTED)
    assert [file["path"] for file in admitted["abandoned"]] == ["manifests/0001.json"]
    assert admitted["manifest"]["path"] == "manifests/0002.json"


async def test_a_resume_killed_before_its_entry_is_named_by_the_next(bench: Bench, tmp_path: Path) -> None:
    out = tmp_path / "run"
    await prepared(bench, out)
    places = {"tests": str(TESTS), "src": str(TESTS.parent / "src"), "out": str(out), "study": str(bench.study)}
    script = DIES.format(point="Journal.reopen", **places).replace('"run"', '"resume"')
    await die(script)
    assert await bench.run(out, resume=True) is Exit.DONE
    check_record(out)
    (resumed,) = bodies(out, Kind.RUN_RESUMED)
    assert [file["path"] for file in resumed["abandoned"]] == ["manifests/0002.json"]


async def prepared(bench: Bench, out: Path) -> None:
    """An admitted run whose process ended without a word."""
    admission = await asked(bench.study, out)
    assert isinstance(admission, Admission)
    await admission.journal.close(None)


async def asked(study: Path, out: Path, jobs: int | None = None, command: str = "run") -> Admission | Verdict:
    return await admit(Request(command, out, study=study, jobs=jobs), KEY, Stop(), control="nowhere")


class Gates:
    """Invocations stop while they look at the world, until let through: those with `jobs`, which tells them apart."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._there = {number: asyncio.Event() for number in (1, 2)}
        self._open = {number: threading.Event() for number in (1, 2)}
        loop = asyncio.get_running_loop()

        def slowly(request: Request, *others: Any) -> Gathered:
            if request.jobs is not None:
                loop.call_soon_threadsafe(self._there[request.jobs].set)
                assert self._open[request.jobs].wait(60)
            return gather(request, *others)

        monkeypatch.setattr("proctor.admission.admit.gather", slowly)

    async def reached(self, number: int) -> None:
        await asyncio.wait_for(self._there[number].wait(), 60)

    def let(self, *numbers: int) -> None:
        for number in numbers:
            self._open[number].set()


@pytest.fixture
async def gates(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gates]:
    gates = Gates(monkeypatch)
    yield gates
    gates.let(1, 2)


async def test_of_two_runs_at_once_into_one_folder_one_is_admitted_and_the_other_refused(
    bench: Bench, tmp_path: Path, gates: Gates
) -> None:
    out = tmp_path / "run"
    first = asyncio.create_task(asked(bench.study, out, 1))
    await gates.reached(1)
    second = asyncio.create_task(asked(bench.study, out, 2))
    await gates.reached(2)
    gates.let(1)
    admission = await first
    assert isinstance(admission, Admission)
    await _to_the_end(admission, Request("run", out, study=bench.study), socket_path("twice"))
    # were the second one killed here, the run would be sound
    check_record(out)
    gates.let(2)
    verdict = await second
    assert isinstance(verdict, Verdict)
    assert [refusal.reason for refusal in verdict.refusals] == [Reason.RUN_LOCKED]
    check_record(out)
    assert [(manifest["verdict"], refusals_of(manifest)) for manifest in manifests(out)] == [
        ("admitted", []),
        ("refused", ["run_locked"]),
    ]
    assert bodies(out, Kind.RUN_ADMITTED)[0]["abandoned"] == []


@pytest.mark.parametrize(("command", "reason"), [("run", Reason.RUN_EXISTS), ("resume", Reason.RUN_COMPLETE)])
async def test_a_start_into_a_complete_run_does_not_touch_it_even_if_it_dies(
    bench: Bench, tmp_path: Path, gates: Gates, command: str, reason: Reason
) -> None:
    out = tmp_path / "run"
    assert await bench.run(out) is Exit.DONE
    late = asyncio.create_task(asked(bench.study, out, 1, command))
    await gates.reached(1)
    check_record(out)
    gates.let(1)
    verdict = await late
    assert isinstance(verdict, Verdict)
    assert [refusal.reason for refusal in verdict.refusals] == [reason]
    check_record(out)
