"""One attempt's entries and files: what is written, in which order, and what must be durable before what."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from proctor.core.canonical import encode
from proctor.core.waiting import in_thread
from proctor.evidence.journal import Journal
from proctor.evidence.kinds import Kind
from proctor.evidence.runfolder import RunFolder

_CHUNK = 1 << 20
# an entry holds at most 65,535 bytes, and a path at most 4,096 characters that may each take six when escaped
_FILES_PER_ENTRY = 100
_BYTES_PER_ENTRY = 48_000


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

    def post(self, kind: Kind, blobs: Mapping[str, bytes] | None = None, /, **body: Any) -> None:
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
        await asyncio.wait([pending[-1].written])
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
        found = await in_thread(_digest_new, self.folder, frozenset(self._filed), role)
        self._filed.update(each["path"] for each in found)
        for each in found:
            if each["path"] in self._derived:
                each["role"] = "derived"
        batch: list[dict[str, Any]] = []
        size = 0
        for each in found:
            weight = len(encode(each))
            if batch and (len(batch) == _FILES_PER_ENTRY or size + weight > _BYTES_PER_ENTRY):
                self.post(Kind.ATTEMPT_FILES, files=batch)
                batch, size = [], 0
            batch.append(each)
            size += weight
        if batch:
            self.post(Kind.ATTEMPT_FILES, files=batch)

    async def write(self, name: str, content: Any) -> None:
        """Write one derived JSON file of the attempt, whole or not at all. Raises Refusal DISK_FULL, WRITE_FAILED."""
        path = self._run.relative(self.folder / name)
        self._derived.add(name)
        await in_thread(self._run.write_atomic, path, encode(content))

    def unwrite(self, name: str) -> None:
        """Take back a derived file that no entry names yet."""
        if name not in self._filed:
            (self.folder / name).unlink(missing_ok=True)


def _digest_new(folder: Path, filed: frozenset[str], role: str) -> list[dict[str, Any]]:
    """Digest and fsync every regular file below `folder` that is not in `filed`, and every folder that holds it."""
    found: list[dict[str, Any]] = []
    for here, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(here) / name
            relative = path.relative_to(folder).as_posix()
            if relative in filed or not stat.S_ISREG(path.lstat().st_mode):
                continue
            found.append({"path": relative, **_digest(path), "role": role})
        _fsync_folder(Path(here))
    return found


def _digest(path: Path) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
        os.fsync(file.fileno())
    return {"sha256": digest.hexdigest(), "size": size}


def _fsync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
