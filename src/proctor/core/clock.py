"""Time, in one place: the wall clock names moments, the monotonic clock measures durations."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of both times; tests hand in one of their own."""

    def utc(self) -> str:
        """Now, RFC 3339 in UTC with microseconds and `Z`."""
        ...

    def mono_ns(self) -> int:
        """Monotonic nanoseconds; only differences mean something."""
        ...


class SystemClock:
    """The machine's clocks."""

    # A second, and how its moments begin: every entry has one, and a second is spelled out once.
    _spelled = (-1, "")

    def utc(self) -> str:
        """Now, RFC 3339 in UTC with microseconds and `Z`."""
        now, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        second, begins = self._spelled
        if second != now:
            begins = datetime.fromtimestamp(now, UTC).isoformat()[:19]
            self._spelled = now, begins
        return f"{begins}.{nanoseconds // 1000:06d}Z"

    def mono_ns(self) -> int:
        """Monotonic nanoseconds."""
        return time.monotonic_ns()
