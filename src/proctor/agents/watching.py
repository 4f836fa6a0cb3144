"""A program that runs inside for an agent: ended at its deadline, and when nothing came of it for too long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from proctor.agents.base import Turn
from proctor.core.waiting import wait_through
from proctor.sandbox.base import Ended, Exec

_SEC = 1_000_000_000


async def run_watched(turn: Turn, command: Exec) -> Ended:
    """Run the command inside; with `turn.idle_sec` it ends when nothing happened for so long.

    What happens is a byte through `turn.door` or of its output. Such an end has `limit_hit` "idle".

    Raises:
        Refusal: as `Sandbox.exec` does.
    """
    if turn.idle_sec is None:
        return await turn.sandbox.exec(command)
    began = time.monotonic_ns()
    files = [path for path in (command.stdout, command.stderr) if path is not None]
    activity = _Activity(began, files, None if turn.door is None else turn.door.last_ns)
    running = asyncio.ensure_future(turn.sandbox.exec(command))
    try:
        while (left := activity.last_ns() + int(turn.idle_sec * _SEC) - time.monotonic_ns()) > 0:
            done, _ = await asyncio.wait({running}, timeout=left / _SEC)
            if done:
                return running.result()
    except asyncio.CancelledError:
        await _ended(running)
        raise
    ended = await _ended(running)
    if ended is not None:
        return ended
    spent = time.monotonic_ns() - began
    return Ended(exit_code=None, signal=9, timed_out=False, duration_ns=spent, limit_hit="idle")


async def _ended(running: asyncio.Future[Ended]) -> Ended | None:
    """Nothing of it is left afterwards; its own end where that came first."""
    running.cancel()
    cancelled = await wait_through(running)
    if cancelled is not None:
        raise cancelled
    return None if running.cancelled() else running.result()


@dataclass(frozen=True)
class _Activity:
    """When something last happened, in monotonic ns: looked up, never watched."""

    began: int
    files: list[Path]
    door: Callable[[], int] | None

    def last_ns(self) -> int:
        """A file's own time says when it last grew, so that a look now finds growth of any moment."""
        moments = [self.began] if self.door is None else [self.began, self.door()]
        wall, now = time.time_ns(), time.monotonic_ns()
        for path in self.files:
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            if found.st_size:
                moments.append(now - max(0, wall - found.st_mtime_ns))
        return max(moments)
