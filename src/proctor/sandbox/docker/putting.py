"""Files into a container: what is to be put is looked at, then what stands there, and one archive does the rest."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import in_thread
from proctor.sandbox.base import PutItem
from proctor.sandbox.docker.engine import Engine, EngineError
from proctor.sandbox.docker.paths import KERNEL, look, parents, within
from proctor.sandbox.docker.tables import Tables
from proctor.sandbox.docker.tarstream import BLOCK, END, PIECE, Kind, TarReader, header, padding
from proctor.sandbox.rules import plain

_COPY_SEC = 600.0
_AT_ONCE = 16


@dataclass(frozen=True)
class Piece:
    """One entry of the archive: what stands at `path` afterwards. The content is that of `source`, or `content`."""

    path: str
    kind: Kind
    mode: int
    mtime: int
    size: int = 0
    to: str = ""
    source: Path | None = None
    content: bytes = b""
    uid: int = 0
    gid: int = 0


async def put(engine: Engine, container: str, items: Sequence[PutItem], *, mounts: Sequence[str], now: int) -> None:
    """Bring items in. `mounts` are paths inside that cannot be replaced; `now` is the time of what has none, in s.

    Raises:
        EngineError: it does not take them.
        Refusal: PATH_UNSAFE, FILE_UNREADABLE, INVALID_VALUE for an owner.
    """
    targets = [plain(item.target) for item in items]
    for item, target in zip(items, targets, strict=True):
        _refuse_mounted(item, target, mounts)
    listed = await in_thread(_listed, items, targets, now)
    plan = _Plan(engine, container)
    for item, pieces in zip(items, listed, strict=True):
        await plan.add(item, pieces)
    archive = _Archive(plan.pieces)
    try:
        async with engine.answer(
            "PUT",
            f"containers/{container}/archive",
            params={"path": "/"},
            data=archive.chunks(),
            content_type="application/x-tar",
            deadline_sec=_COPY_SEC,
        ):
            return
    except EngineError as fault:
        if archive.fault is not None:
            raise archive.fault from fault
        if fault.status is None or fault.gone:
            raise
        for target in targets:
            for parent in parents(target):
                seen = await look(engine, container, parent)
                if seen is not None and seen.kind not in (Kind.FOLDER, Kind.LINK):
                    raise Refusal(Reason.PATH_UNSAFE, f"{parent} inside is no folder", path=target) from fault
        raise Refusal(
            Reason.PATH_UNSAFE, f"the engine cannot put files there: {fault.text}", observed=targets
        ) from fault


class _Plan:
    """Entries of the archive, decided by what stands inside, or will by then."""

    def __init__(self, engine: Engine, container: str) -> None:
        self._engine = engine
        self._container = container
        self._tables = Tables(engine, container)
        self._made: dict[str, Kind] = {}
        self._new: set[str] = set()
        self.pieces: list[Piece] = []

    async def add(self, item: PutItem, pieces: list[Piece]) -> None:
        """Add one item, of which the first piece is the target itself."""
        uid, gid = (0, 0) if item.owner is None else await self._tables.ids(item.owner)
        top = pieces[0]
        there = await self._there(top.path)
        if item.fresh and there is not None:
            # a file takes the place of anything, folders and all in them, and a folder that of the file
            self.pieces.append(Piece(top.path, Kind.FILE, 0o600, top.mtime))
            self._forget(top.path)
            there = None
        if top.kind is Kind.FOLDER and there is Kind.FOLDER:
            if item.mode is not None or item.owner is not None:
                self.pieces.append(await self._as_it_is(top, item, uid, gid))
            await self._below(pieces[1:], uid, gid)
            return
        if there is Kind.FOLDER:
            raise Refusal(Reason.PATH_UNSAFE, f"{top.path} inside is a folder", path=top.path)
        mode = top.mode if item.mode is None or top.kind is Kind.LINK else item.mode
        self._emit(replace(top, mode=mode), uid, gid)
        self._new.add(top.path)
        await self._below(pieces[1:], uid, gid)

    async def _below(self, pieces: list[Piece], uid: int, gid: int) -> None:
        """What a folder holds: a folder that is there keeps its mode, owner and time."""
        for level in _levels(pieces):
            found = await self._seen([piece.path for piece in level])
            for piece in level:
                there = found[piece.path]
                if piece.kind is Kind.FOLDER and there is Kind.FOLDER:
                    continue
                if there is Kind.FOLDER:
                    raise Refusal(Reason.PATH_UNSAFE, f"{piece.path} inside is a folder", path=piece.path)
                if piece.kind is Kind.FOLDER:
                    self._new.add(piece.path)
                self._emit(piece, uid, gid)

    async def _seen(self, paths: Sequence[str]) -> dict[str, Kind | None]:
        gate = asyncio.Semaphore(_AT_ONCE)

        async def one(path: str) -> Kind | None:
            async with gate:
                return await self._there(path)

        return dict(zip(paths, await asyncio.gather(*map(one, paths)), strict=True))

    async def _there(self, path: str) -> Kind | None:
        """What stands at a path, or will when this archive is unpacked so far."""
        if path in self._made:
            return self._made[path]
        if any(parent in self._new for parent in parents(path)):
            return None
        seen = await look(self._engine, self._container, path)
        return None if seen is None else seen.kind

    def _emit(self, piece: Piece, uid: int, gid: int) -> None:
        self.pieces.append(replace(piece, uid=uid, gid=gid))
        self._made[piece.path] = piece.kind

    def _forget(self, path: str) -> None:
        self._made = {made: kind for made, kind in self._made.items() if not within(made, path)}
        self._new = {new for new in self._new if not within(new, path)}

    async def _as_it_is(self, top: Piece, item: PutItem, uid: int, gid: int) -> Piece:
        """A folder that is there, with the wanted mode and owner and else its own."""
        async with self._engine.answer(
            "GET", f"containers/{self._container}/archive", params={"path": top.path}
        ) as response:
            entry = await TarReader(response.content).next()
        if entry is None:
            raise Refusal(Reason.PATH_UNSAFE, f"{top.path} inside is no folder", path=top.path)
        mode = entry.mode if item.mode is None else item.mode
        owner = (entry.uid, entry.gid) if item.owner is None else (uid, gid)
        return replace(top, mode=mode, uid=owner[0], gid=owner[1])


def _refuse_mounted(item: PutItem, target: str, mounts: Sequence[str]) -> None:
    kernel = any(within(target, folder) for folder in KERNEL)
    if kernel or (item.fresh and any(within(mount, target) for mount in (*mounts, *KERNEL))):
        raise Refusal(Reason.PATH_UNSAFE, f"{target} inside is mounted and cannot be replaced", path=target)


def _levels(pieces: list[Piece]) -> Iterator[list[Piece]]:
    """Pieces by depth: what stands in a folder matters only where the folder does."""
    by_depth: dict[int, list[Piece]] = {}
    for piece in pieces:
        by_depth.setdefault(piece.path.count("/"), []).append(piece)
    for depth in sorted(by_depth):
        yield by_depth[depth]


def _listed(items: Sequence[PutItem], targets: Sequence[str], now: int) -> list[list[Piece]]:
    """Each item's pieces, folders before what is in them. Raises Refusal (FILE_UNREADABLE, PATH_UNSAFE)."""
    listed = []
    for item, target in zip(items, targets, strict=True):
        if item.content is not None:
            listed.append([Piece(target, Kind.FILE, 0o644, now, len(item.content), content=item.content)])
        elif item.source is None:
            listed.append([Piece(target, Kind.FOLDER, 0o755, now)])
        else:
            try:
                listed.append(list(_walk(item.source, target)))
            except OSError as fault:
                raise _unreadable(fault) from fault
    return listed


def _walk(source: Path, target: str) -> Iterator[Piece]:
    pending = [(source, target)]
    while pending:
        path, inner = pending.pop()
        info = path.lstat()
        mode, mtime = stat.S_IMODE(info.st_mode) & 0o777, int(info.st_mtime)
        if stat.S_ISLNK(info.st_mode):
            yield Piece(inner, Kind.LINK, 0o777, mtime, to=str(path.readlink()))
        elif stat.S_ISDIR(info.st_mode):
            yield Piece(inner, Kind.FOLDER, mode, mtime)
            pending += [(child, f"{inner.rstrip('/')}/{child.name}") for child in sorted(path.iterdir(), reverse=True)]
        elif stat.S_ISREG(info.st_mode):
            yield Piece(inner, Kind.FILE, mode, mtime, info.st_size, source=path)
        else:
            raise Refusal(Reason.PATH_UNSAFE, f"{path} is neither file, folder nor link", path=str(path))


class _Archive:
    """The archive's bytes; `fault` is why they broke off."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self.fault: Refusal | None = None

    async def chunks(self) -> AsyncIterator[bytes]:
        """All of them, once. Raises Refusal (FILE_UNREADABLE)."""
        try:
            for piece in self._pieces:
                begin = header(
                    piece.path.lstrip("/") or ".",
                    piece.kind,
                    mode=piece.mode,
                    uid=piece.uid,
                    gid=piece.gid,
                    mtime=piece.mtime,
                    size=piece.size,
                    to=piece.to,
                )
                if piece.source is None:
                    yield begin + piece.content + padding(piece.size)
                    continue
                yield begin
                async for data in _content(piece.source, piece.size):
                    yield data
                if piece.size % BLOCK:
                    yield padding(piece.size)
            yield END
        except Refusal as refusal:
            self.fault = refusal
            raise


async def _content(source: Path, size: int) -> AsyncIterator[bytes]:
    """As many bytes of a file as its header says."""
    try:
        fd = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            left = size
            while left > 0:
                data = await asyncio.to_thread(os.read, fd, min(left, PIECE))
                if not data:
                    raise Refusal(Reason.FILE_UNREADABLE, "a file got shorter while it was read", path=str(source))
                left -= len(data)
                yield data
        finally:
            os.close(fd)
    except OSError as fault:
        raise _unreadable(fault) from fault


def _unreadable(fault: OSError) -> Refusal:
    return Refusal(Reason.FILE_UNREADABLE, f"a file to be put cannot be read: {fault}", path=str(fault.filename))
