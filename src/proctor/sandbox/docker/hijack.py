"""A connection to the engine that becomes a stream: bytes go in, frames of standard output and error come out."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import NamedTuple

STDOUT, STDERR = 1, 2
_HEAD = struct.Struct(">BxxxL")
_PIECE = 1 << 16
_MOST_HEAD = 1 << 16


class NotUpgraded(Exception):
    """The engine answered in another way: its status, and the beginning of what it said."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.body = body


class Frame(NamedTuple):
    """A piece of output, and whether it is `STDOUT` or `STDERR`."""

    stream: int
    data: bytes


class Hijacked:
    """Both directions of one container or exec."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._stream = 0
        self._left = 0

    async def read(self) -> Frame | None:
        """The next piece of output, at most 64 KiB; None at its end. Raises OSError."""
        try:
            while self._left == 0:
                self._stream, self._left = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
        except asyncio.IncompleteReadError:
            return None
        data = await self._reader.read(min(self._left, _PIECE))
        if not data:
            return None
        self._left -= len(data)
        return Frame(self._stream, data)

    async def write(self, data: bytes) -> None:
        """Put bytes in. Raises OSError."""
        self._writer.write(data)
        await self._writer.drain()

    def end_input(self) -> None:
        """Nothing more comes in. Raises OSError."""
        if self._writer.can_write_eof():
            self._writer.write_eof()

    async def close(self) -> None:
        """Close both directions, whatever is still to be said."""
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


async def hijack(where: str | tuple[str, int], path: str, body: bytes, deadline_sec: float) -> Hijacked:
    """Post `body` and take the connection over.

    Raises:
        NotUpgraded: the engine answers with an error.
        OSError: it cannot be reached, or does not answer in time (TimeoutError).
        EOFError, ValueError: what comes is no answer.
    """
    async with asyncio.timeout(deadline_sec):
        if isinstance(where, str):
            reader, writer = await asyncio.open_unix_connection(where, limit=4 * _PIECE)
        else:
            reader, writer = await asyncio.open_connection(*where, limit=4 * _PIECE)
        try:
            head = (
                f"POST {path} HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode("ascii") + body)
            await writer.drain()
            said = await reader.readuntil(b"\r\n\r\n")
            status = int(said.split(b" ", 2)[1])
            if status not in (101, 200):
                raise NotUpgraded(status, await reader.read(_MOST_HEAD))
        except BaseException:
            writer.transport.abort()
            raise
    return Hijacked(reader, writer)
