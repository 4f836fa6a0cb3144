"""Work that may never come back, such as a call into a file system that is gone: waited for, and then left alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from proctor.evidence.anchors.base import AnchorFailed

T = TypeVar("T")


class Apart:
    """One such piece of work at a time."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._left = False

    def within(self, deadline_sec: float, work: Callable[[], T], late: Callable[[], Exception]) -> T:
        """The work's result, or its OSError or AnchorFailed, or `late()` once the deadline is over, or after `leave`.

        The thread is one that nothing waits for, the end of the process neither: the work must be safe to be going on.

        Raises:
            RuntimeError: it raised something else, which was printed.
        """
        results: list[T] = []
        faults: list[Exception] = []
        ended = threading.Event()
        self._done = done = threading.Event()

        def run() -> None:
            try:
                results.append(work())
            except (OSError, AnchorFailed) as fault:
                faults.append(fault)
            finally:
                ended.set()
                done.set()

        if self._left:
            raise late()
        threading.Thread(target=run, name="anchor", daemon=True).start()
        done.wait(deadline_sec)
        if not ended.is_set():
            raise late()
        if faults:
            raise faults[0]
        if not results:
            raise RuntimeError("what was to be done apart came to nothing")
        return results[0]

    def leave(self) -> None:
        """Wait no longer, now and later."""
        self._left = True
        self._done.set()
