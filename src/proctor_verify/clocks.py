"""What the wall clock says beside the order of entries: where it was set."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache

from proctor_verify.journal import Entry, Stretch

MINUTE = timedelta(minutes=1)
_MICROSECOND = timedelta(microseconds=1)
_SECOND = 10**6
# Beyond all times of all years.
_NEVER = 10**30
_REMEMBERED = 64


def ahead(time: bytes, mono: int) -> int:
    """Microseconds by which a time, counted from the year 1 on, is ahead of `mono`."""
    return _minute(time[:16]) + int(time[17:19] + time[20:26]) - mono // 1000


@lru_cache(_REMEMBERED)
def _minute(text: bytes) -> int:
    return (datetime.fromisoformat(text.decode()) - datetime.min) // _MICROSECOND


class Clock:
    """How far the wall clock falls within an opening, and how far it goes off `mono`: then times order nothing.

    `mono` counts on whatever the clock is set to: by how much time has gone ahead of it differs where that was set.
    """

    def __init__(self) -> None:
        self._latest = ""
        # More than a minute is told: the most so far, and where that was.
        self._fall, self._fell_at = MINUTE // _MICROSECOND, 0
        self._off, self._off_at = MINUTE // _MICROSECOND, 0
        # Of the opening: the least and the most by which time is ahead of `mono`.
        self._least, self._most = _NEVER, -_NEVER

    def pass_over(self, stretch: Stretch) -> None:
        """The next entries, none of which is looked at where they tell nothing that one before did not."""
        least, most = min(self._least, stretch.least), max(self._most, stretch.most)
        if most - least <= self._off and self._fallen(stretch.entries[0]) <= self._fall:
            self._latest = max(self._latest, stretch.entries[-1].time)
            self._least, self._most = least, most
        else:
            for entry in stretch.entries:
                self.take(entry)

    def take(self, entry: Entry) -> None:
        """The next entry."""
        if entry.kind == "run.resumed":
            self._latest = entry.time
            self._least, self._most = _NEVER, -_NEVER
        fall = self._fallen(entry)
        if fall > self._fall:
            self._fall, self._fell_at = fall, entry.line + 1
        self._latest = max(self._latest, entry.time)
        by = ahead(entry.time.encode(), entry.mono)
        self._least, self._most = min(self._least, by), max(self._most, by)
        off = max(self._most - by, by - self._least)
        if off > self._off:
            self._off, self._off_at = off, entry.line + 1

    def _fallen(self, entry: Entry) -> int:
        # times have one width: text compares as they do
        if entry.time >= self._latest:
            return 0
        return ahead(self._latest.encode(), 0) - ahead(entry.time.encode(), 0)

    def caveats(self) -> Iterator[str]:
        """What to say of it: nothing for a minute or less."""
        if self._fell_at:
            seconds = f"{self._fall / _SECOND:,.0f}"
            yield f"times: the wall clock falls by {seconds} seconds within an opening, up to line {self._fell_at}"
        if self._off_at:
            seconds = f"{self._off / _SECOND:,.0f}"
            yield f"times: `time` goes {seconds} seconds off `mono` within an opening, up to line {self._off_at}"
