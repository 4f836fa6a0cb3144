"""One command in a container: started by the engine, read while it runs, ended at its deadline."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Ended, Exec
from proctor.sandbox.docker.engine import Engine
from proctor.sandbox.docker.hijack import STDERR, Frame, Hijacked
from proctor.sandbox.docker.sinks import Sinks
from proctor.sandbox.docker.wrapping import Report, wrapped
from proctor.sandbox.rules import LONGEST_SEC

# of Linux, with its end; the engine tells what is longer as an exit code of the command
_MOST_WORD = 131_072
_ROOT = ("root", "0")
# for a command that ended or was killed: until the engine says so, and what is in pipes is read
_ENDING_SEC = 10.0
_QUIET_SEC = 0.05
# how often the engine is asked whether a command ended: a tenth of how long it has run, within these
_SHORTEST_SEC = 0.001
_FIRST_LOOK_SEC = 0.1
_LONGEST_PAUSE_SEC = 2.0
_LOOK_SEC = 30.0
# an engine that cannot look a user up, for example in a table that is a pipe, never starts the command
_BEGIN_SEC = 60.0
_SAID_BYTES = 2_000


@dataclass(frozen=True)
class How:
    """What became of the command's own process: `pid` 0 is one that never was."""

    pid: int
    code: int | None
    timed_out: bool


KILLED = How(1, 128 + signal.SIGKILL, timed_out=False)


def never_starts(command: Exec) -> str | None:
    """Why a command can never start; None where it may."""
    words = (*command.argv, command.cwd, command.user or "", *command.env, *command.env.values())
    if any("\0" in str(word) for word in words):
        return "embedded null byte"
    try:
        longest = max(len(str(word).encode("utf-8")) for word in words)
    except UnicodeEncodeError:
        return "the engine takes no words that are not UTF-8"
    if longest >= _MOST_WORD:
        return "argument list too long"
    if not command.cwd.startswith("/"):
        return f"working folder {command.cwd!r}: not absolute"
    return None


def never(why: str) -> Ended:
    """What is told of a command that cannot start."""
    return Ended(exit_code=None, signal=None, timed_out=False, duration_ns=0, start_error=why)


class Running:
    """A command that the engine was asked to run. `close` it in any case."""

    def __init__(
        self, engine: Engine, exec_id: str, stream: Hijacked, command: Exec, sinks: Sinks, report: Report
    ) -> None:
        self._engine = engine
        self._path = f"exec/{exec_id}/json"
        self._stream = stream
        self._sinks = sinks
        self._began = time.monotonic()
        self._deadline = self._began + min(command.deadline_sec, LONGEST_SEC)
        self._report = report
        self._reported = asyncio.Event()
        self._left = False
        self._taken = 0
        self._said = b""
        self._reading = asyncio.create_task(self._read())
        self._feeding = asyncio.create_task(self._feed(command.stdin))

    async def wait(self) -> How:
        """Until its process ends or its deadline comes.

        The end of its output tells that it may have ended, and the engine is asked now and then, for a child may hold
        the output.

        Raises:
            EngineError: it cannot be asked.
            Refusal: OUT_UNUSABLE or DISK_FULL for its output.
        """
        short = _SHORTEST_SEC
        while True:
            elapsed = time.monotonic() - self._began
            left = max(0.0, self._deadline - time.monotonic())
            if self._reading.done():
                short *= 2
                pause = min(short, _LONGEST_PAUSE_SEC)
            else:
                pause = min(max(_FIRST_LOOK_SEC, elapsed / 10), _LONGEST_PAUSE_SEC)
            await self._something(min(pause, left))
            if self._reading.done():
                self._reading.result()
            how = await self._look()
            if how is not None:
                return how
            if time.monotonic() >= self._deadline:
                return How(0, None, timed_out=True)

    async def _something(self, most_sec: float) -> None:
        """Until it said that it ended, or its output did, or that long."""
        reported = asyncio.create_task(self._reported.wait())
        waits = {reported} if self._reading.done() else {reported, self._reading}
        try:
            await asyncio.wait(waits, timeout=most_sec, return_when=asyncio.FIRST_COMPLETED)
        finally:
            reported.cancel()

    async def settle(self, end: Callable[[], Awaitable[object]] | None) -> None:
        """Read what is still said once it ended; with `end`, which ends all, see that it did, and nothing holds on.

        Raises:
            EngineError: it cannot be asked.
            Refusal: SANDBOX_LOST where its process cannot be ended; OUT_UNUSABLE or DISK_FULL for its output.
        """
        if end is None:
            before = -1
            while not self._reading.done() and self._taken > before:
                before = self._taken
                await asyncio.wait({self._reading}, timeout=_QUIET_SEC)
            self._left = True
        else:
            # what the engine had not started yet may start after all was ended
            deadline = time.monotonic() + _ENDING_SEC
            while await self._look() is None:
                if time.monotonic() > deadline:
                    raise Refusal(Reason.SANDBOX_LOST, "processes inside could not be ended")
                await asyncio.sleep(_SHORTEST_SEC)
                await end()
            await asyncio.wait({self._reading}, timeout=_ENDING_SEC)
        if self._reading.done():
            self._reading.result()

    def ended(self, how: How, *, leftovers: int, limit_hit: str | None) -> Ended:
        """What is told. Codes that shells and the engine use for signals are told as signals."""
        code, number, start_error = how.code, None, None
        if how.timed_out:
            code, number = None, int(signal.SIGKILL)
        elif how.pid == 0 or self._report.cannot is not None:
            said = self._report.cannot or self._said.decode("utf-8", "replace").strip()
            code, start_error = None, said or "the engine could not start it"
            self._sinks.clear()
        elif how.code is not None and how.code - 128 in signal.valid_signals():
            code, number = None, how.code - 128
        return Ended(
            exit_code=code,
            signal=number,
            timed_out=how.timed_out,
            duration_ns=int((time.monotonic() - self._began) * 1e9),
            output_bytes=self._sinks.size,
            output_dropped=self._sinks.dropped,
            leftovers=leftovers,
            limit_hit=limit_hit,
            start_error=start_error,
        )

    def stopped(self) -> Ended:
        """What is told where its world was stopped meanwhile."""
        return self.ended(KILLED, leftovers=0, limit_hit=None)

    async def close(self) -> None:
        """Let go of its output."""
        for task in (self._reading, self._feeding):
            task.cancel()
        await asyncio.gather(self._reading, self._feeding, return_exceptions=True)
        await self._stream.close()

    async def _look(self) -> How | None:
        """What became of its process, or None while it runs. Raises EngineError."""
        if self._report.code is not None:
            return How(1, self._report.code, timed_out=False)
        seen = await self._engine.call("GET", self._path, deadline_sec=_LOOK_SEC)
        if not seen["Running"]:
            return How(seen["Pid"], seen["ExitCode"], timed_out=False)
        if seen["Pid"] == 0 and time.monotonic() - self._began > _BEGIN_SEC:
            return How(0, None, timed_out=False)
        return None

    async def _read(self) -> None:
        with contextlib.suppress(ConnectionError):  # how an engine ends, of which it is asked next
            while (frame := await self._stream.read()) is not None:
                self._taken += len(frame.data)
                if frame.stream == STDERR:
                    frame = Frame(STDERR, self._report.take(frame.data))
                    if self._report.code is not None:
                        self._reported.set()
                self._keep(frame)
            self._keep(Frame(STDERR, self._report.rest()))

    def _keep(self, frame: Frame) -> None:
        if not self._left:
            self._said += frame.data[: _SAID_BYTES - len(self._said)]
            self._sinks.take(frame)

    async def _feed(self, data: bytes) -> None:
        with contextlib.suppress(ConnectionError):  # it may end before it has read all
            if data:
                await self._stream.write(data)
            self._stream.end_input()


def _user(wanted: str | None) -> str:
    """A user as the engine is told: root by number, or not at all, for it looks names up in tables of the container."""
    who, _, group = (wanted or "").partition(":")
    if who and who not in _ROOT:
        return wanted or ""
    return "" if not group or group in _ROOT else f"0:{group}"


async def begin(engine: Engine, container: str, command: Exec, sinks: Sinks, home: str | None) -> Running:
    """Ask the engine to run it; root's home is `home` where that is said. Raises EngineError."""
    user = _user(command.user)
    env = {"HOME": home} if home is not None and (user in ("", "0") or user.startswith("0:")) else {}
    mark = secrets.token_hex(16)
    asked = {
        "AttachStdin": bool(command.stdin),
        "AttachStdout": True,
        "AttachStderr": True,
        "Tty": False,
        "Cmd": wrapped(command.argv, mark, joined=command.stderr is None, leaving=command.leave_running),
        "Env": [f"{name}={text}" for name, text in {**env, **command.env}.items()],
        "User": user,
        "WorkingDir": command.cwd,
    }
    made = await engine.call("POST", f"containers/{container}/exec", body=asked)
    stream = await engine.connect(f"exec/{made['Id']}/start", {"Detach": False, "Tty": False})
    report = Report(mark, alone=command.stderr is None and not command.leave_running)
    return Running(engine, made["Id"], stream, command, sinks, report)
