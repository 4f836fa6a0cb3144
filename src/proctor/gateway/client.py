"""The agent's side of a passage: a reply that goes out as it comes, and ends no better than it came."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
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

    @property
    def is_lost(self) -> bool:
        """Whether what is sent now would not arrive."""
        transport = self._request.transport
        return self.gone or transport is None or transport.is_closing()

    async def begin(self, status: int, headers: Iterable[tuple[str, str]], length: int | None) -> None:
        """Send the head. Args: length: of the body, where that is said."""
        from aiohttp.web import StreamResponse

        response = self.response = StreamResponse(status=status)
        for name, value in headers:
            response.headers.add(name, value)
        if length is not None:
            response.headers["Content-Length"] = str(length)
        await self._deliver(response.prepare(self._request), None)

    async def write(self, data: bytes) -> None:
        """Send more; waits for a client that is slow."""
        if self.gone or not data or self.response is None:
            return
        patience_sec = self._patience(len(data))
        if patience_sec is not None:
            await self._deliver(self.response.write(data), patience_sec)
        else:
            # of each piece of a stream: nothing more than it takes
            try:
                await self.response.write(data)
            except ConnectionError:
                self.gone = True
        if not self.gone:
            self._touch()

    async def end(self, last: bytes) -> None:
        """Send the last bytes, and the end."""
        if self.gone or self.response is None:
            return
        await self._deliver(self.response.write_eof(last), self._patience(len(last)))

    def cut(self) -> None:
        """Break the connection off, so that what was sent is no whole reply."""
        self.gone = True
        if self._request.transport is not None:
            self._request.transport.close()

    async def answer(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        """A whole reply at once."""
        from aiohttp.web import Response

        response = self.response = Response(status=status, body=body)
        for name, value in headers:
            response.headers.add(name, value)
        await self._deliver(response.prepare(self._request), None)
        if not self.gone:
            await self._deliver(response.write_eof(), self._patience(len(body)))
        if not self.gone:
            self._touch()

    def _patience(self, more: int) -> float | None:
        """For so many bytes: None where they do not have to wait."""
        transport = self._request.transport
        waits = transport is not None and transport.get_write_buffer_size() + more > _WAITS_FROM
        return self._patience_sec if waits else None

    async def _deliver(self, sending: Awaitable[object], patience_sec: float | None) -> None:
        try:
            if patience_sec is None:
                await sending
            else:
                async with asyncio.timeout(patience_sec):
                    await sending
        except ConnectionError:
            self.gone = True
        except TimeoutError:
            # it takes nothing: let go of it, and of what waits for it
            self.gone = True
            if self._request.transport is not None:
                self._request.transport.abort()
