"""Files out of a container: regular files only, within caps, from an archive that an agent has its hand in."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from proctor.core.files import NO_SPACE
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import in_thread
from proctor.sandbox.base import Fetched
from proctor.sandbox.docker.engine import Engine, EngineError
from proctor.sandbox.docker.merged import Merged
from proctor.sandbox.docker.paths import KERNEL, Seen, look, within
from proctor.sandbox.docker.tarstream import Entry, Kind, Malformed, TarReader

_COPY_SEC = 600.0
_DEPTH_CAP = 128
# the host's own folder comes before it, and a path has 4,096 bytes
_PATH_CAP = 2_048
# beyond it the number of what is left out is a lower bound
_MOST_COUNTED = 500_000
# What is too large to be taken still comes over the line, for an archive has no seats: so much of it is let pass.
_MOST_PASSED = 256 << 20


class _Budget:
    def __init__(self, files: int, size: int) -> None:
        self.files, self.size, self.passed = files, size, _MOST_PASSED
        self.first_over: str | None = None
        self.over = 0


async def get(
    engine: Engine,
    container: str,
    paths: Sequence[str],
    into: Path,
    *,
    merged: Merged,
    cap_bytes: int,
    cap_files: int,
) -> list[Fetched]:
    """Bring plain `paths` out below `into`, in order. Sockets are not told: the engine leaves them out of archives.

    Raises:
        EngineError: it cannot give them.
        Refusal: DISK_FULL or OUT_UNUSABLE for `into`; SANDBOX_LOST where what comes is no archive.
    """
    budget = _Budget(cap_files, cap_bytes)
    rows: list[Fetched] = []
    seen = await asyncio.gather(*(_look(engine, container, path) for path in paths))
    if "not there" in seen:
        await engine.call("GET", f"containers/{container}/json")  # or the container is not
    for path, there in zip(paths, seen, strict=True):
        tree = _Tree(path, into, budget, rows)
        if isinstance(there, str):
            tree.skip(path, there)
            continue
        if there.kind is Kind.FOLDER and await in_thread(merged.is_empty, path):
            continue
        try:
            async with engine.answer(
                "GET", f"containers/{container}/archive", params={"path": path}, deadline_sec=_COPY_SEC
            ) as response:
                await tree.take(TarReader(response.content))
        except EngineError as fault:
            if not fault.gone:
                raise
            tree.skip(path, "not there")
        except Malformed as fault:
            raise Refusal(
                Reason.SANDBOX_LOST, f"what the engine gives out is no archive: {fault}", path=path
            ) from fault
        except OSError as fault:
            full = fault.errno in NO_SPACE
            reason = Reason.DISK_FULL if full else Reason.OUT_UNUSABLE
            raise Refusal(reason, f"a file from inside cannot be kept: {fault}", path=path) from fault
    if budget.first_over is not None:
        more = f"{'at least ' if budget.over >= _MOST_COUNTED else ''}{budget.over:,} more"
        rows.append(Fetched(budget.first_over, None, 0, f"cap of files: {more} left out"))
    return rows


async def _look(engine: Engine, container: str, path: str) -> Seen | str:
    """What stands there, or why it is skipped: what is no file or folder is not asked for."""
    if any(within(path, folder) for folder in KERNEL):
        return "kernel file"
    there = await look(engine, container, path)
    if there is None:
        return "not there"
    return there if there.kind in (Kind.FILE, Kind.FOLDER) else there.kind.value


class _Tree:
    """What comes of one wanted path."""

    def __init__(self, top: str, into: Path, budget: _Budget, rows: list[Fetched]) -> None:
        self._top = top
        self._into = into
        self._budget = budget
        self._rows = rows
        self._kept: dict[str, Path] = {}
        self._closed: str | None = None
        self._empty: str | None = None

    def skip(self, path: str, why: str) -> None:
        """One row for what is not taken."""
        if self._counts(path):
            self._budget.files -= 1
            self._rows.append(Fetched(path, None, 0, why))

    async def take(self, archive: TarReader) -> None:
        """Take all of an archive. Raises Malformed, OSError."""
        while (entry := await archive.next()) is not None and self._budget.over < _MOST_COUNTED:
            path = self._path(entry)
            if self._empty is not None and not within(path, self._empty):
                self.skip(self._empty, "empty folder")
            self._empty = None
            if self._closed is not None and within(path, self._closed):
                why = None
            else:
                why = await self._one(path, entry, archive)
                if why is not None:
                    self.skip(path, why)
            if archive.left > self._budget.passed:
                self._pass_over(path, why)
                return
            self._budget.passed -= archive.left
        if self._empty is not None:
            self.skip(self._empty, "empty folder")

    def _pass_over(self, path: str, why: str | None) -> None:
        after = "what comes after it is not looked at"
        if why is not None and self._rows and self._rows[-1].path == path:
            self._rows[-1] = Fetched(path, None, 0, f"{why}: {after}")
        else:
            self.skip(path, after)

    async def _one(self, path: str, entry: Entry, archive: TarReader) -> str | None:
        """Take one entry; why it is skipped, else None."""
        depth = path.count("/") - self._top.rstrip("/").count("/")
        if entry.kind is Kind.FOLDER:
            why = _unnameable(path) or ("too deep" if depth >= _DEPTH_CAP else None)
            if why is not None:
                self._closed = path
            elif depth:
                self._empty = path
            return why
        if entry.kind in (Kind.LINK, Kind.SPECIAL):
            return _unnameable(path) or entry.kind.value
        if (why := _unnameable(path)) is not None:
            return why
        if entry.kind is Kind.HARD_LINK:
            return self._again(path, entry)
        if entry.size > self._budget.size:
            return "cap of bytes"
        if not self._counts(path):
            return None
        target = self._place(path)
        with target.open("xb") as file:
            while data := await archive.read():
                if data.count(0) == len(data):
                    file.seek(len(data), os.SEEK_CUR)
                else:
                    file.write(data)
            file.truncate(entry.size)
            os.fchmod(file.fileno(), entry.mode & 0o777 | 0o600)
        self._keep(path, entry, target, entry.size)
        return None

    def _again(self, path: str, entry: Entry) -> str | None:
        """Another name of a file that came before."""
        first = self._kept.get(entry.to.strip("/"))
        if first is None:
            return "another name of what was not taken"
        size = first.stat().st_size
        if size > self._budget.size:
            return "cap of bytes"
        if self._counts(path):
            target = self._place(path)
            shutil.copyfile(first, target)
            target.chmod(first.stat().st_mode & 0o777)
            self._keep(path, entry, target, size)
        return None

    def _keep(self, path: str, entry: Entry, target: Path, size: int) -> None:
        self._budget.files -= 1
        self._budget.size -= size
        self._kept[entry.name.strip("/")] = target
        self._rows.append(Fetched(path, target, size, None))

    def _counts(self, path: str) -> bool:
        """Whether one row more fits; counted where not."""
        if self._budget.files > 0:
            return True
        self._budget.first_over = self._budget.first_over or path
        self._budget.over += 1
        return False

    def _path(self, entry: Entry) -> str:
        """An entry's path inside: an archive's first name is that of what was asked for. Raises Malformed."""
        names = [name for name in entry.name.split("/") if name not in ("", ".")]
        below = names[1:] if self._top != "/" else names
        if ".." in names:
            raise Malformed("a name leads elsewhere")
        return "/".join([self._top.rstrip("/"), *below]) or "/"

    def _place(self, path: str) -> Path:
        """Where a file goes on the host; nothing stands there. Raises OSError."""
        target = self._into / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        return target


def _unnameable(path: str) -> str | None:
    try:
        return "path too long" if len(path.encode()) > _PATH_CAP else None
    except UnicodeEncodeError:
        # evidence names files in JSON, which cannot hold this name
        return "name is no UTF-8"
