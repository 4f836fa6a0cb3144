"""Rates of a model: what starts when, in which order, on a clock that the test moves."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopback import FakeClock
from proctor.gateway.rates import Rate

MINUTE = 60 * 10**9


def rate(clock: FakeClock, rpm: int | None = None, tpm: int | None = None) -> Rate:
    return Rate(rpm, tpm, clock, clock.sleep)


async def test_without_limits_nothing_waits() -> None:
    clock = FakeClock()
    for _ in range(1000):
        await rate(clock).take(10**9)
    assert clock.slept == []


@pytest.mark.parametrize(("rpm", "at_once"), [(1, 1), (60, 1), (120, 2), (6000, 100)])
async def test_requests_of_a_minute(rpm: int, at_once: int) -> None:
    clock = FakeClock()
    limited = rate(clock, rpm=rpm)
    for _ in range(at_once):
        await limited.take(0)
    assert clock.now == 0
    await limited.take(0)
    assert clock.now == MINUTE // rpm


async def test_a_request_of_many_tokens_goes_and_the_next_makes_up_for_it() -> None:
    clock = FakeClock()
    limited = rate(clock, tpm=600)
    await limited.take(3010)
    assert clock.now == 0
    await limited.take(0)
    assert clock.now == 5 * MINUTE


async def test_a_guess_is_put_right() -> None:
    clock = FakeClock()
    limited = rate(clock, tpm=600)
    await limited.take(10)
    limited.correct(600)
    await limited.take(610)
    assert clock.now == MINUTE
    limited.correct(-610)
    await limited.take(0)
    assert clock.now == MINUTE


async def test_first_come_first_served() -> None:
    clock = FakeClock()
    limited = rate(clock, rpm=60)
    order: list[int] = []

    async def come(number: int) -> None:
        await limited.take(0)
        order.append(number)

    await asyncio.gather(*[come(number) for number in range(20)])
    assert order == list(range(20))
    assert clock.now == 19 * 10**9


async def test_who_is_cancelled_gives_its_place_up() -> None:
    clock = FakeClock()
    limited = rate(clock, rpm=60)
    await limited.take(0)
    blocked = asyncio.Event()
    free = asyncio.Event()

    async def held_up(seconds: float) -> None:
        blocked.set()
        await free.wait()
        clock.now += round(seconds * 1e9)

    limited = Rate(60, None, clock, held_up)
    await limited.take(0)
    first, second = asyncio.ensure_future(limited.take(0)), asyncio.ensure_future(limited.take(0))
    await blocked.wait()
    first.cancel()
    free.set()
    await second
    with pytest.raises(asyncio.CancelledError):
        await first
    assert clock.now == 10**9


@given(st.integers(1, 10_000), st.lists(st.integers(0, 5 * 10**9), max_size=60))
def test_no_minute_has_more_than_its_requests_and_a_second_of_them(rpm: int, pauses: list[int]) -> None:
    clock = FakeClock()

    async def run() -> list[int]:
        limited, starts = rate(clock, rpm=rpm), []
        for pause in pauses:
            clock.now += pause
            await limited.take(0)
            starts.append(clock.now)
        return starts

    starts = asyncio.run(run())
    for number, start in enumerate(starts):
        within = sum(start <= other < start + MINUTE for other in starts[number:])
        assert within <= rpm + max(1, rpm // 60)
