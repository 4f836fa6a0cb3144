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

    def utc(self) -> str:
        """Now, RFC 3339 in UTC with microseconds and `Z`."""
        # a tenth of what strftime takes, and every entry has one
        return datetime.now(UTC).isoformat(timespec="microseconds")[:26] + "Z"

    def mono_ns(self) -> int:
        """Monotonic nanoseconds."""
        return time.monotonic_ns()
