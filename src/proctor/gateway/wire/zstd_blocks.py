"""Where a stream of zstd stands, by RFC 8878: a decoder gives nothing out of a block before all of it has come."""

from __future__ import annotations

from collections.abc import Callable

_MAGIC = b"\x28\xb5\x2f\xfd"
# the first four bits of the first byte alone count
_SKIPPED = b"\x50\x2a\x4d\x18"
_CHECKSUM_BYTES = 4
_RLE = 1


class Blocks:
    """Follows frames and their blocks through bytes that come in pieces. What is no zstd is left to the decoder."""

    def __init__(self) -> None:
        self._head = b""
        self._passing = 0
        self._in_block = False
        self._checked = False
        self._wanted = len(_MAGIC)
        self._next: Callable[[bytes], None] = self._magic

    @property
    def inside(self) -> bool:
        """Whether a block has begun and has not ended."""
        return self._in_block and self._passing > 0

    def feed(self, data: bytes) -> None:
        """The next bytes."""
        at = 0
        while at < len(data):
            if self._passing:
                passed = min(self._passing, len(data) - at)
                self._passing -= passed
                at += passed
                continue
            piece = data[at : at + self._wanted - len(self._head)]
            self._head += piece
            at += len(piece)
            if len(self._head) == self._wanted:
                head, self._head = self._head, b""
                self._next(head)

    def _expect(self, wanted: int, then: Callable[[bytes], None]) -> None:
        self._wanted, self._next = wanted, then

    def _magic(self, head: bytes) -> None:
        self._in_block = False
        if head == _MAGIC:
            self._expect(1, self._descriptor)
        elif bytes([head[0] & 0xF0]) + head[1:] == _SKIPPED:
            self._expect(4, self._skip)

    def _skip(self, head: bytes) -> None:
        self._passing = int.from_bytes(head, "little")
        self._expect(len(_MAGIC), self._magic)

    def _descriptor(self, head: bytes) -> None:
        byte = head[0]
        single = byte >> 5 & 1
        self._checked = bool(byte & 4)
        self._expect((single, 2, 4, 8)[byte >> 6] + (0, 1, 2, 4)[byte & 3] + (1 - single), self._settings)

    def _settings(self, head: bytes) -> None:
        self._expect(3, self._block)

    def _block(self, head: bytes) -> None:
        said = int.from_bytes(head, "little")
        self._in_block = True
        self._passing = 1 if said >> 1 & 3 == _RLE else said >> 3
        if said & 1 and self._checked:
            self._expect(_CHECKSUM_BYTES, self._checksum)
        elif said & 1:
            self._expect(len(_MAGIC), self._magic)

    def _checksum(self, head: bytes) -> None:
        self._expect(len(_MAGIC), self._magic)
