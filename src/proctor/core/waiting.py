"""Waiting: for work that is done to its end even if who waits is cancelled, and for the first of several things."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def finish(work: Awaitable[T]) -> T:
    """Do this to its end even if cancelled meanwhile; the cancellation, or else its own fault, is raised afterwards."""
    task = asyncio.ensure_future(_contained(work))
    cancelled = await wait_through(task)
    if cancelled is not None and task.exception() is None:
        raise cancelled
    return task.result()


async def first_of(*waits: asyncio.Future[Any]) -> None:
    """Wait until one of them is done; the others are cancelled, and all where the caller is."""
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def until_done(work: asyncio.Future[Any]) -> None:
    """Wait until it is done, whatever its outcome; a cancelled caller leaves it alone. A third of `asyncio.wait`."""
    if work.done():
        return
    waiter = asyncio.get_running_loop().create_future()

    def wake(_: asyncio.Future[Any]) -> None:
        if not waiter.done():
            waiter.set_result(None)

    work.add_done_callback(wake)
    try:
        await waiter
    finally:
        work.remove_done_callback(wake)


def first_fault(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first fault of a group, and of groups within it."""
    fault: BaseException = group
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return fault


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do blocking work in a thread. A cancelled caller waits for it: left alone it would write on behind its back."""
    return await finish(asyncio.to_thread(work, *args, **kwargs))


async def wait_through(work: asyncio.Future[Any]) -> asyncio.CancelledError | None:
    """Wait until `work` is done, whatever its outcome; returns the cancellation that came meanwhile, if any."""
    cancelled = None
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError as again:
            cancelled = again
    return cancelled


async def _contained(work: Awaitable[T]) -> T:
    try:
        return await work
    except SystemExit as fault:
        # out of a task of its own it would end the loop, and with it the run, before the record
        raise RuntimeError(f"SystemExit({fault.code!r})") from fault
