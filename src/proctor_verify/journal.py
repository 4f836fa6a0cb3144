"""The journal as lines: read once, in bounded memory, whatever stands in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

MAX_LINE = 65_535
# A line beyond an entry's bound is hashed as it passes, but not for ever: a file can claim any size.
MAX_HASHED = 16 << 20
_CHUNK = 1 << 20


@dataclass(slots=True)
class Line:
    """One line without its newline: number from 0, hex SHA-256, RFC 6962 leaf hash.

    `raw` is None where the line is too long to be an entry; `terminated` is false only for a last line: no newline
    ends it, or (then `given_up` is true) none did within `MAX_HASHED` bytes, and nothing more is read. The rest is set
    by who parses it: `fault` of its bytes, `misshapen` as an entry, `unknown_kind`.
    """

    number: int
    digest: str
    leaf: bytes
    raw: bytes | None
    terminated: bool = True
    given_up: bool = False
    fault: str | None = None
    misshapen: str | None = None
    unknown_kind: str | None = None


@dataclass(slots=True)
class Entry:
    """A parsed line. `body` is trusted to be of its kind's schema only where it was found to be."""

    line: int
    seq: int
    prev: str
    time: str
    mono: int
    kind: str
    body: dict[str, Any]


def read_lines(stream: BinaryIO) -> Iterator[Line]:
    """Every line of the stream, up to one beyond `MAX_HASHED`. One that is no entry for its length is never held."""
    number = 0
    parts: list[bytes] = []
    held = 0
    long: _LongLine | None = None
    while chunk := stream.read(_CHUNK):
        pieces = chunk.split(b"\n")
        last = pieces.pop()
        for piece in pieces:
            if long is not None:
                long.feed(piece)
                yield long.line(number, terminated=True)
                long = None
            else:
                if parts:
                    parts.append(piece)
                    piece = b"".join(parts)
                    parts, held = [], 0
                yield _line(number, piece, terminated=True)
            number += 1
        if long is not None:
            long.feed(last)
            if long.size > MAX_HASHED:
                yield long.line(number, terminated=False, given_up=True)
                return
        elif last:
            parts.append(last)
            held += len(last)
            if held > MAX_LINE:
                long = _LongLine()
                for part in parts:
                    long.feed(part)
                parts, held = [], 0
    if long is not None:
        yield long.line(number, terminated=False)
    elif parts:
        yield _line(number, b"".join(parts), terminated=False)


def _line(number: int, raw: bytes, *, terminated: bool) -> Line:
    digest = hashlib.sha256(raw).hexdigest()
    leaf = hashlib.sha256(b"\0" + raw).digest()
    return Line(number, digest, leaf, raw if len(raw) <= MAX_LINE else None, terminated)


class _LongLine:
    def __init__(self) -> None:
        self.size = 0
        self._digest = hashlib.sha256()
        self._leaf = hashlib.sha256(b"\0")

    def feed(self, piece: bytes) -> None:
        self.size += len(piece)
        self._digest.update(piece)
        self._leaf.update(piece)

    def line(self, number: int, *, terminated: bool, given_up: bool = False) -> Line:
        return Line(number, self._digest.hexdigest(), self._leaf.digest(), None, terminated, given_up)
