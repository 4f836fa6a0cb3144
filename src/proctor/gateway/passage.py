"""One exchange of an agent inside: held, sent as it came, passed back as it comes, settled before its last byte is.

A client that hangs up stops nothing: what was sent is read to its end, and charged. A reply that breaks off is broken
off for the client, too. What is said of the end is durable before the client can see that there is one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proctor.core.reasons import Reason
from proctor.evidence.runfolder import RunFolder
from proctor.gateway.bounds import Bounded
from proctor.gateway.client import Client
from proctor.gateway.exchange import Recorded, abandon, conclude
from proctor.gateway.failures import Failure, Seen, classify
from proctor.gateway.flights import Flights
from proctor.gateway.inbound import encoding_of, passed_headers
from proctor.gateway.line import BYTES_PER_TOKEN, Line, Means
from proctor.gateway.recording import Recording
from proctor.gateway.tee import KeyEchoed, Tee
from proctor.gateway.upstream import Cut, HttpReply, Incoming, Outgoing, SendFailed
from proctor.gateway.wire.base import Reply
from proctor.gateway.wire.decoding import Undecodable
from proctor.gateway.wire.formats import reader_of
from proctor.gateway.wire.routes import Route
from proctor.study.actors import ModelDesign

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest

# Flags of ours in `exchange.ended`.
CLIENT_GONE = "client_gone"
KEY_ECHOED = "key_echoed"
BROKEN_OFF = "broken_off"


@dataclass(frozen=True, slots=True)
class Way:
    """What the passages of one door share. `touch` is called whenever something passes, either way."""

    means: Means
    model: ModelDesign
    line: Line
    flights: Flights
    run: RunFolder
    touch: Callable[[], None]


@dataclass(slots=True)
class _Came:
    """What came of an exchange; `last` is what the client is still to be sent."""

    http: HttpReply | SendFailed
    reply: Reply | None = None
    recorded: Recorded = field(default_factory=Recorded)
    last: bytes = b""


class Passage:
    """One exchange."""

    def __init__(self, way: Way, route: Route, bounded: Bounded, request: BaseRequest) -> None:
        self._way = way
        self._route = route
        self._bounded = bounded
        self.client = Client(request, way.model.request_timeout_sec, way.touch)
        self._whole: tuple[int, list[tuple[str, str]]] | None = None

    async def pass_on(self, out: Outgoing, before: str | None) -> tuple[str, Failure | None]:
        """Hold, send, pass back, settle; the exchange, and what went wrong with it. The reply has not ended yet.

        Args:
            before: the exchange whose request this one sends again.

        Raises:
            Refusal: as `Flights.hold`, with nothing sent; the journal's, or that of the disk.
            ConnectionError: the client went before anything was held.
        """
        way, request = self._way, self._bounded.request
        guess = len(request.recorded) // BYTES_PER_TOKEN
        await way.line.rate.take(guess)
        if self.client.is_lost:
            # nobody waits for it any more, and nothing was spent
            way.line.rate.correct(-guess)
            raise ConnectionResetError("the client is gone")
        with way.flights.flight():
            exchange = await way.flights.hold(request, before)
            try:
                came, failure = await self._settled(exchange, out)
                await way.flights.durable()
            except BaseException:
                # what was begun has no end that is on the record
                self.client.cut()
                raise
        if came.reply is not None and came.reply.usage is not None:
            way.line.rate.correct(came.reply.usage.total - guess)
        await self._finish(came)
        return exchange, failure

    async def _settled(self, exchange: str, out: Outgoing) -> tuple[_Came, Failure | None]:
        """What came of it, and what went wrong with it; settled once, whatever happens."""
        means, model, request = self._way.means, self._way.model, self._bounded.request
        began = means.clock.mono_ns()
        try:
            came = await self._exchange(out)
            failure = classify(Seen.of(came.http, came.reply))
            ending = conclude(request, model, means.redactor, came.http, came.reply, failure, came.recorded, began)
        except BaseException as error:
            cancelled = isinstance(error, asyncio.CancelledError)
            reason = Reason.INTERRUPTED if cancelled else Reason.INTERNAL_ERROR
            self._way.flights.settle(exchange, abandon(request, reason))
            raise
        self._way.flights.settle(exchange, ending)
        return came, failure

    async def _exchange(self, out: Outgoing) -> _Came:
        model = self._way.model
        recording = Recording(self._way.run, self._way.means.redactor)
        try:
            try:
                async with self._way.line.upstream.open(out, deadline_sec=model.request_timeout_sec) as coming:
                    return await self._reply(coming, recording)
            except SendFailed as broken:
                return _Came(broken)
        except BaseException:
            recording.discard()
            raise

    async def _reply(self, coming: Incoming, recording: Recording) -> _Came:
        headers = {name.lower(): value for name, value in coming.headers}
        stream = self._bounded.asked.stream
        last, broken, flags = b"", None, []
        try:
            redactor = self._way.means.redactor
            tee = Tee(reader_of(self._route, stream), recording, redactor, encoding_of(coming.headers))
        except Undecodable as error:
            return _Came(Cut(str(error), status=coming.status, timing=coming.timing))
        try:
            last = await self._stream(coming, tee, _length(headers))
        except SendFailed as error:
            broken = error
            flags.append(BROKEN_OFF)
        if tee.echoed or isinstance(broken, KeyEchoed):
            flags.append(KEY_ECHOED)
        if self.client.is_lost:
            flags.append(CLIENT_GONE)
        if broken is not None and broken.status is None:
            broken.status, broken.timing = coming.status, dict(coming.timing)
        http = broken or HttpReply(coming.status, headers, b"", coming.timing)
        recorded = await tee.recorded(chunks=stream, flags=tuple(flags))
        return _Came(http, tee.reply(), recorded, last)

    async def _stream(self, coming: Incoming, tee: Tee, length: int | None) -> bytes:
        """Pass all of it on but for the last bytes, which are returned. Raises SendFailed."""
        clock, client, touch = self._way.means.clock, self.client, self._way.touch
        headers = passed_headers(coming.headers, self._way.means.redactor)
        if length is None:
            # a client may wait for the first event longer than for the head
            await client.begin(coming.status, headers, None)
        chunk = await coming.read()
        passed = await tee.take(chunk, clock.mono_ns()) if chunk else b""
        if length is not None and len(chunk) == length and not await coming.read():
            # all of it is here, so it may have another length than it came with
            self._whole = coming.status, headers
            return passed + tee.end()
        if length is not None:
            await client.begin(coming.status, headers, length)
        sent = 0
        while chunk:
            touch()
            if length is not None and sent + len(passed) >= length:
                break
            sent += len(passed)
            await client.write(passed)
            chunk = await coming.read()
            passed = await tee.take(chunk, clock.mono_ns()) if chunk else b""
            if tee.echoed and length is not None:
                raise KeyEchoed("the reply holds a key, and has a length that does not change")
        if chunk and await coming.read():
            raise Cut("the reply is longer than it says")
        return passed + tee.end()

    async def _finish(self, came: _Came) -> None:
        if isinstance(came.http, SendFailed):
            if self.client.response is not None:
                self.client.cut()
        elif self._whole is not None:
            await self.client.answer(*self._whole, came.last)
        else:
            await self.client.end(came.last)


def _length(headers: dict[str, str]) -> int | None:
    said = headers.get("content-length", "")
    return int(said) if said.isascii() and said.isdecimal() else None
