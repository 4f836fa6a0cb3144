"""The agent's side of a passage: a reply that goes out as it comes, and ends no better than it came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest, StreamResponse

# below this much unsent, writing never waits
_WAITS_FROM = 32 * 2**10


class Client:
    """Of one request. `gone` is whether something could not be delivered: from there on nothing is sent.

    Args:
        patience_sec: how long it may take nothing, while something waits for it.
        touch: called whenever something goes out.
    """

    def __init__(self, request: BaseRequest, patience_sec: float, touch: Callable[[], None]) -> None:
        self.gone = False
        self.response: StreamResponse | None = None
        self._request = request
        self._patience_sec = patience_sec
        self._touch = touch

    async def begin(self, status: int, headers: Iterable[tuple[str, str]], length: int | None) -> None:
        """Send the head. Args: length: of the body, where that is said."""
        from aiohttp.web import StreamResponse

        response = self.response = StreamResponse(status=status)
        for name, value in headers:
            response.headers.add(name, value)
        if length is not None:
            response.headers["Content-Length"] = str(length)
        try:
            await response.prepare(self._request)
        except ConnectionError:
            self.gone = True

    async def write(self, data: bytes) -> None:
        """Send more; waits for a client that is slow."""
        if self.gone or not data or self.response is None:
            return
        transport = self._request.transport
        try:
            if transport is not None and transport.get_write_buffer_size() + len(data) > _WAITS_FROM:
                async with asyncio.timeout(self._patience_sec):
                    await self.response.write(data)
            else:
                await self.response.write(data)
        except ConnectionError:
            self.gone = True
        except TimeoutError:
            self._drop()
        else:
            self._touch()

    async def end(self, last: bytes) -> None:
        """Send the last bytes, and the end."""
        if self.gone or self.response is None:
            return
        try:
            async with asyncio.timeout(self._patience_sec):
                await self.response.write_eof(last)
        except ConnectionError:
            self.gone = True
        except TimeoutError:
            self._drop()

    def cut(self) -> None:
        """Break the connection off, so that what was sent is no whole reply."""
        self.gone = True
        if self._request.transport is not None:
            self._request.transport.close()

    def _drop(self) -> None:
        """Let go of a client that takes nothing, and of what waits for it."""
        self.gone = True
        if self._request.transport is not None:
            self._request.transport.abort()

    async def answer(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        """A whole reply at once."""
        from aiohttp.web import Response

        response = self.response = Response(status=status, body=body)
        for name, value in headers:
            response.headers.add(name, value)
        try:
            async with asyncio.timeout(self._patience_sec):
                await response.prepare(self._request)
                await response.write_eof()
        except ConnectionError:
            self.gone = True
        except TimeoutError:
            self._drop()
        else:
            self._touch()
