"""The model of an attempt whose agent runs inside of its sandbox: an HTTP server on a socket that listens there."""

from __future__ import annotations

import secrets
import socket
from typing import TYPE_CHECKING

from proctor.core.families import Family
from proctor.core.models import Door
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import Admitted
from proctor.evidence.runfolder import RunFolder
from proctor.gateway.desk import Desk, no_route, refusing
from proctor.gateway.failures import Failure
from proctor.gateway.flights import Flights
from proctor.gateway.inbound import is_from
from proctor.gateway.line import Line, Means
from proctor.gateway.listening import Listener
from proctor.gateway.passage import Way
from proctor.gateway.wire.routes import Kind, Route, find_route, models_body, routes_of
from proctor.study.design import ModelDesign

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest, Response, StreamResponse


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
        self._desk = Desk(Way(means, model, line, flights, run, self._touch))
        self._routes = routes_of(model.api)
        self._fault: Refusal | None = None
        self._listener: Listener | None = None
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
        host, port = sock.getsockname()[:2]
        opened = cls((means, model, line, flights, RunFolder(admitted.run_dir)), f"http://{host}:{port}")
        opened._listener = await Listener.start(opened._handle, sock)
        return opened

    @property
    def failed(self) -> Failure | None:
        """What went wrong with the last exchange that ended."""
        return self._desk.failed

    @property
    def refused(self) -> Refusal | None:
        """The first refusal for money."""
        return self._flights.refused

    async def close(self) -> None:
        """Take nothing more, and wait until all that is in flight is settled and on the record.

        Raises:
            Refusal: the journal's, or that of the disk, where something could not be written.
        """
        if self._listener is not None:
            self._listener.stop()
        try:
            await self._flights.close()
        finally:
            if self._listener is not None:
                await self._listener.close()
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
            return refusing(api, refusal)

    @property
    def _api(self) -> str:
        return self._model.api

    async def _dispatch(self, request: BaseRequest, route: Route | None) -> StreamResponse:
        if self._flights.closed or not is_from(request, self.door.token):
            raise Refusal(Reason.TOKEN_UNKNOWN, "the token of the request opens nothing here")
        if request.headers.get("upgrade") is not None:
            return refusing(self._api, no_route(request), 426)
        if route is not None and route.kind is Kind.MODELS:
            return _plain(models_body(self._model.api, self._model.model, route.model))
        if route is None or route.api not in self._routes or route.kind is Kind.EMBEDDINGS:
            refusal = no_route(request)
            if request.method == "POST":
                await self._flights.refuse(refusal)
            raise refusal
        return await self._desk.serve(request, route)


def _plain(body: bytes) -> Response:
    from aiohttp.web import Response

    return Response(body=body, content_type="application/json")
