"""A gateway on its own: any program's calls to the models of one upstream, under one budget, on one record."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from proctor.budget.authority import Authority
from proctor.core.families import Family
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.calls import CallRecord
from proctor.evidence.callstate import MODEL
from proctor.evidence.kinds import Kind as EntryKind
from proctor.evidence.packs import Content
from proctor.gateway.desk import Desk, no_route, refusing
from proctor.gateway.flights import MAX_REFUSED, Flights
from proctor.gateway.gateway import Gateway
from proctor.gateway.inbound import is_from, read_body
from proctor.gateway.listening import Listener
from proctor.gateway.wire.asked import read_asked
from proctor.gateway.wire.decoding import decoded
from proctor.gateway.wire.requests import MAX_REQUEST_BYTES
from proctor.gateway.wire.routes import Kind, Route, find_route, models_body, routes_of
from proctor.study.design import ModelDesign, as_json

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest, Response, StreamResponse

# what says no to one request, and nothing of the record
_PASSES = frozenset({Family.GATEWAY, Family.BUDGET, Family.PROVIDER})
_LISTS = ("data", "models")


class Catalog(Protocol):
    """The models that may be asked for; all of one wire format."""

    @property
    def api(self) -> str:
        """`ModelDesign.api` of all of them."""
        ...

    def names(self) -> Sequence[str]:
        """Those that a list of models has."""
        ...

    def resolve(self, name: str) -> ModelDesign:
        """A model by its provider's name of it. Raises Refusal of the families GATEWAY and BUDGET."""
        ...


class _Writer:
    """An `EntryWriter` on a record."""

    def __init__(self, record: CallRecord) -> None:
        self._record = record

    def post(self, kind: EntryKind, blobs: Mapping[str, Content] | None = None, /, **body: Any) -> None:
        """See `EntryWriter.post`."""
        self._record.post(kind, body, blobs)

    async def settle(self) -> None:
        """See `EntryWriter.settle`."""
        await self._record.settle()


@dataclass(frozen=True, slots=True)
class _Counter:
    """Of one model that was asked for."""

    flights: Flights
    desk: Desk


class Standalone:
    """Open from `open` until `close`. `fault` is what the record could not take; it ends the gateway.

    `token` is what programs give as their key, and `base_url` has no path.
    """

    def __init__(self, gateway: Gateway, authority: Authority, record: CallRecord, catalog: Catalog) -> None:
        """For `open`."""
        self.token = secrets.token_urlsafe(32)
        self.base_url = ""
        self.fault: Refusal | None = None
        self.faulted = asyncio.Event()
        self._gateway = gateway
        self._authority = authority
        self._record = record
        self._catalog = catalog
        self._routes = routes_of(catalog.api)
        self._counters: dict[str, _Counter] = {}
        self._refused = 0
        self._overruns = record.state.overruns
        self._stopping = False
        self._listener: Listener | None = None

    @classmethod
    async def open(
        cls, gateway: Gateway, authority: Authority, record: CallRecord, catalog: Catalog, sock: socket.socket
    ) -> Standalone:
        """Serve on a socket that listens, which `drain` closes."""
        it = cls(gateway, authority, record, catalog)
        host, port = sock.getsockname()[:2]
        it.base_url = f"http://{host}:{port}"
        it._listener = await Listener.start(it._handle, sock)
        return it

    async def drain(self) -> None:
        """Take nothing more, and wait until nothing is in flight, which each exchange's own deadlines see to."""
        self._stopping = True
        if self._listener is not None:
            self._listener.stop()
        for counter in list(self._counters.values()):
            await counter.flights.landed()

    async def close(self) -> None:
        """End what is still in flight, which is charged at its worst case, and all connections.

        Raises Refusal: the record's, where something could not be written.
        """
        self._stopping = True
        if self._listener is not None:
            self._listener.stop()
        try:
            for counter in list(self._counters.values()):
                await counter.flights.close(at_once=True)
        finally:
            if self._listener is not None:
                await self._listener.close()

    async def _handle(self, request: BaseRequest) -> StreamResponse:
        route = find_route(request.method, request.raw_path)
        api = route.api if route is not None and route.kind is not Kind.MODELS else self._catalog.api
        try:
            return await self._dispatch(request, route)
        except Refusal as refusal:
            if refusal.reason.family not in _PASSES:
                self.fault = self.fault or refusal
                self.faulted.set()
            return refusing(api, refusal)

    async def _dispatch(self, request: BaseRequest, route: Route | None) -> StreamResponse:
        if not is_from(request, self.token):
            raise Refusal(Reason.TOKEN_UNKNOWN, "the token of the request opens nothing here")
        if self._stopping:
            raise Refusal(Reason.LEASE_STALE, "the gateway is being stopped")
        if request.headers.get("upgrade") is not None:
            return refusing(self._catalog.api, no_route(request), 426)
        if route is not None and route.kind is Kind.MODELS:
            return self._list(route)
        if route is None or route.api not in self._routes or route.kind is Kind.EMBEDDINGS:
            refusal = no_route(request)
            if request.method == "POST":
                await self._refuse(refusal)
            raise refusal
        body = await self._body(request)
        return await (await self._counter(request, route, body)).desk.serve(request, route, body)

    async def _body(self, request: BaseRequest) -> bytes:
        try:
            return await read_body(request)
        except Refusal as refusal:
            await self._refuse(refusal)
            raise

    async def _counter(self, request: BaseRequest, route: Route, body: bytes) -> _Counter:
        """That of the model that a request is for. Raises Refusal, which is on the record."""
        try:
            asked = read_asked(route, decoded(request.headers.get("content-encoding"), body, MAX_REQUEST_BYTES))
            if self._record.state.overruns > self._overruns:
                raise Refusal(Reason.OVERRUN, "more was charged than held, so nothing more is passed on")
            known = self._counters.get(asked.model)
            return known or await self._new(self._catalog.resolve(asked.model))
        except Refusal as refusal:
            if refusal.reason.family in _PASSES:
                await self._refuse(refusal)
            raise

    async def _new(self, model: ModelDesign) -> _Counter:
        opening, block = self._record.state.openings, len(self._counters)
        self._record.post(MODEL, {"model": model.name, "design": as_json(model)})
        # nothing is set aside, and nothing awaited: the hard ceiling is all that binds
        await self._authority.admit_block(block, "gateway", model.name, opening, empty=True)
        attempt = f"{opening}:{model.name}"
        flights = Flights(self._authority.lease(attempt, block, model.name), _Writer(self._record), attempt)
        counter = self._counters[model.name] = _Counter(flights, self._gateway.desk(model, flights))
        return counter

    async def _refuse(self, refusal: Refusal) -> None:
        """Have it on the record that a request for no model that is known is not sent: the first of an opening."""
        self._refused += 1
        if self._refused > MAX_REFUSED:
            return
        body = {"model": None, "reason": refusal.reason.id, "held": "0.000000000000", "message": refusal.message}
        self._record.post(EntryKind.EXCHANGE_REFUSED, {**body, "route": None, "request": None})
        await self._record.settle()

    def _list(self, route: Route) -> Response:
        from aiohttp.web import Response

        if route.model is not None:
            name = route.model.removeprefix("models/")
            self._catalog.resolve(name)
            return Response(body=models_body(self._catalog.api, name, name), content_type="application/json")
        whole: dict[str, Any] = {}
        for name in self._catalog.names():
            each = orjson.loads(models_body(self._catalog.api, name))
            if not whole:
                whole = each
                continue
            for key in _LISTS:
                if key in each:
                    whole[key] += each[key]
            if "last_id" in each:
                whole["last_id"] = name
        return Response(body=orjson.dumps(whole or {"data": []}), content_type="application/json")
