"""A run started from Python: wherever it is called, signals drain it as they do on the command line.

proctor runs its own event loop. Where one is running already (a notebook, an async program) the run gets a thread with
a loop of its own, and the caller waits.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType

from proctor.admission.finish import Stop
from proctor.runner.session import Finished

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def perform(work: Callable[[Stop], Finished | None]) -> Finished | None:
    """Do the work, which runs an event loop, and leave the process's signals as they were."""
    stop = Stop()
    with _restored():
        if not _loop_runs():
            return work(stop)
        with ThreadPoolExecutor(1, "proctor") as thread, _told(stop):
            return thread.submit(work, stop).result()


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def _restored() -> Iterator[None]:
    """Signal handlers are the process's own: what a run sets is taken back after it."""
    if not _is_main():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # one that was not set from Python cannot be put back
                signal.signal(number, handler)


@contextmanager
def _told(stop: Stop) -> Iterator[None]:
    """Signals come to the main thread, which waits: it tells the run."""

    def heard(number: int, frame: FrameType | None) -> None:
        stop.signalled(signal.Signals(number))

    if _is_main():
        for number in _SIGNALS:
            signal.signal(number, heard)
    yield
