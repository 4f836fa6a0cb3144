"""A gateway on its own: any program's calls to the models of one upstream, under one budget, on one record."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from proctor.budget.authority import Authority
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.calls import CallRecord
from proctor.evidence.callstate import MODEL
from proctor.evidence.kinds import Kind
from proctor.evidence.packs import Content
from proctor.gateway.desk import Desk
from proctor.gateway.flights import MAX_REFUSED, Flights
from proctor.gateway.gateway import Gateway
from proctor.gateway.inbound import Bodies, encoding_of, read_body
from proctor.gateway.reception import PASSES, Reception
from proctor.gateway.wire.asked import read_asked
from proctor.gateway.wire.decoding import decoded
from proctor.gateway.wire.requests import MAX_REQUEST_BYTES
from proctor.gateway.wire.routes import Route, models_body
from proctor.study.actors import ModelDesign
from proctor.study.design import as_json

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest, StreamResponse

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

    def post(self, kind: Kind, blobs: Mapping[str, Content] | None = None, /, **body: Any) -> None:
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


class Standalone(Reception):
    """Open from `listen` until `close`; a `fault` ends the gateway."""

    def __init__(
        self, gateway: Gateway, authority: Authority, record: CallRecord, catalog: Catalog, sock: socket.socket
    ) -> None:
        super().__init__(catalog.api, sock)
        self._gateway = gateway
        self._authority = authority
        self._record = record
        self._catalog = catalog
        self._counters: dict[str, _Counter] = {}
        self._bodies = Bodies()
        self._refused = 0
        self._overruns = record.state.overruns
        self._stopping = False

    async def drain(self) -> None:
        """Take nothing more, and wait until nothing is in flight, which each exchange's own deadlines see to."""
        self._stopping = True
        self.hush()
        for counter in list(self._counters.values()):
            await counter.flights.landed()

    async def close(self) -> None:
        """End what is still in flight, which is charged at its worst case, and all connections.

        Raises Refusal: the record's, where something could not be written.
        """
        self._stopping = True
        self.hush()
        try:
            for counter in list(self._counters.values()):
                await counter.flights.close(at_once=True)
        finally:
            await self.hang_up()

    def check_open(self) -> None:
        """See `Reception`."""
        if self._stopping:
            raise Refusal(Reason.LEASE_STALE, "the gateway is being stopped")

    async def serve(self, request: BaseRequest, route: Route) -> StreamResponse:
        """See `Reception`."""
        with self._bodies.room() as take:
            body = await self._body(request, take)
            return await (await self._counter(request, route, body)).desk.serve(request, route, body)

    async def _body(self, request: BaseRequest, take: Callable[[int], None]) -> bytes:
        try:
            return await read_body(request, take)
        except Refusal as refusal:
            await self.refuse(refusal)
            raise

    async def _counter(self, request: BaseRequest, route: Route, body: bytes) -> _Counter:
        """That of the model that a request is for. Raises Refusal, which is on the record."""
        try:
            asked = read_asked(route, decoded(encoding_of(request.headers.items()), body, MAX_REQUEST_BYTES))
            if self._record.state.overruns > self._overruns:
                raise Refusal(Reason.OVERRUN, "more was charged than held, so nothing more is passed on")
            known = self._counters.get(asked.model)
            return known or await self._new(self._catalog.resolve(asked.model))
        except Refusal as refusal:
            if refusal.reason.family in PASSES:
                await self.refuse(refusal)
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

    async def refuse(self, refusal: Refusal) -> None:
        """Have it on the record that a request for no model that is known is not sent: the first of an opening."""
        self._refused += 1
        if self._refused > MAX_REFUSED:
            return
        body = {"model": None, "reason": refusal.reason.id, "held": "0.000000000000", "message": refusal.message}
        self._record.post(Kind.EXCHANGE_REFUSED, {**body, "route": None, "request": None})
        await self._record.settle()

    def listed(self, route: Route) -> bytes:
        """See `Reception`."""
        if route.model is not None:
            name = route.model.removeprefix("models/")
            self._catalog.resolve(name)
            return models_body(self._catalog.api, name, name)
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
        return orjson.dumps(whole or {"data": []})
