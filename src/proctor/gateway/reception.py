"""Who comes to a gateway over HTTP: let in by a token, sent on by route, and told no in the words of the format."""

from __future__ import annotations

import asyncio
import secrets
import socket
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from proctor.core.families import Family
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.gateway.desk import refusing
from proctor.gateway.inbound import is_from
from proctor.gateway.listening import Listener
from proctor.gateway.wire.routes import Kind, Route, find_route, routes_of

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest, Response, StreamResponse

# what says no to one request, and nothing of the record
PASSES = frozenset({Family.GATEWAY, Family.BUDGET, Family.PROVIDER})


class Reception(ABC):
    """Of models of one wire format, from `listen` on. `fault` is what the record could not take.

    `token` is what programs give as their key, and `base_url` has no path.
    """

    def __init__(self, api: str, sock: socket.socket) -> None:
        host, port = sock.getsockname()[:2]
        self.base_url = f"http://{host}:{port}"
        self.token = secrets.token_urlsafe(32)
        self.fault: Refusal | None = None
        self.faulted = asyncio.Event()
        self._api = api
        self._routes = routes_of(api)
        self._sock = sock
        self._listener: Listener | None = None

    async def listen(self) -> None:
        """Serve on the socket, which `hush` closes."""
        self._listener = await Listener.start(self._handle, self._sock)

    def hush(self) -> None:
        """Take no further connection."""
        if self._listener is not None:
            self._listener.stop()

    async def hang_up(self) -> None:
        """End all connections."""
        if self._listener is not None:
            await self._listener.close()

    @abstractmethod
    def check_open(self) -> None:
        """Raises the Refusal of every request that comes now, where there is one."""

    @abstractmethod
    def listed(self, route: Route) -> bytes:
        """The list of models, or the one that the route names, as JSON. Raises Refusal."""

    @abstractmethod
    async def refuse(self, refusal: Refusal) -> None:
        """Have it on the record that a request is not sent."""

    @abstractmethod
    async def serve(self, request: BaseRequest, route: Route) -> StreamResponse:
        """Pass a request on, and its reply back. Raises Refusal."""

    async def _handle(self, request: BaseRequest) -> StreamResponse:
        route = find_route(request.method, request.raw_path)
        api = route.api if route is not None and route.kind is not Kind.MODELS else self._api
        try:
            return await self._dispatch(request, route)
        except Refusal as refusal:
            if refusal.reason.family not in PASSES:
                self.fault = self.fault or refusal
                self.faulted.set()
            return refusing(api, refusal)

    async def _dispatch(self, request: BaseRequest, route: Route | None) -> StreamResponse:
        if not is_from(request, self.token):
            raise Refusal(Reason.TOKEN_UNKNOWN, "the token of the request opens nothing here")
        self.check_open()
        if request.headers.get("upgrade") is not None:
            return refusing(self._api, _no_route(request), 426)
        if route is not None and route.kind is Kind.MODELS:
            return _json(self.listed(route))
        if route is None or route.api not in self._routes or route.kind is Kind.EMBEDDINGS:
            refusal = _no_route(request)
            if request.method == "POST":
                await self.refuse(refusal)
            raise refusal
        return await self.serve(request, route)


def _no_route(request: BaseRequest) -> Refusal:
    asked = f"{request.method} {request.path}"
    return Refusal(Reason.ROUTE_UNKNOWN, "the gateway has no such route for this model", observed=asked)


def _json(body: bytes) -> Response:
    from aiohttp.web import Response

    return Response(body=body, content_type="application/json")
