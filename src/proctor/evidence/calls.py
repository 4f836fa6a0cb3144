"""A record of calls that is being written: one file, a line an entry, many waiting and one group written at a time.

Lines are chained as those of a run's journal are, and hold the bodies of requests and replies themselves; a body of
more than a megabyte that came in pieces stands in a file of its own, in the folder `<record>.bodies`.
"""

from __future__ import annotations

import asyncio
import base64
import fcntl
import hashlib
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson

from proctor.core.clock import Clock
from proctor.core.ids import new_run_id
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import finish, until_done
from proctor.evidence.callstate import CLOSED, FORMAT, OPENED, CallState, read_calls
from proctor.evidence.disk import Appender, Disk, write_refusal
from proctor.evidence.exchanges import unanswered
from proctor.evidence.kinds import Kind
from proctor.evidence.packs import Blob, Content, Spooled
from proctor.evidence.runfolder import RunFolder

_Draft = tuple[str, str, int, dict[str, Any], list[Spooled]]


def bodies_folder(record: Path) -> Path:
    """Where the large bodies of a record are."""
    return record.with_name(record.name + ".bodies")


class CallRecord:
    """The one writer of a record, for one event loop; made by `open`, ended by `close`.

    `state` counts all that was posted. After an error of the disk `fault` is set, and nothing is taken any more.
    """

    def __init__(self, path: Path, file: Appender, lock: int, state: CallState, clock: Clock) -> None:
        """For `open`."""
        self.path = path
        self.run_id = state.record
        self.state = state
        self.fault: Refusal | None = None
        self.failed = asyncio.Event()
        self._file = file
        self._lock = lock
        self._clock = clock
        self._began = clock.mono_ns()
        self._bodies = RunFolder(bodies_folder(path))
        self._seq, self._head = state.size, state.head
        self._pending: list[tuple[_Draft, asyncio.Future[None]]] = []
        self._group: list[tuple[_Draft, asyncio.Future[None]]] = []
        self._last: asyncio.Future[None] | None = None
        self._writing = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="calls")
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(cls, path: Path, opened: Mapping[str, Any], clock: Clock) -> CallRecord:
        """Make a record, or go on with one: what was in flight in it is charged at its worst case. Durable.

        Args:
            opened: the fields of `gateway.opened` but for `format`, `record`, `opening` and `cut`.

        Raises:
            Refusal: as `read_calls`; `run_locked`: another process writes it; `out_unusable`, `disk_full`,
                `write_failed`.
        """
        file, lock, state = await asyncio.to_thread(_take, path)
        lost = dict(state.open)
        cut = {"bytes": state.torn} if state.torn else None
        state.record = state.record or new_run_id()
        record = cls(path, file, lock, state, clock)
        first = {**opened, "format": FORMAT, "record": state.record, "opening": state.openings + 1, "cut": cut}
        record.post(OPENED, first)
        for exchange, (_, held) in lost.items():
            end = {"exchange": exchange, "outcome": "unknown", "charged": str(held), "overrun": False}
            record.post(Kind.EXCHANGE_ENDED, {**end, **unanswered(None, estimated=True)})
        await record.settle()
        return record

    def post(
        self, kind: Kind | str, body: Mapping[str, Any], blobs: Mapping[str, Content] | None = None
    ) -> asyncio.Future[None]:
        """Put an entry in order now; durable when the future is done, which raises `disk_full`, `write_failed`.

        Args:
            blobs: contents by field.

        Raises:
            Refusal: `disk_full`, `write_failed` once there was one; `json_invalid`.
        """
        if self.fault is not None:
            raise _again(self.fault)
        name = kind.id if isinstance(kind, Kind) else kind
        whole, spooled = dict(body), []
        for key, content in (blobs or {}).items():
            whole[key] = _shown(content)
            if isinstance(content, Spooled):
                spooled.append(content)
        draft = (name, self._clock.utc(), self._clock.mono_ns() - self._began, whole, spooled)
        self.state.apply(name, whole)
        future: asyncio.Future[None] = self._loop.create_future()
        self._last = future
        self._pending.append((draft, future))
        if not self._writing:
            self._writing = True
            # not at once: whoever else can run in this turn of the loop joins the group
            self._loop.call_soon(self._write)
        return future

    async def settle(self) -> None:
        """Wait until all that was posted is durable. Raises Refusal: `disk_full`, `write_failed`."""
        last = self._last
        if last is not None:
            # never the future itself: a cancelled caller would cancel what others must still hear the outcome of
            await until_done(last)
        if self.fault is not None:
            raise _again(self.fault)

    async def close(self, closed: Mapping[str, Any]) -> None:
        """Write the last entry, and let go of the file. Raises Refusal: `disk_full`, `write_failed`."""
        try:
            self.post(CLOSED, closed)
            await finish(self.settle())
        finally:
            self._thread.shutdown(wait=True)
            self._file.close()
            os.close(self._lock)

    def _write(self) -> None:
        self._group, self._pending = self._pending, []
        drafts = [draft for draft, _ in self._group]
        self._loop.run_in_executor(self._thread, self._commit, drafts).add_done_callback(self._written)

    def _written(self, work: asyncio.Future[None]) -> None:
        error = work.exception()
        if error is not None:
            reason = write_refusal(error, self.path.name) if isinstance(error, OSError) else _unwritten(error)
            self.fault = self.fault or reason
            self._group += self._pending
            self._pending = []
            self.failed.set()
        for _, future in self._group:
            if self.fault is None:
                future.set_result(None)
            else:
                future.set_exception(_again(self.fault))
                # whoever does not wait for it hears of the fault otherwise
                future.exception()
        self._writing = bool(self._pending)
        if self._writing:
            self._write()

    def _commit(self, drafts: list[_Draft]) -> None:
        """On the thread: bodies of their own first, then the lines that name them. Raises OSError, Refusal."""
        lines = []
        for kind, time, mono, body, spooled in drafts:
            for content in spooled:
                self._place(content)
            entry = {"body": body, "kind": kind, "mono": mono, "prev": self._head, "seq": self._seq, "time": time}
            line = orjson.dumps(entry, option=orjson.OPT_SORT_KEYS)
            lines.append(line + b"\n")
            self._head, self._seq = hashlib.sha256(line).hexdigest(), self._seq + 1
        self._file.append(b"".join(lines))
        self._file.sync()

    def _place(self, content: Spooled) -> None:
        disk = self._bodies.disk
        target = self._bodies.path / Blob(content.sha256, content.size).path
        disk.make_dirs(target.parent)
        disk.rename(content.draft, target)
        disk.sync_dir(target.parent)


def _take(path: Path) -> tuple[Appender, int, CallState]:
    """The record's file and its lock, and what stands in it, with an unfinished line cut off. Blocks."""
    disk = Disk()
    try:
        disk.make_dirs(path.absolute().parent)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise Refusal(Reason.OUT_UNUSABLE, f"the record cannot be made: {error.strerror}", path=str(path)) from error
    try:
        check_free(lock, path)
        state = read_calls(path)
        if state.torn:
            disk.truncate(path, state.offset)
        disk.sync_dir(path.absolute().parent)
        for draft in (bodies_folder(path) / "blobs").glob("*/.*"):
            disk.unlink(draft)
        return disk.open_append(path), lock, state
    except OSError as error:
        os.close(lock)
        raise write_refusal(error, str(path)) from error
    except BaseException:
        os.close(lock)
        raise


def check_free(descriptor: int, path: Path) -> None:
    """Take the lock of a record, or raise Refusal `run_locked`."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Refusal(Reason.RUN_LOCKED, "another process writes this record", path=str(path)) from error


def _shown(content: Content) -> dict[str, Any]:
    """A body as an entry has it: its text, or its bytes in base64, or the file that holds it."""
    if isinstance(content, Spooled):
        return {"file": Blob(content.sha256, content.size).path, "sha256": content.sha256, "size": content.size}
    try:
        return {"text": content.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode("ascii")}


def _unwritten(error: BaseException) -> Refusal:
    return Refusal(Reason.WRITE_FAILED, f"writing the record failed: {error!r}", path="--record")


def _again(refusal: Refusal) -> Refusal:
    # one instance raised in many tasks would collect all their tracebacks
    return Refusal(refusal.reason, refusal.message, path=refusal.path)
