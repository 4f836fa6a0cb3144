"""Calls from a thread into an event loop: in their order, each made, also where the loop has stopped to listen."""

from __future__ import annotations

import asyncio
import errno
import os
import selectors
import threading
from collections.abc import Callable

import pytest

from proctor.evidence.into_loop import IntoLoop


def _in_a_thread(work: Callable[[], None]) -> None:
    """Do this in a thread, to its end, while the loop stands still."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


async def test_calls_are_made_in_their_order_while_the_loop_goes_on() -> None:
    loop, made = asyncio.get_running_loop(), list[int]()
    done = loop.create_future()
    into_loop = IntoLoop(loop)

    def take(number: int) -> None:
        assert threading.current_thread() is threading.main_thread()
        made.append(number)
        if number == 999:
            done.set_result(None)

    def give() -> None:
        for number in range(1000):
            into_loop.call(take, number)

    thread = threading.Thread(target=give)
    thread.start()
    await done
    thread.join()
    into_loop.detach()
    into_loop.close()
    assert made == list(range(1000))


async def test_what_a_call_raises_is_reported_and_the_next_one_is_made() -> None:
    loop, reported = asyncio.get_running_loop(), list[BaseException]()
    done = loop.create_future()
    loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
    into_loop = IntoLoop(loop)

    def fail() -> None:
        raise ValueError("this one")

    def both() -> None:
        into_loop.call(fail)
        into_loop.call(done.set_result, "the next")

    _in_a_thread(both)
    assert await done == "the next"
    into_loop.detach()
    into_loop.close()
    assert [str(error) for error in reported] == ["this one"]


async def test_what_the_loop_did_not_listen_to_is_called_once_the_thread_is_done() -> None:
    loop, made = asyncio.get_running_loop(), list[str]()
    done = loop.create_future()
    into_loop = IntoLoop(loop)

    def before() -> None:
        into_loop.call(made.append, "before")

    def after() -> None:
        into_loop.call(made.append, "after")
        into_loop.call(done.set_result, None)
        into_loop.close()

    _in_a_thread(before)
    into_loop.detach()
    _in_a_thread(after)
    await done
    assert made == ["before", "after"]


def test_a_closed_loop_is_told_nothing_and_the_descriptor_is_given_back() -> None:
    selector, made = selectors.DefaultSelector(), list[str]()
    loop = asyncio.SelectorEventLoop(selector)
    its_own = set(selector.get_map())
    into_loop = IntoLoop(loop)
    (watched,) = set(selector.get_map()) - its_own
    bell = int(str(watched))
    os.fstat(bell)
    _in_a_thread(lambda: into_loop.call(made.append, "never"))
    loop.close()

    def refused() -> None:
        with pytest.raises(RuntimeError, match="closed"):
            into_loop.call(made.append, "never")
        into_loop.close()

    _in_a_thread(refused)
    assert made == []
    with pytest.raises(OSError) as raised:
        os.fstat(bell)
    assert raised.value.errno == errno.EBADF
