"""Calls from a thread into an event loop: what `call_soon_threadsafe` does, without what that costs.

The loop's own way wakes it through a pair of sockets, which it reads until an error says that they are empty. Here it
reads an eventfd, once for each call: a lone entry's way back takes two thirds of the time.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from typing import Any


class IntoLoop:
    """Made in the loop, for one thread; calls are made in the order in which the thread gave them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Raises OSError."""
        self._loop = loop
        self._calls: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        # One read takes one call: what that raises is the loop's to report, and the next are made all the same.
        self._bell = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        loop.add_reader(self._bell, self._take)

    def call(self, call: Callable[..., None], *arguments: Any) -> None:
        """For the thread, before `close`.

        Raises:
            RuntimeError: the loop is closed: nobody is left to be told.
        """
        if self._loop.is_closed():
            raise RuntimeError("the event loop is closed")
        self._calls.append((call, arguments))
        os.eventfd_write(self._bell, 1)

    def detach(self) -> None:
        """For the loop, which listens no more: what was not called by then is called once the thread closes this."""
        self._loop.remove_reader(self._bell)

    def close(self) -> None:
        """For the thread, as its last, once the loop is detached or closed."""
        os.close(self._bell)
        while self._calls:
            call, arguments = self._calls.popleft()
            try:
                self._loop.call_soon_threadsafe(call, *arguments)
            except RuntimeError:
                # The loop is closed.
                return

    def _take(self) -> None:
        os.eventfd_read(self._bell)
        call, arguments = self._calls.popleft()
        call(*arguments)
