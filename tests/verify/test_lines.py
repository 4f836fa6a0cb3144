"""Lines of a journal at the edges of what is read at once, of what an entry may have, and of what is hashed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from proctor_verify.journal import MAX_HASHED, MAX_LINE, Block, Line, line_of, read_blocks


class _Pieces:
    """A stream that gives these pieces, one at a time; what is left of them was not asked for."""

    def __init__(self, *pieces: bytes) -> None:
        self.left = list(pieces)

    def read(self, most: int) -> bytes:
        return self.left.pop(0) if self.left else b""


def _told(*pieces: bytes) -> Iterator[tuple[object, ...]]:
    """Blocks by their parts, which nothing cuts; lines by what is known of them, all but their leaf hash."""
    for piece in read_blocks(_Pieces(*pieces)):
        if isinstance(piece, Block):
            yield piece[:3]
        else:
            yield piece.number, piece.digest, piece.raw, piece.terminated, piece.given_up


def _long(number: int, raw: bytes, *, terminated: bool = True, given_up: bool = False) -> tuple[object, ...]:
    return number, hashlib.sha256(raw).hexdigest(), None, terminated, given_up


def test_whole_lines_come_in_blocks() -> None:
    assert list(_told()) == []
    assert list(_told(b"a\n")) == [(0, 1, b"a\n")]
    assert list(_told(b"a\nb\n", b"\nc\n")) == [(0, 2, b"a\nb\n"), (2, 2, b"\nc\n")]
    assert list(_told(b"a", b"b", b"c\nd", b"\n")) == [(0, 1, b"abc\n"), (1, 1, b"d\n")]


def test_a_last_line_without_a_newline_is_told() -> None:
    digest = hashlib.sha256(b"bc").hexdigest()
    assert list(_told(b"a\nb", b"c")) == [(0, 1, b"a\n"), (1, digest, b"bc", False, False)]


def test_a_line_is_an_entrys_up_to_its_bound() -> None:
    most = b"a" * MAX_LINE
    assert line_of(0, most).raw == most and line_of(0, most + b"a").raw is None
    assert list(_told(most)) == [(0, hashlib.sha256(most).hexdigest(), most, False, False)]
    assert list(_told(most + b"a")) == [_long(0, most + b"a", terminated=False)]
    assert list(_told(most, b"\n")) == [(0, 1, most + b"\n")]
    assert list(_told(most + b"a", b"\nb\n")) == [_long(0, most + b"a"), (1, 1, b"b\n")]
    assert list(_told(most + b"a", b"b", b"\n")) == [_long(0, most + b"ab")]
    assert list(_told(most + b"a", b"\n" + most + b"b", b"\nc")) == [
        _long(0, most + b"a"),
        _long(1, most + b"b"),
        (2, hashlib.sha256(b"c").hexdigest(), b"c", False, False),
    ]


def test_a_line_that_has_no_end_is_given_up() -> None:
    most = b"a" * MAX_HASHED
    assert list(_told(most, b"\nb\n")) == [_long(0, most), (1, 1, b"b\n")]
    assert list(_told(most[:-1], b"a", b"\n")) == [_long(0, most)]
    stream = _Pieces(most[:-1], b"aa", b"\nb\n")
    [line] = read_blocks(stream)
    assert isinstance(line, Line) and line.given_up and not line.terminated and line.raw is None
    assert line.digest == hashlib.sha256(most + b"a").hexdigest()
    assert line.leaf == hashlib.sha256(b"\0" + most + b"a").digest()
    assert stream.left == [b"\nb\n"]
