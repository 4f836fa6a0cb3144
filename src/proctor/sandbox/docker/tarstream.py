"""Tar archives as streams: read entry by entry within bounds, for what is in them is an agent's; written header by
header."""

from __future__ import annotations

import stat
import tarfile
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

BLOCK = 512
PIECE = 1 << 18
# names and extended attributes of one entry
_MOST_EXTRA = 1 << 20


class Malformed(Exception):
    """The stream is no archive, or breaks off."""


class Kind(Enum):
    """What an entry is."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    HARD_LINK = "hard link"
    SPECIAL = "special file"


@dataclass(frozen=True)
class Entry:
    """One entry's header. Bytes of names that are no UTF-8 are lone surrogates."""

    name: str
    kind: Kind
    size: int
    mode: int
    uid: int
    gid: int
    to: str


class Source(Protocol):
    """Where bytes come from: fewer than asked for, and none at the end."""

    async def read(self, n: int = -1) -> bytes:
        """The next bytes."""
        ...


_KINDS = {
    b"0": Kind.FILE,
    b"\0": Kind.FILE,
    b"7": Kind.FILE,
    b"1": Kind.HARD_LINK,
    b"2": Kind.LINK,
    b"5": Kind.FOLDER,
}


class TarReader:
    """Entries of an archive in order, and the content of the last one."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._held = b""
        self._left = 0
        self._padding = 0

    @property
    def left(self) -> int:
        """Bytes of the last entry that were not read."""
        return self._left

    async def next(self) -> Entry | None:
        """The next entry, or None at the end; what was not read of the last one is passed over. Raises Malformed."""
        while await self.read():
            pass
        said: dict[str, bytes] = {}
        while True:
            block = await self._exactly(BLOCK, may_end=True)
            if not block.strip(b"\0"):
                return None
            header = _header(block)
            flag = block[156:157]
            if flag in b"xgLK":
                data = await self._extra(header.size)
                if flag == b"x":
                    said |= _records(data)
                elif flag == b"L":
                    said["path"] = data.rstrip(b"\0")
                elif flag == b"K":
                    said["linkpath"] = data.rstrip(b"\0")
                continue
            entry = _told(header, said)
            self._left = entry.size if entry.kind is Kind.FILE else 0
            self._padding = -self._left % BLOCK
            return entry

    async def read(self) -> bytes:
        """The next piece of the last entry's content; none at its end. Raises Malformed."""
        if self._left == 0:
            if self._padding:
                await self._exactly(self._padding)
                self._padding = 0
            return b""
        data = self._held[: self._left] or await self._source.read(min(self._left, PIECE))
        self._held = self._held[len(data) :]
        if not data:
            raise Malformed("the archive breaks off")
        self._left -= len(data)
        return data

    async def _extra(self, size: int) -> bytes:
        if size > _MOST_EXTRA:
            raise Malformed(f"an entry has over {_MOST_EXTRA:,} bytes of names and attributes")
        data = await self._exactly(size)
        await self._exactly(-size % BLOCK)
        return data

    async def _exactly(self, size: int, *, may_end: bool = False) -> bytes:
        data = b""
        while len(data) < size:
            more = await self._source.read(size - len(data))
            if not more:
                if may_end and not data:
                    return b""
                raise Malformed("the archive breaks off")
            data += more
        return data


def header(name: str, kind: Kind, *, mode: int, uid: int, gid: int, mtime: int, size: int = 0, to: str = "") -> bytes:
    """The blocks that begin an entry; its content follows, filled up to whole blocks."""
    info = tarfile.TarInfo(name)
    info.type = {Kind.FOLDER: tarfile.DIRTYPE, Kind.LINK: tarfile.SYMTYPE}.get(kind, tarfile.REGTYPE)
    info.mode, info.uid, info.gid = stat.S_IMODE(mode), uid, gid
    info.mtime, info.size, info.linkname = max(0, mtime), size, to
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def padding(size: int) -> bytes:
    """What fills content of that size up to whole blocks."""
    return b"\0" * (-size % BLOCK)


END = b"\0" * (2 * BLOCK)


@dataclass(frozen=True)
class _Header:
    name: bytes
    flag: bytes
    size: int
    mode: int
    uid: int
    gid: int
    to: bytes


def _header(block: bytes) -> _Header:
    if len(block) < BLOCK or _number(block[148:156]) != sum(block[:148]) + 8 * 32 + sum(block[156:]):
        raise Malformed("a header is damaged")
    name = _text(block[:100])
    if block[257:263] == b"ustar\0" and block[345]:
        name = _text(block[345:500]) + b"/" + name
    return _Header(
        name,
        block[156:157],
        _number(block[124:136]),
        _number(block[100:108]),
        _number(block[108:116]),
        _number(block[116:124]),
        _text(block[157:257]),
    )


def _told(header: _Header, said: dict[str, bytes]) -> Entry:
    name = said.get("path", header.name)
    kind = _KINDS.get(header.flag, Kind.SPECIAL)
    if kind is Kind.FILE and header.flag == b"\0" and name.endswith(b"/"):
        kind = Kind.FOLDER
    return Entry(
        _decoded(name),
        kind,
        _decimal(said["size"]) if "size" in said else header.size,
        header.mode & 0o7777,
        _decimal(said["uid"]) if "uid" in said else header.uid,
        _decimal(said["gid"]) if "gid" in said else header.gid,
        _decoded(said.get("linkpath", header.to)),
    )


def _records(data: bytes) -> dict[str, bytes]:
    """The records `LENGTH KEY=VALUE\\n` of an extended header."""
    found: dict[str, bytes] = {}
    while data:
        length_text, space, _ = data.partition(b" ")
        length = _decimal(length_text) if space else 0
        record = data[len(length_text) + 1 : length]
        key, equals, value = record[:-1].partition(b"=")
        if length > len(data) or not equals or record[-1:] != b"\n":
            raise Malformed("an extended header is damaged")
        found[key.decode("utf-8", "surrogateescape")] = value
        data = data[length:]
    return found


def _number(field: bytes) -> int:
    """Octal text, or a binary number where the first bit is set."""
    if field[0] & 0x80:
        if field[0] & 0x40:
            raise Malformed("a number is negative")
        return int.from_bytes(bytes([field[0] & 0x3F]) + field[1:], "big")
    text = field.rstrip(b"\0 ").lstrip(b" ")
    if not all(0x30 <= digit < 0x38 for digit in text):
        raise Malformed("a number is none")
    return int(text, 8) if text else 0


def _decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > 20:
        raise Malformed("a number is none")
    return int(text)


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
