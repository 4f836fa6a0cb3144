"""The thread that writes a journal: it takes what waits as one group, and tells the event loop what became of it.

A queue wakes it, and it answers with one call into the loop for each group. Of the time that a lone entry takes, what
is not the disk's is the way there and back: nothing else may lie on it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from proctor.evidence.into_loop import IntoLoop
from proctor.evidence.writer import Draft, Stamps, Writer

T = TypeVar("T")

MAX_GROUP = 4096


class Waiting(NamedTuple):
    """An entry that has its place in the order, and who waits for it."""

    draft: Draft
    future: asyncio.Future[int]


class Told(NamedTuple):
    """What became of a group: the `seq` of its first, or the error that ended all writing.

    A checkpoint is told of as a group of none.
    """

    group: list[Waiting]
    first: int
    error: BaseException | None


class Commits:
    """One thread and its queue. All methods are for the event loop; none waits."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._into_loop = IntoLoop(loop)
        self._queue: SimpleQueue[Waiting | Callable[[], None] | None] = SimpleQueue()
        self._writer: Writer | None = None
        self._stamps: Stamps | None = None
        self._told: Callable[[Told], None] | None = None
        self._error: BaseException | None = None
        self._checkpoints = True
        self._over = False
        # A process that ends waits for no disk: who was not told was promised nothing.
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def begin(self, writer: Writer, stamps: Stamps, told: Callable[[Told], None]) -> None:
        """Before the first `put`: what writes, and what is called in the loop for each group."""
        self._writer, self._stamps, self._told = writer, stamps, told

    def put(self, waiting: Waiting) -> None:
        """An entry, behind everything that was put before."""
        self._queue.put(waiting)

    def wake(self) -> None:
        """Have a checkpoint made if one is due; or an entry is about to come.

        That the thread is awake by then saves a lone one a tenth of its time.
        """
        self._queue.put(None)

    def refuse(self, error: BaseException) -> None:
        """Write nothing more, but what is being written now: the rest is told of with this error."""
        self._error = self._error or error

    def make_no_checkpoints(self) -> None:
        """The one at the end covers what is yet to come; behind the last entry there may be none."""
        self._checkpoints = False

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Do something else in the thread, behind everything that was put before."""
        future: asyncio.Future[T] = self._loop.create_future()

        def job() -> None:
            self._call(_settle, future, _outcome(work))

        self._queue.put(job)
        return future

    def end(self) -> None:
        """Let the thread end, behind everything that was put before."""
        self._into_loop.detach()
        self._queue.put(self._end)

    def _end(self) -> None:
        self._over = True

    def _run(self) -> None:
        queue = self._queue
        while not self._over:
            item = queue.get()
            if item is None and not queue.empty():
                # what it was woken for is there already
                item = queue.get()
            # One that is due comes first, however long ago it became so; and one does where nothing more is to come.
            self._checkpoint()
            if isinstance(item, Waiting):
                item = self._commit(item)
                self._checkpoint()
            if item is not None and not self._over:
                item()
                self._checkpoint()
        self._into_loop.close()

    def _commit(self, first: Waiting) -> Callable[[], None] | None:
        """Write all that waits, up to something else to do, which is returned."""
        group, following, queue = [first], None, self._queue
        while len(group) < MAX_GROUP and not queue.empty():
            item = queue.get()
            if isinstance(item, Waiting):
                group.append(item)
            elif item is not None:
                following = item
                break
        seq = 0
        if self._error is None and self._writer is not None:
            written = _outcome(partial(self._writer.commit, [waiting.draft for waiting in group]))
            if isinstance(written, _Failed):
                self._error = written.error
            else:
                seq = written
        self._tell(Told(group, seq, self._error))
        if self._writer is not None:
            # while the loop wakes up
            self._writer.grow()
        return following

    def _checkpoint(self) -> None:
        writer, stamps = self._writer, self._stamps
        if writer is None or stamps is None or self._error is not None or not self._checkpoints:
            return
        if writer.is_checkpoint_due(stamps.mono()):
            made = _outcome(partial(writer.checkpoint, stamps))
            if isinstance(made, _Failed):
                self._error = made.error
            self._tell(Told([], 0, self._error))

    def _tell(self, told: Told) -> None:
        if self._told is not None:
            self._call(self._told, told)

    def _call(self, call: Callable[..., None], *arguments: Any) -> None:
        try:
            self._into_loop.call(call, *arguments)
        except RuntimeError:
            # The loop is closed: nobody is left to be told.
            self._over = True


class _Failed(NamedTuple):
    error: BaseException


def _outcome(work: Callable[[], T]) -> T | _Failed:
    """What came of it: an error of any kind is told in the loop, where somebody waits."""
    try:
        return work()
    except BaseException as error:
        return _Failed(error)


def _settle(future: asyncio.Future[T], outcome: T | _Failed) -> None:
    if future.done():
        return
    if isinstance(outcome, _Failed):
        future.set_exception(outcome.error)
    else:
        future.set_result(outcome)
