"""The one seam that ends a run: it owns the last entry of the journal and the process's exit status.

Whatever the work does (returns, raises, calls SystemExit, meets a signal), exactly one `run.ended` is written and the
status in it is the one that the process ends with. The first Ctrl-C drains, one while it drains (for whatever cause)
aborts; SIGTERM and SIGHUP abort at once, since who sends them will not wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from proctor.core.exits import Exit
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

T = TypeVar("T")

_STATUS = {
    signal.SIGINT: Exit.INTERRUPTED,
    signal.SIGTERM: Exit.TERMINATED,
    signal.SIGHUP: Exit.HANGUP,
}


@dataclass
class Stop:
    """What running work listens to. `cause` names why nothing new may start; `exit` is the status that follows.

    `admitted` is set once the verdict is about to be final: from then on a signal drains and cancels no more. Signals
    come to the process's main thread; where the work is in another, whoever hears one there calls `signalled`.
    """

    draining: asyncio.Event = field(default_factory=asyncio.Event)
    cause: str | None = None
    exit: Exit | None = None
    reason: Reason | None = None
    admitted: bool = False
    _ear: tuple[asyncio.AbstractEventLoop, Callable[[signal.Signals], None]] | None = None

    def signalled(self, number: signal.Signals) -> None:
        """A signal came: from any thread. Nothing where nobody listens, before and after the work."""
        ear = self._ear
        if ear is not None:
            loop, heard = ear
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(heard, number)

    def hear(self, heard: Callable[[signal.Signals], None]) -> None:
        """Let signals call `heard` in the running loop, until something else hears them or they are ignored.

        One handler takes the place of another: at no moment between two phases does a signal end the process.
        """
        loop = asyncio.get_running_loop()
        self._ear = (loop, heard)
        if threading.current_thread() is threading.main_thread():
            for number in _STATUS:
                signal.signal(number, lambda number, _: self.signalled(signal.Signals(number)))

    def drain(self, cause: str, exit_status: Exit, reason: Reason | None = None) -> None:
        """Let nothing new start. The first cause stands."""
        if self.cause is None:
            self.cause, self.exit, self.reason = cause, exit_status, reason
        self.draining.set()


@dataclass(frozen=True)
class Ending:
    """How the work ended: the exit status, the reason where it did not just end, and a message for people."""

    exit: Exit
    reason: Reason | None = None
    message: str | None = None


class Closer(Protocol):
    """Writes the last entry; called exactly once."""

    async def __call__(self, ending: Ending) -> Exit:
        """Close the journal with this ending; returns the status that was written."""
        ...


class Interrupted(Exception):
    """A signal ended an admission before its verdict; the manifest says so."""


async def admit_or_stop(admission: Callable[[Stop], Awaitable[T]], stop: Stop) -> T:
    """Admit; a signal ends it until the verdict, and afterwards drains the run that then exists.

    Raises:
        Interrupted: `stop` has the exit status.
    """
    task = asyncio.ensure_future(admission(stop))

    def heard(number: signal.Signals) -> None:
        stop.drain(number.name, _STATUS[number])
        if not stop.admitted:
            task.cancel()

    stop.hear(heard)
    try:
        with _woken_by_signals():
            return await task
    except asyncio.CancelledError as fault:
        end_of_hearing()
        raise Interrupted from fault


async def run_to_the_end(work: Callable[[Stop], Awaitable[Exit]], close: Closer, stop: Stop) -> Exit:
    """Do the work, end the record, and return the status that the record holds."""
    task = asyncio.ensure_future(_contained(work, stop))

    def heard(number: signal.Signals) -> None:
        again = stop.draining.is_set()
        stop.drain(number.name, _STATUS[number])
        if again or number is not signal.SIGINT:
            task.cancel()

    stop.hear(heard)
    try:
        with _woken_by_signals():
            return await close(await _outcome(task, stop))
    finally:
        end_of_hearing()


@contextlib.contextmanager
def _woken_by_signals() -> Iterator[None]:
    """A signal wakes the running loop, whichever thread the system gives it to, and however shortly before it waits.

    Only the main thread's loop: no other hears signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    ours, theirs = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    loop.add_reader(ours, os.read, ours, 4096)
    before = signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        loop.remove_reader(ours)
        os.close(theirs)
        os.close(ours)


def end_of_hearing() -> None:
    """The status is on the record: a late signal must not change what the system sees."""
    if threading.current_thread() is threading.main_thread():
        for number in _STATUS:
            signal.signal(number, signal.SIG_IGN)


def listen_again() -> None:
    """Signals end the process again as they do by default: for a further run in the same process.

    Only its main thread can say so; elsewhere nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class _Exited(RuntimeError):
    """The work called SystemExit: raised through a task it would end the loop before the record."""


async def _contained(work: Callable[[Stop], Awaitable[Exit]], stop: Stop) -> Exit:
    try:
        return await work(stop)
    except SystemExit as fault:
        raise _Exited(f"SystemExit({fault.code!r})") from fault


async def _outcome(task: asyncio.Future[Exit], stop: Stop) -> Ending:
    try:
        status = await task
    except asyncio.CancelledError:
        return Ending(stop.exit or Exit.INTERRUPTED, Reason.INTERRUPTED, stop.cause)
    except Refusal as refusal:
        return Ending(Exit.INFRASTRUCTURE, refusal.reason, str(refusal))
    except Exception as fault:
        # the boundary of the process: whatever it was, the run ends on the record and the trace goes to the person
        traceback.print_exc(file=sys.stderr)
        return Ending(Exit.INFRASTRUCTURE, Reason.INTERNAL_ERROR, f"{type(fault).__name__}: {fault}")
    if stop.exit is not None:
        return Ending(stop.exit, stop.reason or _drained(stop.exit), stop.cause)
    return Ending(status)


def _drained(status: Exit) -> Reason | None:
    return Reason.INTERRUPTED if status in _STATUS.values() else None
