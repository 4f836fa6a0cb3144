"""The wall clock steps back and forth while a journal is written: nothing is ordered by it, and it is said."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from disks import UnsyncedDisk
from journal_parts import KEY, attempt_admitted, attempt_ended, boundary, create, ended, reopen
from proctor.core.clock import SystemClock
from proctor.evidence.entries import Entry
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_entries
from proctor_verify import verify

_START = datetime(2026, 11, 30, tzinfo=UTC)
_FIRST, _LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
# Seconds by which the clock is set before each of its readings.
_STEPS = st.lists(
    st.one_of(st.integers(-61, 61), st.integers(-(10**5), 10**5), st.integers(-(10**11), 10**11)), max_size=30
)


class SteppingClock(SystemClock):
    """Set by somebody before each reading; the monotonic one is the machine's."""

    def __init__(self, steps: Sequence[int]) -> None:
        self._steps = list(steps)
        self._now = _START

    def utc(self) -> str:
        step = self._steps.pop(0) if self._steps else 0
        try:
            self._now = min(max(self._now + timedelta(seconds=step, microseconds=1), _FIRST), _LAST)
        except OverflowError:
            self._now = _FIRST if step < 0 else _LAST
        return f"{self._now.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


async def _written(path: Path, steps: Sequence[int]) -> list[Entry]:
    clock = SteppingClock(steps)
    run, journal = await create(path, disk=UnsyncedDisk(), clock=clock)
    for task in ("first", "second"):
        body = attempt_admitted(task)
        await journal.append(Kind.ATTEMPT_ADMITTED, body)
        for _ in range(3):
            await journal.append(Kind.ATTEMPT_BOUNDARY, boundary(body["attempt"]))
        await journal.append(Kind.ATTEMPT_ENDED, attempt_ended(body["attempt"]))
        await journal.close(ended())
        _, journal = await reopen(path, disk=UnsyncedDisk(), clock=clock)
    await journal.close(ended())
    return list(read_entries(run.journal_path))


def _worst_fall(entries: Sequence[Entry]) -> timedelta:
    """How far times fall within an opening, from the latest before."""
    worst, latest = timedelta(0), datetime.min
    for entry in entries:
        now = datetime.fromisoformat(entry.time[:-1])
        if entry.kind is Kind.RUN_RESUMED:
            latest = now
        worst, latest = max(worst, latest - now), max(latest, now)
    return worst


def _most_off(entries: Sequence[Entry]) -> timedelta:
    """How far times go off `mono` within an opening."""
    most, ahead = timedelta(0), list[timedelta]()
    for entry in entries:
        now = datetime.fromisoformat(entry.time[:-1]) - datetime.min - timedelta(microseconds=entry.mono // 1000)
        ahead = [now] if entry.kind is Kind.RUN_RESUMED else [*ahead, now]
        most = max(most, max(ahead) - min(ahead))
    return most


@settings(max_examples=25, deadline=None)
@given(steps=_STEPS)
@example(steps=[0, -60, 0])
@example(steps=[0, 0, 0, -61, 61, -61])
@example(steps=[-(10**11), 10**11] * 8)
def test_a_journal_whose_wall_clock_is_set(steps: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("run")
    entries = asyncio.run(_written(path, steps))
    monos: list[int] = []
    for entry in entries:
        monos = [entry.mono] if entry.kind is Kind.RUN_RESUMED else [*monos, entry.mono]
        assert monos == sorted(monos)
    report = verify(path, KEY.fingerprint)
    assert [check for check in report.failed() if check.startswith(("journal.", "checkpoints.", "key."))] == []
    fall = _worst_fall(entries)
    said = [caveat for caveat in report.caveats if "wall clock falls" in caveat]
    assert bool(said) == (fall > timedelta(minutes=1))
    assert all(f"by {fall.total_seconds():,.0f} seconds" in caveat for caveat in said)
    off = _most_off(entries)
    said = [caveat for caveat in report.caveats if "off `mono`" in caveat]
    # as exact as it is looked at
    assert abs(off - timedelta(minutes=1)) <= timedelta(seconds=2) or bool(said) == (off > timedelta(minutes=1))
