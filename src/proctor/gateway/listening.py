"""An HTTP server on a socket that listens already."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from proctor.core.open_files import may_be_open

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest, Server, StreamResponse

# As many as an agent can open at once.
BACKLOG = 1_024
# More would take the files that the run itself, and the doors of other attempts, need.
MAX_CONNECTIONS = 1_024
_SHARE = 8
# An agent thinks, and runs tests, between two requests of one connection; the door's end closes it.
KEEP_ALIVE_SEC = 6 * 3_600.0
# What is sent although it was refused is read for so long, so that the client hears why.
LINGER_SEC = 5.0
# For what has no exchange in flight: a body that is still coming, a last byte that is still going.
_LAST_SEC = 0.2

_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())
_LOG.propagate = False

Handle = Callable[["BaseRequest"], Awaitable["StreamResponse"]]


class _Full(asyncio.Protocol):
    """A connection that is one too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It ends at once."""
        transport.close()


class Listener:
    """Takes connections until `stop`; `close` ends those that there are."""

    def __init__(self, server: asyncio.Server, connections: Server) -> None:
        """For `start`."""
        self._server = server
        self._connections = connections

    @classmethod
    async def start(cls, handle: Handle, sock: socket.socket) -> Listener:
        """Serve on the socket, which is closed by `stop`."""
        from aiohttp import web

        connections = web.Server(
            handle,
            access_log=None,
            logger=_LOG,
            auto_decompress=False,
            keepalive_timeout=KEEP_ALIVE_SEC,
            lingering_time=LINGER_SEC,
        )

        most = min(MAX_CONNECTIONS, may_be_open() // _SHARE)

        def accept() -> asyncio.Protocol:
            return connections() if len(connections.connections) < most else _Full()

        server = await asyncio.get_running_loop().create_server(accept, sock=sock, backlog=BACKLOG)
        return cls(server, connections)

    def stop(self) -> None:
        """Take no further connection."""
        self._server.close()

    async def close(self) -> None:
        """End all connections: those between two requests at once, and nothing that another one still does is owed."""
        self._connections.pre_shutdown()
        await self._connections.shutdown(_LAST_SEC)
