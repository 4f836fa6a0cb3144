"""The model of an attempt whose agent acts from outside of its sandbox: what proctor's own agents call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from proctor.core.models import Answer, Message, Role, ToolSpec
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.usage import Usage
from proctor.gateway.exchange import MAX_NAME, Ending, Recorded, Request, abandon, conclude, prepare, recordable
from proctor.gateway.failures import TRIES, Failure, Seen, asked_wait, classify, wait_sec
from proctor.gateway.flights import Flights
from proctor.gateway.line import BYTES_PER_TOKEN, Line, Means
from proctor.gateway.upstream import HttpReply, SendFailed
from proctor.gateway.wire.base import Call, Reply, WireError
from proctor.study.actors import ModelDesign

_MAX_SAID = 300


class Access:
    """A `ModelAccess`: the model of one attempt, until it is closed."""

    def __init__(self, means: Means, model: ModelDesign, line: Line, flights: Flights) -> None:
        """For `Gateway.access`."""
        self._means = means
        self._model = model
        self._line = line
        self._flights = flights

    async def ask(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), *, max_output_tokens: int | None = None
    ) -> Answer:
        """See `ModelAccess.ask`. Raises Refusal, `lease_stale` once it is closed."""
        self._flights.check_open()
        call, request = await self._prepare(messages, tools, max_output_tokens)
        guess = len(request.recorded) // BYTES_PER_TOKEN
        before: str | None = None
        for tries in range(1, TRIES + 1):
            await self._line.rate.take(guess)
            with self._flights.flight():
                exchange = await self._flights.hold(request, before)
                tried = await self._send(call, request, exchange)
            if tried.usage is not None:
                self._line.rate.correct(tried.usage.total - guess)
            if isinstance(tried, Answer):
                return tried
            if not tried.failure.again or tries == TRIES:
                raise tried.refusal(exchange, tries)
            before = exchange
            await self._means.sleep(wait_sec(tries, tried.asked_sec, self._means.chance()))
        raise AssertionError("the last try returns or raises")

    async def close(self) -> None:
        """Wait until all that is in flight is settled and on the record; nothing can be asked from here on.

        Raises:
            Refusal: the journal's, where it could not be written.
        """
        await self._flights.close()

    async def _prepare(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], max_output_tokens: int | None
    ) -> tuple[Call, Request]:
        try:
            return prepare(self._line.wire, self._model, self._means.redactor, messages, tools, max_output_tokens)
        except Refusal as refusal:
            if refusal.reason is Reason.PRICE_UNKNOWN:
                await self._flights.refuse(refusal)
            raise

    async def _send(self, call: Call, request: Request, exchange: str) -> Answer | _Failed:
        """Send what is held, and settle it: nothing is awaited but the reply, so nothing else can come between."""
        began, clean = self._means.clock.mono_ns(), self._means.redactor
        try:
            http, reply = await self._exchange(call)
            failure = classify(Seen.of(http, reply))
            recorded = Recorded(clean.bytes(http.body)) if isinstance(http, HttpReply) else Recorded()
            ending = conclude(request, self._model, clean, http, reply, failure, recorded, began)
        except BaseException as error:
            cancelled = isinstance(error, asyncio.CancelledError)
            reason = Reason.INTERRUPTED if cancelled else Reason.INTERNAL_ERROR
            self._flights.settle(exchange, abandon(request, reason))
            raise
        self._flights.settle(exchange, ending)
        if failure is not None:
            return self._failed(failure, http, reply, ending)
        return _answer(reply or Reply(), exchange, ending)

    async def _exchange(self, call: Call) -> tuple[HttpReply | SendFailed, Reply | None]:
        try:
            http = await self._line.upstream.send(call, deadline_sec=self._model.request_timeout_sec)
        except SendFailed as broken:
            return broken, None
        reader = self._line.wire.reader()
        # what an agent hears it may write anywhere
        reader.feed(self._means.redactor.certain(http.body))
        return http, reader.close()

    def _failed(self, failure: Failure, http: HttpReply | SendFailed, reply: Reply | None, ending: Ending) -> _Failed:
        error = (reply.error if reply is not None else None) or WireError()
        said = error.message or (str(http) if isinstance(http, SendFailed) else ", ".join(ending.flags))
        clean = self._means.redactor
        return _Failed(
            failure=failure,
            model=self._model.name,
            status=http.status,
            kind=recordable(clean, error.kind, MAX_NAME),
            code=recordable(clean, error.code, MAX_NAME),
            said=recordable(clean, said, _MAX_SAID) or "",
            asked_sec=asked_wait(http, reply, datetime.now(UTC)),
            usage=reply.usage if reply is not None else None,
        )


@dataclass(frozen=True, slots=True)
class _Failed:
    """A try without an answer; nothing in it holds a secret."""

    failure: Failure
    model: str
    status: int | None
    kind: str | None
    code: str | None
    said: str
    asked_sec: float | None
    usage: Usage | None

    def refusal(self, exchange: str, tries: int) -> Refusal:
        """What the agent, and `attempt.ended`, hear after the last try."""
        status = f" that can be used, status {self.status}" if self.status is not None else ""
        after = f", {tries} times" if tries > 1 else ""
        return Refusal(
            self.failure.reason,
            f"the model `{self.model}` gave no answer{status}{after}: {self.said or 'nothing is said of why'}",
            path=exchange,
            observed={"status": self.status, "kind": self.kind, "code": self.code},
        )


def _answer(reply: Reply, exchange: str, ending: Ending) -> Answer:
    return Answer(
        message=Message(Role.ASSISTANT, reply.text, reply.calls, native=reply.native),
        finish=reply.finish,
        usage=reply.usage if reply.usage is not None else Usage(),
        cost=ending.charged,
        exchange=exchange,
        flags=ending.flags,
    )
