"""Waiting for a future without owning it."""

from __future__ import annotations

import asyncio

import pytest

from proctor.core.waiting import until_done


@pytest.mark.parametrize("how", ["result", "fault", "cancelled"])
async def test_it_ends_with_the_future_whatever_came_of_that(how: str) -> None:
    work: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    waits = [asyncio.create_task(until_done(work)) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(wait.done() for wait in waits)
    if how == "result":
        work.set_result(1)
    elif how == "fault":
        work.set_exception(ValueError("no"))
        work.exception()
    else:
        work.cancel()
    await asyncio.gather(*waits)
    await until_done(work)


async def test_a_caller_that_is_cancelled_leaves_it_to_the_others() -> None:
    work: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    one, other = asyncio.create_task(until_done(work)), asyncio.create_task(until_done(work))
    await asyncio.sleep(0)
    one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await one
    assert not work.done()
    work.set_result(1)
    await other
