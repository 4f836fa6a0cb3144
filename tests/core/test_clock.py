"""The wall clock's moments, as they are spelled."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proctor.core.clock import SystemClock

_LAST = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp())
_MOMENTS = st.tuples(st.integers(0, _LAST), st.integers(0, 999_999_999))


@given(moments=st.lists(_MOMENTS, min_size=1, max_size=6))
@example(moments=[(1, 999_999_999), (2, 0), (2, 1_000), (1, 0), (1, 999)])
def test_a_moment_is_spelled_to_the_microsecond_also_where_the_clock_steps_back(moments: list[tuple[int, int]]) -> None:
    clock = SystemClock()
    with pytest.MonkeyPatch.context() as patch:
        for second, nanoseconds in moments:
            patch.setattr(time, "time_ns", lambda now=second * 10**9 + nanoseconds: now)
            spelled = clock.utc()
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second, microseconds=nanoseconds // 1000)
            assert spelled == f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def test_a_moment_is_now() -> None:
    before, spelled, after = datetime.now(UTC), SystemClock().utc(), datetime.now(UTC)
    a_tick = timedelta(microseconds=1)
    assert before - a_tick <= datetime.fromisoformat(spelled) <= after + a_tick
