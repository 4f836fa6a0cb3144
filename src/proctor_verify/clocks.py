"""What the wall clock says beside the order of entries: where it was set, and where others' times contradict it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from proctor_verify.checks.heads import witnessed
from proctor_verify.journal import Entry
from proctor_verify.run import Run

MINUTE = timedelta(minutes=1)
_SECOND_NS = 10**9
# 9999-12-31T23:59:59Z, in seconds since 1970
_LAST = 253_402_300_799


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


def contradicted(run: Run) -> Iterator[str]:
    """Where receipts and witnesses say another time than entries that their checkpoints cover, or that name them."""
    early = [_lead(run.times.get(receipt.of), receipt.ended) for receipt in run.receipts.sound]
    late = [_lead(receipt.ended, run.receipts.named_at.get(receipt.path)) for receipt in run.receipts.sound]
    yield from _said(early, "receipts are dated", "before an entry that their checkpoint covers")
    yield from _said(late, "receipts are dated", "after the entry that names them")
    signed = [_lead(run.times.get(size), when) for size, when in _signed(run)]
    yield from _said(signed, "signatures of witnesses are dated", "before an entry that they cover")


def _said(leads: Sequence[timedelta], what: str, where: str) -> Iterator[str]:
    found = [lead for lead in leads if lead > MINUTE]
    if found:
        most = f"{max(found).total_seconds():,.0f}"
        yield f"times: {what} {where}, by up to {most} seconds ({len(found):,}): clocks differ, or times are made up"


def _lead(time: str | None, other: str | None) -> timedelta:
    """How much later a time is than another; nothing where one is not known."""
    if not time or not other:
        return timedelta(0)
    return datetime.fromisoformat(time) - datetime.fromisoformat(other)


def _signed(run: Run) -> Iterator[tuple[int, str]]:
    """The size that a witness signed, and when, where its signature says so."""
    for head in witnessed(run):
        for seen in head.seen_by:
            if seen is not None and seen.time is not None:
                yield head.size, datetime.fromtimestamp(min(seen.time, _LAST), UTC).isoformat()
