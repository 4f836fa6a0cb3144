"""One attempt's entries and files: what is written, in which order, and what must be durable before what."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from proctor.core.canonical import encode
from proctor.core.waiting import in_thread, until_done
from proctor.evidence.attempt_files import digested, in_entries
from proctor.evidence.journal import Journal
from proctor.evidence.kinds import Kind
from proctor.evidence.packs import Content
from proctor.evidence.runfolder import RunFolder


class _Said(NamedTuple):
    written: asyncio.Future[int]
    kind: Kind
    body: dict[str, Any]


class Record:
    """Writes one attempt. `post` orders an entry, `add` also waits until it is durable."""

    def __init__(self, journal: Journal, run: RunFolder, attempt: str, folder: str) -> None:
        self._journal = journal
        self._run = run
        self._attempt = attempt
        self._filed: set[str] = set()
        self._derived: set[str] = set()
        self._pending: list[_Said] = []
        self.folder = run.path / folder
        self.said: dict[Kind, list[dict[str, Any]]] = {}

    async def add(self, kind: Kind, **body: Any) -> None:
        """Append and wait for the fsync that covers it, and all before it. Raises as `post` and `settle`."""
        self.post(kind, **body)
        await self.settle()

    def post(self, kind: Kind, blobs: Mapping[str, Content] | None = None, /, **body: Any) -> None:
        """Append in order; `settle` waits.

        Raises:
            Refusal: the journal takes no more (DISK_FULL, WRITE_FAILED), or JSON_INVALID.
        """
        whole = {"attempt": self._attempt, **body}
        self._pending.append(_Said(self._journal.post(kind, whole, blobs=blobs), kind, whole))
        self.said.setdefault(kind, []).append(whole)

    async def settle(self) -> None:
        """Wait until all that was posted is durable; what could not be written counts as never said.

        Raises:
            Refusal: the first of what the writer raised (ENTRY_TOO_LARGE, DISK_FULL, WRITE_FAILED).
        """
        # what is posted meanwhile, by another call of the same attempt, is that one's to wait for
        pending = self._pending[:]
        if not pending:
            return
        # never gather: a cancelled caller would cancel what others must still hear the outcome of. The journal keeps
        # the order, so the last one is durable last
        await until_done(pending[-1].written)
        if len(self._pending) == len(pending) and self._pending[0] is pending[0]:
            # nobody was here meanwhile, as nearly always
            self._pending.clear()
        else:
            written = {id(each) for each in pending}
            self._pending = [each for each in self._pending if id(each) not in written]
        failed = [(each, error) for each in pending if (error := each.written.exception()) is not None]
        for each, _ in failed:
            if each.body in self.said[each.kind]:
                self.said[each.kind].remove(each.body)
        if failed:
            raise failed[0][1]

    async def open(self) -> None:
        """Make the attempt's folder."""
        await in_thread(self.folder.mkdir, parents=True)

    async def file_all(self, role: str) -> None:
        """Name every file of the attempt's folder that no entry names yet, after it is safely on disk.

        Args:
            role: of those that `write` did not make.
        """
        found = await in_thread(digested, self.folder, frozenset(self._filed))
        self._filed.update(each["path"] for each in found)
        for each in found:
            each["role"] = "derived" if each["path"] in self._derived else role
        for group in in_entries(found):
            self.post(Kind.ATTEMPT_FILES, files=group)

    async def write(self, name: str, content: Any) -> None:
        """Write one derived JSON file of the attempt, whole or not at all. Raises Refusal DISK_FULL, WRITE_FAILED."""
        path = self._run.relative(self.folder / name)
        self._derived.add(name)
        await in_thread(self._run.write_atomic, path, encode(content))

    def unwrite(self, name: str) -> None:
        """Take back a derived file that no entry names yet."""
        if name not in self._filed:
            (self.folder / name).unlink(missing_ok=True)
