"""The journal as lines: read once, in bounded memory, whatever stands in it."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from proctor_verify.strictjson import MAX_BYTES

MAX_LINE = MAX_BYTES
# A line beyond an entry's bound is hashed as it passes, but not for ever: a file can claim any size.
MAX_HASHED = 16 << 20
_CHUNK = 512 << 10


class Readable(Protocol):
    """What bytes are read from: `read` gives none at the end, and may give fewer than asked for before."""

    def read(self, most: int, /) -> bytes: ...


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


class Stretch(NamedTuple):
    """Entries of known kinds and their shapes that follow one another, none of which is of the run itself (`run.…`).

    Each but the first has the next `seq`, the line before as `prev`, and neither a `time` nor a `mono` that falls.
    `raw` are their lines, `head` is the hex SHA-256 of the last, `subtrees` the largest that they make up in the
    journal's tree, `least` and `most` by how many microseconds `time` is ahead of `mono`.
    """

    entries: list[Entry]
    raw: list[bytes]
    head: str
    subtrees: list[tuple[int, bytes]]
    least: int
    most: int


class Block(NamedTuple):
    """Whole lines, each ended by its newline, as they stand; none is longer than what is read at once.

    `first` is the number of the first of them, `lines` how many they are. No stretch of them goes on at a place in
    `cuts`, counted from 0, of which there may be as many as lines.
    """

    first: int
    lines: int
    data: bytes
    cuts: tuple[int, ...] = ()

    def raw_lines(self) -> list[bytes]:
        """The lines without their newlines."""
        return self.data[:-1].split(b"\n")

    def cut_at(self, numbers: Sequence[int]) -> Block:
        """The same, with a cut before each line whose number is one of these, which are sorted."""
        inside = numbers[bisect_right(numbers, self.first) : bisect_left(numbers, self.first + self.lines)]
        return self._replace(cuts=tuple(number - self.first for number in inside))


def read_blocks(stream: Readable) -> Iterator[Block | Line]:
    """The stream in blocks; a line that no block holds, and one that no newline ends, comes as a line of its own.

    Nothing is read beyond a line of more than `MAX_HASHED`. What is held is bounded, whatever stands there.
    """
    number = 0
    rest = b""
    long: _LongLine | None = None
    while chunk := stream.read(_CHUNK):
        if long is not None:
            head, newline, chunk = chunk.partition(b"\n")
            long.feed(head)
            if not newline:
                if long.size > MAX_HASHED:
                    yield long.line(number, terminated=False, given_up=True)
                    return
                continue
            yield long.line(number, terminated=True)
            number, long = number + 1, None
        cut = chunk.rfind(b"\n") + 1
        if cut:
            data = rest + chunk[:cut]
            count = data.count(b"\n")
            yield Block(number, count, data)
            number += count
            rest = chunk[cut:]
        else:
            rest += chunk
        if len(rest) > MAX_LINE:
            long = _LongLine()
            long.feed(rest)
            rest = b""
    if long is not None:
        yield long.line(number, terminated=False)
    elif rest:
        yield line_of(number, rest, terminated=False)


def line_of(number: int, raw: bytes, *, terminated: bool = True) -> Line:
    """A line from its bytes without the newline."""
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
