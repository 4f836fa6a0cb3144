"""Work that is done to its end, however often the one who waits for it is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from proctor.core.waiting import finish


async def test_clean_up_is_finished_before_a_cancellation_is_raised() -> None:
    begun, may_end, done = asyncio.Event(), asyncio.Event(), []

    async def work() -> str:
        begun.set()
        await may_end.wait()
        done.append(True)
        return "result"

    task = asyncio.ensure_future(finish(work()))
    await begun.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == [True]
    assert await finish(work()) == "result"


async def test_a_fault_is_raised_rather_than_the_cancellation() -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await may_end.wait()
        raise OSError("broken")

    task = asyncio.ensure_future(finish(work()))
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    may_end.set()
    with pytest.raises(OSError, match="broken"):
        await task


async def test_an_exit_in_the_work_does_not_end_the_loop() -> None:
    async def work() -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="SystemExit"):
        await finish(work())
