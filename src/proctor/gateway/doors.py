"""The model of an attempt whose agent runs inside of its sandbox: an HTTP server on a socket that listens there."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import socket
from typing import TYPE_CHECKING

from proctor.core.families import Family
from proctor.core.models import Door
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import Admitted
from proctor.evidence.runfolder import RunFolder
from proctor.gateway.bounds import Bounded, bound
from proctor.gateway.exchange import route_text
from proctor.gateway.failures import Failure
from proctor.gateway.flights import Flights
from proctor.gateway.inbound import is_from, read_body, sent_headers, target_of
from proctor.gateway.line import Line, Means
from proctor.gateway.passage import Passage, Way
from proctor.gateway.upstream import Outgoing
from proctor.gateway.wire.refusing import refused
from proctor.gateway.wire.routes import Kind, Route, find_route, models_body, routes_of
from proctor.study.design import ModelDesign

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest, Response, Server, StreamResponse

# As many as an agent can open at once.
BACKLOG = 1_024
# An agent thinks, and runs tests, between two requests of one connection; the door's end closes it.
KEEP_ALIVE_SEC = 6 * 3_600.0
# What is sent although it was refused is read for so long, so that the client hears why.
LINGER_SEC = 5.0
# For what has no exchange in flight: a body that is still coming, a last byte that is still going.
_LAST_SEC = 0.2
# Failures whose request may come again are remembered by the digest of its body.
_MOST_FAILED = 64

_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())
_LOG.propagate = False


class Opened:
    """A door that is open, until `close`.

    `refused` is the first refusal for money, and `failed` what went wrong with the last exchange that ended; None
    where nothing did.
    """

    def __init__(self, way_parts: tuple[Means, ModelDesign, Line, Flights, RunFolder], base_url: str) -> None:
        """For `open`."""
        means, model, line, flights, run = way_parts
        self._last_ns = means.clock.mono_ns()
        self._means = means
        self._model = model
        self._flights = flights
        self._way = Way(means, model, line, flights, run, self._touch)
        self._routes = routes_of(model.api)
        self._failures: dict[bytes, str] = {}
        self._fault: Refusal | None = None
        self._server: asyncio.Server | None = None
        self._connections: Server | None = None
        self.failed: Failure | None = None
        self.door = Door(
            base_url=base_url,
            token=secrets.token_urlsafe(32),
            model=model.model,
            api=model.api,
            effort=model.effort,
            max_output_tokens=model.max_output_tokens,
            last_ns=lambda: self._last_ns,
        )

    @classmethod
    async def open(
        cls, admitted: Admitted, means: Means, model: ModelDesign, line: Line, flights: Flights, sock: socket.socket
    ) -> Opened:
        """For `Gateway.open`."""
        from aiohttp import web

        host, port = sock.getsockname()[:2]
        opened = cls((means, model, line, flights, RunFolder(admitted.run_dir)), f"http://{host}:{port}")
        opened._connections = web.Server(
            opened._handle,
            access_log=None,
            logger=_LOG,
            auto_decompress=False,
            keepalive_timeout=KEEP_ALIVE_SEC,
            lingering_time=LINGER_SEC,
        )
        loop = asyncio.get_running_loop()
        opened._server = await loop.create_server(opened._connections, sock=sock, backlog=BACKLOG)
        return opened

    @property
    def refused(self) -> Refusal | None:
        """The first refusal for money."""
        return self._flights.refused

    async def close(self) -> None:
        """Take nothing more, and wait until all that is in flight is settled and on the record.

        Raises:
            Refusal: the journal's, or that of the disk, where something could not be written.
        """
        if self._server is not None:
            self._server.close()
        try:
            await self._flights.close()
        finally:
            if self._connections is not None:
                # those between two requests end at once, and nothing that another one still does is owed
                self._connections.pre_shutdown()
                await self._connections.shutdown(_LAST_SEC)
        if self._fault is not None:
            raise self._fault

    def _touch(self) -> None:
        self._last_ns = self._means.clock.mono_ns()

    async def _handle(self, request: BaseRequest) -> StreamResponse:
        self._touch()
        route = find_route(request.method, request.raw_path)
        api = route.api if route is not None and route.kind is not Kind.MODELS else self._api
        try:
            return await self._dispatch(request, route)
        except Refusal as refusal:
            if refusal.reason.family not in (Family.GATEWAY, Family.BUDGET, Family.PROVIDER):
                self._fault = self._fault or refusal
            return _response(api, refusal)

    @property
    def _api(self) -> str:
        return self._model.api

    async def _dispatch(self, request: BaseRequest, route: Route | None) -> StreamResponse:
        if self._flights.closed or not is_from(request, self.door.token):
            raise Refusal(Reason.TOKEN_UNKNOWN, "the token of the request opens nothing here")
        if request.headers.get("upgrade") is not None:
            return _response(self._api, _no_route(request), 426)
        if route is not None and route.kind is Kind.MODELS:
            return _plain(models_body(self._model.api, self._model.model, route.model))
        if route is None or route.api not in self._routes or route.kind is Kind.EMBEDDINGS:
            refusal = _no_route(request)
            if request.method == "POST":
                await self._flights.refuse(refusal)
            raise refusal
        return await self._exchange(request, route)

    async def _exchange(self, request: BaseRequest, route: Route) -> StreamResponse:
        bounded = await self._bounded(request, route)
        encoded = not bounded.request.mutations
        out = Outgoing(
            target_of(request, route.path), sent_headers(request, encoded=encoded), bounded.sent, bounded.asked.stream
        )
        passage = Passage(self._way, route, bounded, request)
        exchange, self.failed = await passage.pass_on(out, self._before(bounded))
        self._remember(exchange, bounded)
        if passage.client.response is None:
            return self._broken(route, exchange)
        return passage.client.response

    async def _bounded(self, request: BaseRequest, route: Route) -> Bounded:
        """Raises Refusal, which is on the record, too."""
        body: bytes | None = None
        try:
            body = await read_body(request)
            self._touch()
            return bound(self._model, self._means.redactor, route, body, request.headers.get("content-encoding"))
        except Refusal as refusal:
            where = route_text(self._means.redactor, self._model, route.path)
            kept = None if body is None else self._means.redactor.bytes(body)
            await self._flights.refuse(refusal, route=where, body=kept)
            raise

    def _before(self, bounded: Bounded) -> str | None:
        """The exchange that this one sends again: the last one of the same bytes, where it had no answer."""
        return self._failures.pop(_key(bounded), None) if self._failures else None

    def _remember(self, exchange: str, bounded: Bounded) -> None:
        if self.failed is not None:
            self._failures[_key(bounded)] = exchange
            while len(self._failures) > _MOST_FAILED:
                del self._failures[next(iter(self._failures))]

    def _broken(self, route: Route, exchange: str) -> StreamResponse:
        """What an agent hears where no reply began."""
        reason = self.failed.reason if self.failed is not None else Reason.PROVIDER_FAILED
        refusal = Refusal(reason, f"the provider of `{self._model.name}` gave no reply", path=exchange)
        return _response(route.api, refusal)


def _key(bounded: Bounded) -> bytes:
    return hashlib.sha256(bounded.request.recorded).digest()


def _no_route(request: BaseRequest) -> Refusal:
    asked = f"{request.method} {request.path}"
    return Refusal(Reason.ROUTE_UNKNOWN, "the gateway has no such route for this model", observed=asked)


def _response(api: str, refusal: Refusal, status: int | None = None) -> Response:
    from aiohttp.web import Response

    said = refused(api, refusal)
    return Response(status=status or said.status, headers=said.headers, body=said.body)


def _plain(body: bytes) -> Response:
    from aiohttp.web import Response

    return Response(body=body, content_type="application/json")
