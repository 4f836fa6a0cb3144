"""The model of an attempt whose agent runs inside of its sandbox: an HTTP server on a socket that listens there."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from proctor.core.models import Door
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.runfolder import RunFolder
from proctor.gateway.desk import Desk
from proctor.gateway.failures import Failure
from proctor.gateway.flights import Flights
from proctor.gateway.line import Line, Means
from proctor.gateway.passage import Way
from proctor.gateway.reception import Reception
from proctor.gateway.wire.routes import Route, models_body
from proctor.study.actors import ModelDesign

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest, StreamResponse


class Opened(Reception):
    """A door that is open, until `close`.

    `refused` is the first refusal for money, and `failed` what went wrong with the last exchange that ended; None
    where nothing did.
    """

    def __init__(
        self, means: Means, model: ModelDesign, line: Line, flights: Flights, run: RunFolder, sock: socket.socket
    ) -> None:
        """For `Gateway.open`."""
        super().__init__(model.api, sock)
        self._last_ns = means.clock.mono_ns()
        self._means = means
        self._flights = flights
        self._desk = Desk(Way(means, model, line, flights, run, self._touch))
        self.door = Door(
            base_url=self.base_url,
            token=self.token,
            model=model.model,
            api=model.api,
            effort=model.effort,
            max_output_tokens=model.max_output_tokens,
            last_ns=lambda: self._last_ns,
        )

    @property
    def failed(self) -> Failure | None:
        """What went wrong with the last exchange that ended."""
        return self._desk.failed

    @property
    def refused(self) -> Refusal | None:
        """The first refusal for money."""
        return self._flights.refused

    @property
    def never_asked(self) -> Refusal | None:
        """Why the study kept from its model what an agent asked, where none of it was passed on."""
        return None if self._desk.asked else self._desk.turned_away

    async def close(self) -> None:
        """Take nothing more, and wait until all that is in flight is settled and on the record.

        Raises:
            Refusal: the journal's, or that of the disk, where something could not be written.
        """
        self.hush()
        try:
            await self._flights.close()
        finally:
            await self.hang_up()
        if self.fault is not None:
            raise self.fault

    def check_open(self) -> None:
        """See `Reception`."""
        self._touch()
        if self._flights.closed:
            raise Refusal(Reason.TOKEN_UNKNOWN, "the token of the request opens nothing here")

    def listed(self, route: Route) -> bytes:
        """See `Reception`."""
        return models_body(self.door.api, self.door.model, route.model)

    async def refuse(self, refusal: Refusal) -> None:
        """See `Reception`."""
        await self._flights.refuse(refusal)

    async def serve(self, request: BaseRequest, route: Route) -> StreamResponse:
        """See `Reception`."""
        return await self._desk.serve(request, route)

    def _touch(self) -> None:
        self._last_ns = self._means.clock.mono_ns()
