"""Idle deadlines: an agent ends when nothing came of it for so long, and no sooner."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from inside_parts import DONE, QuietWorld, door, turn

from proctor.agents.watching import run_watched
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Ended, Exec

HOUR = 3_600.0
IDLE = 0.04
IDLE_NS = 40_000_000


class Endless:
    """A command that never ends by itself; `last` is how it ends when it is told to, if not as cancelled."""

    def __init__(self, last: Ended | None = None) -> None:
        self.last = last
        self.begun = asyncio.Event()
        self.cancelled = False

    async def __call__(self, command: Exec) -> Ended:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            if self.last is None:
                raise
            return self.last
        raise AssertionError


class Busy:
    """A door through which something went at each of the first looks, and then no more."""

    def __init__(self, looks: int) -> None:
        self.left = looks
        self.moment = 0

    def last_ns(self) -> int:
        if self.left:
            self.left -= 1
            self.moment = time.monotonic_ns()
        return self.moment


def command(folder: Path) -> Exec:
    return Exec(("agent",), stdout=folder / "stdout.txt", stderr=folder / "stderr.txt")


async def test_without_an_idle_deadline_nothing_is_watched(tmp_path: Path) -> None:
    assert await run_watched(turn(QuietWorld(), tmp_path), command(tmp_path)) is DONE


async def test_what_ends_in_time_ends_by_itself(tmp_path: Path) -> None:
    assert await run_watched(turn(QuietWorld(), tmp_path, idle_sec=HOUR), command(tmp_path)) is DONE


async def test_nothing_for_so_long_ends_it(tmp_path: Path) -> None:
    going = Endless()
    ended = await run_watched(turn(QuietWorld(going), tmp_path, idle_sec=IDLE), command(tmp_path))
    assert (ended.limit_hit, ended.signal, ended.exit_code, ended.timed_out) == ("idle", 9, None, False)
    assert ended.duration_ns >= IDLE_NS
    assert going.cancelled


async def test_what_goes_through_the_door_counts(tmp_path: Path) -> None:
    busy, began = Busy(3), time.monotonic_ns()
    watched = turn(QuietWorld(Endless()), tmp_path, idle_sec=IDLE, door=door(last_ns=busy.last_ns))
    ended = await run_watched(watched, command(tmp_path))
    assert ended.limit_hit == "idle"
    assert busy.left == 0
    assert began + ended.duration_ns >= busy.moment + IDLE_NS - 10**6


@pytest.mark.parametrize("name", ["stdout.txt", "stderr.txt"])
async def test_output_that_grew_counts_from_when_it_did(tmp_path: Path, name: str) -> None:
    grown = time.time_ns() + 3 * IDLE_NS
    (tmp_path / name).write_text("a line\n")
    os.utime(tmp_path / name, ns=(grown, grown))
    ended = await run_watched(turn(QuietWorld(Endless()), tmp_path, idle_sec=IDLE), command(tmp_path))
    assert ended.limit_hit == "idle"
    assert ended.duration_ns >= 3 * IDLE_NS


async def test_an_output_file_without_a_byte_is_no_activity(tmp_path: Path) -> None:
    never = time.time_ns() + 3_600 * 10**9
    (tmp_path / "stdout.txt").touch()
    os.utime(tmp_path / "stdout.txt", ns=(never, never))
    ended = await run_watched(turn(QuietWorld(Endless()), tmp_path, idle_sec=IDLE), command(tmp_path))
    assert ended.limit_hit == "idle"


async def test_an_end_that_comes_with_the_idle_deadline_is_its_own(tmp_path: Path) -> None:
    watched = turn(QuietWorld(Endless(DONE)), tmp_path, idle_sec=IDLE)
    assert await run_watched(watched, command(tmp_path)) is DONE


async def test_a_world_that_breaks_is_not_idle(tmp_path: Path) -> None:
    async def breaks(command: Exec) -> Ended:
        raise Refusal(Reason.SANDBOX_LOST, "gone")

    with pytest.raises(Refusal) as caught:
        await run_watched(turn(QuietWorld(breaks), tmp_path, idle_sec=HOUR), command(tmp_path))
    assert caught.value.reason is Reason.SANDBOX_LOST


async def test_who_is_cancelled_leaves_no_command_behind(tmp_path: Path) -> None:
    going = Endless()
    running = asyncio.create_task(run_watched(turn(QuietWorld(going), tmp_path, idle_sec=HOUR), command(tmp_path)))
    await going.begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert going.cancelled
