"""proctor status and pause: a live run answers, a dead one is told from one that ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from proctor.evidence.lock import Lock
from proctor.evidence.runfolder import RunFolder
from proctor.report import reading
from proctor.runner.control import serve
from run_parts import Story, Try, make_run

ANSWER = {
    "planned": 4,
    "done": 1,
    "grades": {"pass": 1, "fail": 0, "ungraded": 0},
    "in_flight": [{"trial": "alpha · plain · 1", "phase": "verify"}],
    "superseded": 0,
    "replaced": 2,
    "paused": False,
    "draining": None,
    "left_sec": 75,
    "journal_entries": 12,
}
Handlers = Mapping[str, Callable[[], Awaitable[Mapping[str, Any]]]]


@contextlib.asynccontextmanager
async def live(run: Path, handlers: Handlers) -> AsyncIterator[None]:
    """This process as the run's writer, answering."""
    control = run / "s"
    lock = Lock.acquire(RunFolder(run), extra={"control": str(control)})
    try:
        async with serve(control, handlers):
            yield
    finally:
        lock.release()


async def test_a_run_that_ended(proctor, tmp_path: Path) -> None:
    await make_run(tmp_path / "run", story=Story(stop_after=2), end=4, reason="stage_deadline")
    said = proctor("status", tmp_path / "run")
    assert said.status == 0
    assert "ended      stopped by budget, deadline or operator: stage_deadline (exit status 4)" in said.out
    assert "2/4" in said.out and "proctor resume" in said.out
    told = proctor("status", tmp_path / "run", "--json").json()
    assert (told["live"], told["complete"], told["ended"]["exit_status"]) == (False, False, 4)


async def test_a_complete_run_has_nothing_to_resume(proctor, tmp_path: Path) -> None:
    await make_run(tmp_path / "run")
    said = proctor("status", tmp_path / "run")
    assert "4/4 · 4 pass" in said.out and "resume" not in said.out


async def test_a_run_whose_process_died(proctor, tmp_path: Path) -> None:
    story = Story(tries={("alpha", "plain"): (Try(left_open=True),)})
    run = await make_run(tmp_path / "run", story=story, end=None)
    said = proctor("status", run.path)
    pid = proctor("status", run.path, "--json").json()["process"]["pid"]
    assert said.status == 0 and f"dead       process {pid} on " in said.out
    assert "in flight  alpha · plain · 1" in said.out and "proctor resume" in said.out
    lock = run.lock_path.read_text()
    boot = proctor("status", run.path, "--json").json()["process"]["boot_id"]
    run.lock_path.write_text(lock.replace(boot, "00000000-0000-0000-0000-000000000000"))
    assert "the machine was restarted since" in proctor("status", run.path).out
    run.lock_path.unlink()
    assert "dead       its process ended without a word" in proctor("status", run.path).out


async def test_a_live_run_answers_for_itself(proctor, tmp_path: Path) -> None:
    await make_run(tmp_path / "run", story=Story(stop_after=1), end=None)

    async def status() -> Mapping[str, Any]:
        return ANSWER

    async with live(tmp_path / "run", {"status": status}):
        said = await asyncio.to_thread(proctor, "status", tmp_path / "run")
        told = (await asyncio.to_thread(proctor, "status", tmp_path / "run", "--json")).json()
    assert "live       running (process " in said.out and "resume" not in said.out
    assert "1/4 · 1 pass · 0 fail · 0 ungraded" in said.out and "0 superseded · 2 replaced" in said.out
    assert "about 1m15s" in said.out and "in flight  alpha · plain · 1  (verify)" in said.out
    assert told == {
        "live": True,
        "part": None,
        "answers": True,
        "complete": False,
        "resumes": False,
        "ended": None,
        "spend": None,
        "anchors": [],
        "broken": None,
        **ANSWER,
    } | {"process": told["process"]}


async def test_a_live_run_that_does_not_answer_is_not_called_dead(proctor, tmp_path: Path) -> None:
    run = await make_run(tmp_path / "run", story=Story(stop_after=1), end=None)
    lock = Lock.acquire(run, extra={"control": str(tmp_path / "nobody")})
    try:
        said = proctor("status", run.path)
    finally:
        lock.release()
    assert said.status == 0 and "live " in said.out and "does not answer" in said.out and "dead" not in said.out
    assert "last checkpoint" not in said.out


async def test_a_run_that_is_over_and_still_held_is_said_to_push_its_last_checkpoint(proctor, tmp_path: Path) -> None:
    run = await make_run(tmp_path / "run")
    lock = Lock.acquire(run, extra={"control": str(tmp_path / "nobody")})
    try:
        said, paused = proctor("status", run.path), proctor("pause", run.path)
    finally:
        lock.release()
    assert "does not answer just now: it pushes the last checkpoint" in said.out
    assert paused.status == 3 and "see `proctor status`, and try again" in paused.err


async def test_pause_is_handed_to_the_run(proctor, tmp_path: Path) -> None:
    await make_run(tmp_path / "run", story=Story(stop_after=1), end=None)
    asked = []

    async def pause() -> Mapping[str, Any]:
        asked.append("pause")
        return {"paused": True}

    async with live(tmp_path / "run", {"pause": pause}):
        said = await asyncio.to_thread(proctor, "pause", tmp_path / "run")
        told = await asyncio.to_thread(proctor, "pause", tmp_path / "run", "--json")
    assert said.status == 0 and "proctor resume" in said.out and asked == ["pause", "pause"]
    assert told.json() == {"paused": True}


async def test_pause_is_refused_where_nobody_runs(proctor, tmp_path: Path) -> None:
    run = await make_run(tmp_path / "run", story=Story(stop_after=1), end=None)
    said = proctor("pause", run.path)
    assert said.status == 3 and "run_not_live" in said.err
    lock = Lock.acquire(run, extra={"control": str(tmp_path / "nobody")})
    try:
        said = proctor("pause", run.path)
    finally:
        lock.release()
    assert said.status == 3 and "run_not_live" in said.err


async def test_a_second_resume_is_told_that_the_run_is_locked(
    proctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    run = await make_run(tmp_path / "run", story=Story(stop_after=1), end=None)
    lock = Lock.acquire(run, extra={"control": str(tmp_path / "nobody")})
    try:
        said = await asyncio.to_thread(proctor, "resume", run.path)
    finally:
        lock.release()
    assert said.status == 3 and "refused: run_locked" in said.err and "run_not_live" not in said.err


async def test_a_run_that_takes_no_request_is_neither_dead_nor_paused(proctor, tmp_path: Path) -> None:
    await make_run(tmp_path / "run", story=Story(stop_after=1), end=None)
    async with live(tmp_path / "run", {}):
        status = await asyncio.to_thread(proctor, "status", tmp_path / "run")
        pause = await asyncio.to_thread(proctor, "pause", tmp_path / "run")
    assert status.status == 0 and "does not answer" in status.out
    assert pause.status == 3 and "run_not_live" in pause.err


def alter_a_grade(run: Path) -> int:
    """Make a fail of the first grade; returns the number of the line that no longer follows it."""
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if b'"grade":"pass"' in line)
    lines[at] = lines[at].replace(b'"grade":"pass"', b'"grade":"fail"')
    (run / "journal.jsonl").write_bytes(b"".join(lines))
    return at + 2


def test_status_and_logs_say_that_they_check_nothing_and_where_the_journal_is_broken(proctor, run: Path) -> None:
    unchecked = f"unchecked  this is what the journal says; proctor verify {run} checks it"
    sound = proctor("status", run), proctor("logs", run)
    assert [said.status for said in sound] == [0, 0]
    assert sound[0].out.splitlines()[-1] == unchecked and sound[1].err.splitlines() == [unchecked]
    assert proctor("status", run, "--json").json()["broken"] is None

    line = alter_a_grade(run)
    words = f"BROKEN     journal.jsonl:{line}: an entry does not follow the one before it. Believe nothing"
    status, logs = proctor("status", run), proctor("logs", run)
    assert status.out.startswith(words) and "unchecked" not in status.out and "proctor verify" in status.out
    assert logs.err.startswith(words) and logs.err.count("BROKEN") == 1
    assert len(logs.out.splitlines()) == len(sound[1].out.splitlines())
    assert proctor("logs", run, "alpha/plain/1").err.startswith(words)
    assert proctor("status", run, "--json").json()["broken"].startswith(f"journal.jsonl:{line}: ")


async def test_status_draws_no_plan_which_of_millions_of_trials_takes_its_time(
    proctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_run(tmp_path / "run", story=Story(default=(Try(left_open=True),), stop_after=1), end=None)
    monkeypatch.setattr(reading, "plan", None)
    said = proctor("status", tmp_path / "run")
    assert said.status == 0 and "done       0/4 · " in said.out and "proctor resume" in said.out
    assert "in flight  alpha · " in said.out or "in flight  beta · " in said.out
