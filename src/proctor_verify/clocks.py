"""What the wall clock says beside the order of entries: where it was set."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from proctor_verify.journal import Entry

MINUTE = timedelta(minutes=1)
_SECOND_NS = 10**9


class Clock:
    """How far the wall clock falls within an opening, and how far it goes off `mono`: then times order nothing.

    `mono` counts on whatever the clock is set to: by how much time has gone ahead of it differs where that was set.
    """

    def __init__(self) -> None:
        self._latest = ""
        self._fall, self._fell_at = MINUTE, 0
        self._off, self._off_at = MINUTE, 0
        # Of the opening: the least and the most by which time is ahead of `mono`.
        self._least = self._most = timedelta(0)
        self._second, self._until = "", 0

    def take(self, entry: Entry) -> None:
        """The next entry. What follows another within the same second of both clocks is not looked at more closely."""
        if entry.kind == "run.resumed" or not self._latest:
            self._latest, self._second = entry.time, ""
            self._least, self._most = timedelta.max, timedelta.min
        # times have one width: text compares as they do
        elif entry.time >= self._latest:
            self._latest = entry.time
        else:
            fall = datetime.fromisoformat(self._latest) - datetime.fromisoformat(entry.time)
            if fall > self._fall:
                self._fall, self._fell_at = fall, entry.line + 1
        if entry.time[:19] != self._second or entry.mono >= self._until:
            self._second, self._until = entry.time[:19], entry.mono + _SECOND_NS
            self._compare(entry)

    def _compare(self, entry: Entry) -> None:
        # what is beyond all years is beyond all clocks, too
        seconds, rest = divmod(entry.mono, _SECOND_NS)
        ahead = datetime.fromisoformat(entry.time[:26]) - datetime.min
        ahead -= timedelta(seconds=min(seconds, 10**12), microseconds=rest // 1000)
        self._least, self._most = min(self._least, ahead), max(self._most, ahead)
        off = max(self._most - ahead, ahead - self._least)
        if off > self._off:
            self._off, self._off_at = off, entry.line + 1

    def caveats(self) -> Iterator[str]:
        """What to say of it: nothing for a minute or less."""
        if self._fell_at:
            seconds = f"{self._fall.total_seconds():,.0f}"
            yield f"times: the wall clock falls by {seconds} seconds within an opening, up to line {self._fell_at}"
        if self._off_at:
            seconds = f"{self._off.total_seconds():,.0f}"
            yield f"times: `time` goes {seconds} seconds off `mono` within an opening, up to line {self._off_at}"
