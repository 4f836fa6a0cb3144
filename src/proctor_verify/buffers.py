"""Buffers for many bytes that are worked on aside, used again: new pages cost a quarter of what hashing them does."""

from __future__ import annotations

from proctor_verify.aside import WORTH_IT


class Buffers:
    """As many as were in use at once. None stands for that of few bytes, which need no buffer."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._spare: list[bytearray] = []

    def take(self, length: int) -> bytearray | None:
        """One that nobody else uses until it is given back."""
        if not WORTH_IT <= length <= self._size:
            return None
        return self._spare.pop() if self._spare else bytearray(self._size)

    def give(self, buffer: bytearray | None) -> None:
        """Nobody reads it any more."""
        if buffer is not None:
            self._spare.append(buffer)
