"""The journal: one appender for a run. Many wait, one group at a time is written, and who is told is durable.

The event loop orders entries, a thread of its own writes them (`commits`). After an error of the disk nothing is
retried: every waiter and later caller gets the refusal, and only `close` may still end the run on the record, on a
fresh handle.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from proctor.core.clock import Clock, SystemClock
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import wait_through
from proctor.evidence import openings, reserve
from proctor.evidence.commits import Commits, Told, Waiting
from proctor.evidence.disk import write_refusal
from proctor.evidence.entries import JOURNAL
from proctor.evidence.keys import OperatorKey
from proctor.evidence.kinds import Kind
from proctor.evidence.lock import Lock
from proctor.evidence.packs import Content, Spooled
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.writer import CHECKPOINT_NS, Draft, Stamps, Writer

# A disk that has not answered by then is taken for broken.
COMMIT_DEADLINE_SEC = 120.0

# What an end after an error may need to read the journal again; it does six times as many.
_REREAD_PER_SEC = 10_000


class Journal:
    """The one writer of a run. Made by `create` or `reopen`, ended by `close`; for one event loop."""

    def __init__(self, run: RunFolder, lock: Lock, stamps: Stamps, writer: Writer, commits: Commits) -> None:
        """For `create` and `reopen`."""
        self.run_id = writer.signer.run_id
        self.poisoned: Refusal | None = None
        self._run = run
        self._lock = lock
        self._stamps = stamps
        self._writer = writer
        self._commits = commits
        self._loop = asyncio.get_running_loop()
        self._unsettled: deque[Waiting] = deque()
        # Entries that the thread was given, and has told of.
        self._given = 0
        self._told = 0
        self._progress = 0.0
        self._quiet: asyncio.Future[None] | None = None
        self._closing = False
        self._deadline: asyncio.TimerHandle | None = None
        self._checkpoint_timer: asyncio.TimerHandle | None = None
        commits.begin(writer, stamps, self._hear)

    @classmethod
    async def create(
        cls,
        run: RunFolder,
        *,
        lock: Lock,
        key: OperatorKey,
        run_id: str,
        first: tuple[Kind, Mapping[str, Any]],
        clock: Clock | None = None,
    ) -> Journal:
        """Write entry 0 and the first checkpoint, durably: from here on the run exists.

        Raises:
            Refusal: `run_exists`, `disk_full`, `write_failed`.
            ValueError: `first` is not a whole `run.admitted` of this run, or the lock is another's.
        """
        kind, body = first
        if kind is not Kind.RUN_ADMITTED or body.get("run_id") != run_id:
            raise ValueError("the first entry is the run.admitted of this run")
        stamps = Stamps(clock or SystemClock())
        draft = stamps.draft(kind, body)
        return await cls._open(run, lock, stamps, lambda: openings.create(run, key, run_id, stamps, draft))

    @classmethod
    async def reopen(
        cls,
        run: RunFolder,
        *,
        lock: Lock,
        key: OperatorKey,
        resumed_body: Mapping[str, Any],
        clock: Clock | None = None,
    ) -> Journal:
        """Mend what the last writer left, and go on after it; attempts in flight end as `lost`.

        Args:
            resumed_body: of `run.resumed`, but for `previous_ended`.

        Raises:
            Refusal: `evidence_damaged` names the line or file, and nothing was changed; `run_not_found`,
                `format_unknown`, `evidence_unreadable`, `disk_full`, `write_failed`.
            ValueError: other fields, or the lock is another's.
        """
        stamps = Stamps(clock or SystemClock())
        body = dict(resumed_body)
        # Wrong fields are found before anything is mended.
        stamps.draft(Kind.RUN_RESUMED, {**body, "previous_ended": True})
        return await cls._open(run, lock, stamps, lambda: openings.reopen(run, key, stamps, body))

    @classmethod
    async def _open(cls, run: RunFolder, lock: Lock, stamps: Stamps, opening: Callable[[], Writer]) -> Journal:
        if not lock.holds(run):
            raise ValueError("the lock of this run is not held")
        commits = Commits(asyncio.get_running_loop())
        work = commits.run(opening)
        cancelled = await wait_through(work)
        error = work.exception()
        if error is None and cancelled is None:
            return cls(run, lock, stamps, work.result(), commits)
        commits.end()
        if error is None:
            work.result().close()
        elif isinstance(error, OSError):
            raise write_refusal(error, JOURNAL) from error
        raise error or cancelled or asyncio.CancelledError

    @property
    def size(self) -> int:
        """Durable entries."""
        return self._writer.durable.size

    @property
    def head(self) -> str:
        """SHA-256 (hex) of the last durable line."""
        return self._writer.durable.head

    @property
    def newest(self) -> Mapping[str, Any] | None:
        """The body of the `checkpoint.made` of the newest checkpoint of this opening; after `close`, of the last."""
        return self._writer.newest

    async def checkpoint(self) -> None:
        """Have a checkpoint made that covers all entries so far; returns once it stands, and is named.

        Raises:
            Refusal: `disk_full` or `write_failed` once the journal is poisoned.
            RuntimeError: it is closed.
        """
        self._require_open()
        await self._commits.run(self._writer.want_checkpoint)
        # one that is due comes before what waits next
        await self._commits.run(lambda: None)
        if self.poisoned is not None:
            raise _again(self.poisoned)

    async def append(self, kind: Kind, body: Mapping[str, Any], *, blobs: Mapping[str, Content] | None = None) -> int:
        """Append an entry; returns its `seq` once it is durable. Cancelled, it is written all the same.

        Raises: as `post`, and what its future raises.
        """
        return await self.post(kind, body, blobs=blobs)

    def post(
        self, kind: Kind, body: Mapping[str, Any], *, blobs: Mapping[str, Content] | None = None
    ) -> asyncio.Future[int]:
        """Put an entry in order now, durable when the future is done. Order of calls is order of entries.

        Args:
            body: read before this returns.
            blobs: content by field; the field becomes the blob reference.

        Raises:
            ValueError: fields that are not the kind's.
            Refusal: `json_invalid`, `entry_too_large`; `disk_full` or `write_failed` once the journal is poisoned, and
                then the future raises it, too.
            RuntimeError: it is closed.
        """
        self._require_open()
        if self._told == self._given:
            self._commits.wake()
        try:
            draft = self._stamps.draft(kind, body, blobs)
        except (ValueError, Refusal):
            for content in (blobs or {}).values():
                if isinstance(content, Spooled):
                    self._run.disk.unlink(content.draft)
            raise
        return self._post(draft)

    async def close(self, ended_body: Mapping[str, Any] | None, *, keep_lock: bool = False) -> None:
        """Write `run.ended` (unless the body is None) and the checkpoint over all; let go of the run. Once.

        With `keep_lock` the run stays this process's, where all went well, until `let_go`.

        After an error of the disk the closing entries go to a fresh handle behind the last durable line, into the
        space that was reserved; attempts in flight end as `interrupted`, with the error as their exception. A
        cancelled caller waits all the same: evidence is closed, or the refusal says that it is not.

        Raises:
            Refusal: `disk_full`, `write_failed`: the run has no end on the record.
            ValueError: fields that are not those of `run.ended`; nothing happened.
        """
        ended = None if ended_body is None else self._stamps.draft(Kind.RUN_ENDED, ended_body)
        if self._closing:
            return
        self._closing = True
        work = asyncio.ensure_future(self._close(ended, keep_lock))
        cancelled = await wait_through(work)
        work.result()
        if cancelled is not None:
            raise cancelled

    def release_reserve(self) -> None:
        """Give back the reserved space before the end, for files that `run.ended` is to name. Raises OSError."""
        reserve.release(self._run)

    def let_go(self) -> None:
        """Let go of a run that `close` kept."""
        self._lock.release()

    def _require_open(self) -> None:
        if self.poisoned is not None:
            raise _again(self.poisoned)
        if self._closing:
            raise RuntimeError("the journal is closed")

    async def _close(self, ended: Draft | None, keep_lock: bool) -> None:
        self._commits.make_no_checkpoints()
        if ended is not None and self.poisoned is None:
            self._post(ended).add_done_callback(_read)
        try:
            async with asyncio.timeout(COMMIT_DEADLINE_SEC + self.size / _REREAD_PER_SEC):
                if self._told != self._given:
                    self._quiet = self._loop.create_future()
                    await self._quiet
                await self._commits.run(self._last_job(ended))
        except TimeoutError as error:
            # The lock stays with this process: its thread may still come to write.
            raise Refusal(Reason.WRITE_FAILED, "the disk does not answer", path=JOURNAL) from error
        except OSError as error:
            self._lock.release()
            raise write_refusal(error, JOURNAL) from error
        except Refusal:
            self._lock.release()
            raise
        finally:
            self._cancel(self._deadline)
            self._cancel(self._checkpoint_timer)
            self._commits.end()
        if not keep_lock:
            self._lock.release()

    def _last_job(self, ended: Draft | None) -> Callable[[], None]:
        run, writer, stamps, poisoned = self._run, self._writer, self._stamps, self.poisoned
        if poisoned is None:
            return lambda: openings.finish(run, writer)
        return lambda: openings.finish_after(run, writer, stamps, poisoned.reason, ended)

    def _post(self, draft: Draft) -> asyncio.Future[int]:
        future: asyncio.Future[int] = self._loop.create_future()
        waiting = Waiting(draft, future)
        if self._told == self._given:
            self._progress = self._loop.time()
            if self._deadline is None:
                self._deadline = self._loop.call_later(COMMIT_DEADLINE_SEC, self._look_at_disk)
        self._given += 1
        self._unsettled.append(waiting)
        self._commits.put(waiting)
        return future

    def _hear(self, told: Told) -> None:
        self._told += len(told.group)
        self._progress = self._loop.time()
        if self._told == self._given and self._quiet is not None and not self._quiet.done():
            self._quiet.set_result(None)
        if told.error is not None or self.poisoned is not None:
            self._poison(told.error)
            return
        for seq, waiting in enumerate(told.group, told.first):
            self._unsettled.popleft()
            if not waiting.future.done():
                waiting.future.set_result(seq)
        if not told.group:
            self._cancel(self._checkpoint_timer)
            self._checkpoint_timer = None
        if self._checkpoint_timer is None and self._writer.is_uncovered:
            self._checkpoint_timer = self._loop.call_later(CHECKPOINT_NS / 1e9, self._look_at_checkpoint)

    def _look_at_checkpoint(self) -> None:
        self._checkpoint_timer = None
        self._commits.wake()

    def _look_at_disk(self) -> None:
        """One timer for all groups: each would cost as much as a tenth of its entry."""
        self._deadline = None
        if self._told == self._given:
            return
        left = self._progress + COMMIT_DEADLINE_SEC - self._loop.time()
        if left > 0:
            self._deadline = self._loop.call_later(left, self._look_at_disk)
        else:
            self._poison(TimeoutError("the disk does not answer"))

    def _poison(self, error: BaseException | None) -> None:
        if self.poisoned is None:
            if isinstance(error, OSError):
                self.poisoned = write_refusal(error, JOURNAL)
            else:
                self.poisoned = Refusal(Reason.WRITE_FAILED, f"writing evidence failed: {error!r}", path=JOURNAL)
        self._commits.refuse(self.poisoned)
        for waiting in self._unsettled:
            if not waiting.future.done():
                waiting.future.set_exception(_again(self.poisoned))
                _read(waiting.future)
        self._unsettled.clear()

    @staticmethod
    def _cancel(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()


def _again(refusal: Refusal) -> Refusal:
    # One instance raised in many tasks would collect all their tracebacks.
    return Refusal(refusal.reason, refusal.message, path=refusal.path)


def _read(future: asyncio.Future[int]) -> None:
    # So that one that nobody waits for is no noise in a log: `poisoned` says it to all.
    if not future.cancelled():
        future.exception()
