"""Content encodings, decoded in pieces: what a few bytes can blow up to never stands in memory at once."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Protocol

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.gateway.wire.zstd_blocks import Blocks

IDENTITY = "identity"
# What encodings are worth on top of each other: one is usual, two are seen, more are an attack.
MOST_ENCODINGS = 3
_PIECE = 64 << 10
# Four bytes of zstd can stand for a block of 128 KiB, and its decoder gives all of them out at once.
_ZSTD_SLICE = 128
# What RFC 9659 allows in HTTP. Without it a frame may claim 128 MiB for itself.
_ZSTD_WINDOW = 8 << 20


class Undecodable(ValueError):
    """Bytes are not of the encoding that they are said to be, or it is none of those known."""


class _Stage(Protocol):
    @property
    def whole(self) -> bool: ...

    @property
    def waiting(self) -> bool: ...

    def feed(self, data: bytes) -> Iterator[bytes]: ...


class Decoder:
    """Undoes the encodings of a `Content-Encoding` header: identity, gzip, x-gzip, deflate, br, zstd, or several.

    Raises Undecodable where one of them is not known, or there are more than `MOST_ENCODINGS`.
    """

    def __init__(self, encoding: str | None) -> None:
        names = [name for name in _names(encoding) if name != IDENTITY] if encoding else []
        unknown = [name for name in names if name not in _STAGES]
        if unknown or len(names) > MOST_ENCODINGS:
            raise Undecodable(f"the encoding {(encoding or '')[:60]!r} is not known")
        # what was applied last is undone first
        self._stages = [_STAGES[name]() for name in reversed(names)]

    @property
    def plain(self) -> bool:
        """Whether there is nothing to undo."""
        return not self._stages

    @property
    def whole(self) -> bool:
        """Whether the data so far ends where its encodings do, or there was none."""
        return all(stage.whole for stage in self._stages)

    @property
    def waiting(self) -> bool:
        """Whether some of the data so far can only be decoded once more of it is here."""
        return any(stage.waiting for stage in self._stages)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The next bytes, decoded piece by piece; each has at most some 4 MiB. Who has enough of them stops.

        An iterator that was left before its end leaves the decoder unusable. Raises Undecodable.
        """
        pieces: Iterable[bytes] = (data,)
        for stage in self._stages:
            pieces = _through(stage, pieces)
        return (piece for piece in pieces if piece)


def decoded(encoding: str | None, body: bytes, most: int) -> bytes:
    """A request's body without its encoding.

    Args:
        encoding: the `Content-Encoding` header, None where there is none.
        body: as it came.
        most: bytes that it may have decoded.

    Raises:
        Refusal: `request_too_large` for more bytes than that; `request_unreadable` where the body is not of the
            encoding, or it is none of those known.
    """
    pieces: list[bytes] = []
    size = 0
    try:
        decoder = Decoder(encoding)
        for piece in decoder.feed(body):
            size += len(piece)
            if size > most:
                raise Refusal(
                    Reason.REQUEST_TOO_LARGE,
                    "the request's body is larger than any that is sent",
                    observed={"bytes": len(body), "decoded": f"more than {most}"},
                    required={"bytes": most},
                )
            pieces.append(piece)
        if not decoder.whole:
            raise Undecodable("the body ends in the middle of its encoding")
    except Undecodable as error:
        raise Refusal(
            Reason.REQUEST_UNREADABLE,
            str(error),
            observed=encoding and encoding[:60],
            required=[IDENTITY, *_STAGES],
        ) from error
    return b"".join(pieces)


def acceptable(header: str | None) -> str:
    """An `Accept-Encoding` header without what a `Decoder` does not undo; `identity` where nothing is left."""
    offers = [offer.strip() for offer in (header or "").split(",")]
    known = [offer for offer in offers if offer.partition(";")[0].strip().lower() in (*_STAGES, IDENTITY)]
    return ", ".join(known) or IDENTITY


def _names(encoding: str | None) -> list[str]:
    names = [name.strip().lower() for name in (encoding or IDENTITY).split(",")]
    return [name for name in names if name]


def _through(stage: _Stage, pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield from stage.feed(piece)


class _Gzip:
    """Members of gzip, one after another."""

    waiting = False

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)
        self._begun = False

    @property
    def whole(self) -> bool:
        return self._member.eof or not self._begun

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._member.eof:
                self._member = zlib.decompressobj(wbits=31)
            self._begun = True
            yield from _inflate(self._member, data)
            data = self._member.unused_data


class _Deflate:
    """What HTTP calls deflate: in zlib's wrapping as it should be, or bare as some send it."""

    waiting = False

    def __init__(self) -> None:
        self._head = b""
        self._stream: zlib._Decompress | None = None

    @property
    def whole(self) -> bool:
        return not self._head if self._stream is None else self._stream.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._stream is None:
            data = self._head + data
            if len(data) < 2:
                self._head = data
                return
            wrapped = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._stream = zlib.decompressobj(wbits=15 if wrapped else -15)
        if data and self._stream.eof:
            raise Undecodable("there is more data than that of deflate")
        yield from _inflate(self._stream, data)
        if self._stream.unused_data:
            raise Undecodable("there is more data than that of deflate")


def _inflate(stream: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    full = False
    try:
        # a full piece can leave output behind although all input is taken
        while (data or full) and not stream.eof:
            piece = stream.decompress(data, _PIECE)
            data, full = stream.unconsumed_tail, len(piece) == _PIECE
            yield piece
    except zlib.error as error:
        raise Undecodable("the data is not of its encoding, gzip or deflate") from error


class _Brotli:
    """One stream of brotli."""

    waiting = False

    def __init__(self) -> None:
        # it comes without types
        brotli: Any = import_module("brotli")
        self._error: type[Exception] = brotli.error
        self._stream = brotli.Decompressor()
        self._begun = False

    @property
    def whole(self) -> bool:
        return not self._begun or bool(self._stream.is_finished())

    def feed(self, data: bytes) -> Iterator[bytes]:
        if not data:
            return
        self._begun = True
        try:
            piece = self._stream.process(data, output_buffer_limit=_PIECE)
            yield piece
            # it may take more data, and still have output that the limit kept back
            while not self._stream.is_finished() and (piece or not self._stream.can_accept_more_data()):
                piece = self._stream.process(b"", output_buffer_limit=_PIECE)
                yield piece
        except self._error as error:
            raise Undecodable("the data is not brotli") from error


class _Zstd:
    """Frames of zstd, one after another."""

    def __init__(self) -> None:
        import zstandard

        self._error: type[Exception] = zstandard.ZstdError
        self._new = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj
        self._frame = self._new()
        self._blocks = Blocks()
        self._begun = False

    @property
    def waiting(self) -> bool:
        return self._blocks.inside

    @property
    def whole(self) -> bool:
        return self._frame.eof or not self._begun

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._blocks.feed(data)
        for start in range(0, len(data), _ZSTD_SLICE):
            piece = data[start : start + _ZSTD_SLICE]
            while piece:
                if self._frame.eof:
                    self._frame = self._new()
                self._begun = True
                try:
                    yield self._frame.decompress(piece)
                except self._error as error:
                    raise Undecodable("the data is not zstd, or needs a larger window than HTTP allows") from error
                piece = self._frame.unused_data


_STAGES: Mapping[str, Callable[[], _Stage]] = MappingProxyType(
    {"gzip": _Gzip, "x-gzip": _Gzip, "deflate": _Deflate, "br": _Brotli, "zstd": _Zstd}
)
