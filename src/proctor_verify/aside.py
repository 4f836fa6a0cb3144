"""Work that takes long and leaves the interpreter alone, done aside, and told of in the order in which it was asked.

Hashing and inflating many bytes need no more than the bytes: threads do it while the journal is walked on. What is
told and when depends on what was asked alone, never on who was quick.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

T = TypeVar("T")

# What is shorter is hashed in less time than it takes to hand it over.
WORTH_IT = 128 << 10
MOST = 4
# Not more for more processors: reports are the same everywhere, and so is the memory that this takes.
_AHEAD = 8


class Aside:
    """Threads of a verification, made when the first of them has something to do."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Have it done."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(min(os.cpu_count() or 1, MOST), "aside")
        return self._threads.submit(work)

    def close(self) -> None:
        """Wait for what is being done; nothing more is begun."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)


class InOrder:
    """Tells of one thing after the other: of each once all before it was told, at the latest at the end."""

    def __init__(self, aside: Aside) -> None:
        self._aside = aside
        self._pending: deque[Callable[[], None]] = deque()

    def tell(self, told: Callable[[T], None], value: T) -> None:
        """Something that is known."""
        if self._pending:
            self._add(partial(told, value))
        else:
            told(value)

    def ask(self, told: Callable[[T], None], work: Callable[[], T]) -> None:
        """Something that is yet to be found out, aside; what `work` raises is raised where it is told."""
        future = self._aside.submit(work)
        self._add(lambda: told(future.result()))

    def work(self, told: Callable[[T], None], work: Callable[[], T], size: int) -> None:
        """Something that takes so many bytes: asked where that is worth it, else found out at once."""
        if size < WORTH_IT:
            self.tell(told, work())
        else:
            self.ask(told, work)

    def finish(self) -> None:
        """Tell of all that was asked."""
        while self._pending:
            self._pending.popleft()()

    def _add(self, tell: Callable[[], None]) -> None:
        self._pending.append(tell)
        if len(self._pending) > _AHEAD:
            self._pending.popleft()()
