"""Every model call of proctor's own agents: bounded, held, sent, read, priced, settled, each on the record.

An exchange's worst case is durable in the journal before its request leaves. Whatever happens then, cancellation and
faults of our own included, it is settled or released exactly once: what may have been sent is charged. Each try is an
exchange of its own. Nothing is recorded, or raised, before secrets are taken out of it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from proctor.budget.authority import EntryWriter, Lease
from proctor.core.clock import Clock
from proctor.core.models import Answer, Message, Role, ToolSpec
from proctor.core.money import ZERO
from proctor.core.reasons import Reason
from proctor.core.redact import Redactor
from proctor.core.refusal import Refusal
from proctor.core.tokens import Admitted
from proctor.core.usage import Usage
from proctor.evidence.kinds import Kind
from proctor.gateway.exchange import MAX_NAME, Ending, Request, abandon, base_url_of, conclude, prepare, recordable
from proctor.gateway.failures import TRIES, Failure, Seen, asked_wait, classify, wait_sec
from proctor.gateway.http import HttpUpstream
from proctor.gateway.practice import Practice
from proctor.gateway.rates import Rate, Sleep
from proctor.gateway.upstream import HttpReply, SendFailed, Upstream
from proctor.gateway.wire.base import Reply, Wire, WireError
from proctor.gateway.wire.formats import WIRES
from proctor.study.design import ModelDesign
from proctor.study.providers import PRACTICE

# An attempt that ends has cancelled its agent, which settles at once; what is still in flight then is cancelled too.
CLOSE_SEC = 10.0
# A rough guess for rates alone, put right by the usage: no money goes by it.
BYTES_PER_TOKEN = 4
_MAX_SAID = 300


@dataclass(frozen=True, slots=True)
class _Line:
    """What all attempts of one model share."""

    wire: Wire
    upstream: Upstream
    rate: Rate


class Gateway:
    """Makes the access to models that attempts are handed; for one event loop.

    Args:
        keys: values by the name of their variable.
        sleep: waits for seconds.
        chance: a number from 0 to 1, for the spread of retries.
    """

    def __init__(
        self,
        admitted: Admitted,
        keys: Mapping[str, str],
        clock: Clock,
        *,
        sleep: Sleep = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.redactor = Redactor(keys.values())
        self.clock = clock
        self.sleep = sleep
        self.chance = chance
        self._admitted = admitted
        self._keys = keys
        self._lines: dict[str, _Line] = {}

    def access(self, model: ModelDesign, lease: Lease, writer: EntryWriter, attempt: str) -> Access:
        """The model of one attempt, whose exchanges are numbered from 0.

        Raises:
            Refusal: `key_missing`: the variable that should hold the model's key is none of `keys`;
                `key_rejected`: no header can hold it; `invalid_value`: its base URL is none.
        """
        line = self._lines.get(model.name)
        if line is None:
            line = self._lines[model.name] = self._line(model)
        return Access(self, model, line, lease, writer, attempt)

    async def close(self) -> None:
        """Close all connections. Every access is closed before."""
        lines, self._lines = self._lines, {}
        for line in lines.values():
            await line.upstream.close()

    def _line(self, model: ModelDesign) -> _Line:
        wire = WIRES[model.api]
        rate = Rate(model.rpm, model.tpm, self.clock, self.sleep)
        if model.api == PRACTICE:
            return _Line(wire, Practice(), rate)
        auth = None
        if model.api_key_env is not None:
            key = self._keys.get(model.api_key_env)
            if not key:
                raise Refusal(Reason.KEY_MISSING, f"the key of `{model.name}` is missing", required=model.api_key_env)
            if not key.isprintable():
                raise Refusal(Reason.KEY_REJECTED, f"the key of `{model.name}` has characters that no header can hold")
            auth = wire.auth_header(key)
        try:
            upstream = HttpUpstream(self._admitted, base_url_of(model), auth, self.clock)
        except ValueError as error:
            path = f"models.{model.name}.base_url"
            raise Refusal(Reason.INVALID_VALUE, "a base URL cannot be read as one", path=path) from error
        return _Line(wire, upstream, rate)


class Access:
    """A `ModelAccess`: the model of one attempt, until it is closed."""

    def __init__(
        self, gateway: Gateway, model: ModelDesign, line: _Line, lease: Lease, writer: EntryWriter, attempt: str
    ) -> None:
        """For `Gateway.access`."""
        self._gateway = gateway
        self._model = model
        self._line = line
        self._lease = lease
        self._writer = writer
        self._attempt = attempt
        self._count = 0
        self._closed = False
        # numbers have no gaps: a hold that is refused uses none, so holds of an attempt are taken one by one
        self._numbering = asyncio.Lock()
        self._flying: set[asyncio.Task[object] | None] = set()
        self._landed = asyncio.Event()

    async def ask(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), *, max_output_tokens: int | None = None
    ) -> Answer:
        """See `ModelAccess.ask`. Raises Refusal, `lease_stale` once it is closed."""
        gateway = self._gateway
        self._check_open()
        request = await self._prepare(messages, tools, max_output_tokens)
        guess = len(request.recorded) // BYTES_PER_TOKEN
        before: str | None = None
        for tries in range(1, TRIES + 1):
            await self._line.rate.take(guess)
            exchange = await self._hold(request, before)
            tried = await self._send(request, exchange)
            if tried.usage is not None:
                self._line.rate.correct(tried.usage.total - guess)
            if isinstance(tried, Answer):
                return tried
            if not tried.failure.again or tries == TRIES:
                raise tried.refusal(exchange, tries)
            before = exchange
            await gateway.sleep(wait_sec(tries, tried.asked_sec, gateway.chance()))
        raise AssertionError("the last try returns or raises")

    async def close(self) -> None:
        """Wait until all that is in flight is settled and on the record; nothing can be asked from here on.

        Raises:
            Refusal: the journal's, where it could not be written.
        """
        self._closed = True
        async with self._numbering:
            # one that is being held comes to be in flight, and no other follows
            pass
        for patience in (CLOSE_SEC, CLOSE_SEC):
            if not self._flying:
                break
            try:
                async with asyncio.timeout(patience):
                    await self._landed.wait()
            except TimeoutError:
                for task in self._flying:
                    if task is not None:
                        task.cancel()
        self._lease.end()
        await self._writer.settle()

    def _check_open(self) -> None:
        if self._closed:
            raise Refusal(Reason.LEASE_STALE, "the attempt is over, so its model cannot be asked", path=self._attempt)

    async def _prepare(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], max_output_tokens: int | None
    ) -> Request:
        try:
            return prepare(self._line.wire, self._model, self._gateway.redactor, messages, tools, max_output_tokens)
        except Refusal as refusal:
            if refusal.reason is Reason.PRICE_UNKNOWN:
                said = {"reason": refusal.reason.id, "held": str(ZERO), "message": refusal.message}
                self._writer.post(Kind.EXCHANGE_REFUSED, model=self._model.name, **said)
                await self._writer.settle()
            raise

    async def _hold(self, request: Request, before: str | None) -> str:
        """Hold the worst case, durably; returns the exchange's id. In flight from here on. Raises Refusal."""
        async with self._numbering:
            self._check_open()
            exchange = f"{self._attempt}/{self._count}"
            self._count += 1
            try:
                await self._lease.hold(
                    self._writer,
                    exchange,
                    request.worst_case,
                    blobs={"request": request.recorded},
                    retries=before,
                    **request.admitted,
                )
            except Refusal:
                self._count -= 1
                raise
            return exchange

    async def _send(self, request: Request, exchange: str) -> Answer | _Failed:
        """Send what is held, and settle it: nothing is awaited but the reply, so nothing else can come between."""
        task = asyncio.current_task()
        self._flying.add(task)
        self._landed.clear()
        began = self._gateway.clock.mono_ns()
        try:
            try:
                http, reply = await self._exchange(request)
                failure = classify(Seen.of(http, reply))
                ending = conclude(request, self._model, self._gateway.redactor, http, reply, failure, began)
            except BaseException as error:
                cancelled = isinstance(error, asyncio.CancelledError)
                self._settle(exchange, abandon(request, Reason.INTERRUPTED if cancelled else Reason.INTERNAL_ERROR))
                raise
            self._settle(exchange, ending)
        finally:
            self._flying.discard(task)
            if not self._flying:
                self._landed.set()
        if failure is not None:
            return self._failed(failure, http, reply, ending)
        return _answer(reply or Reply(), exchange, ending)

    async def _exchange(self, request: Request) -> tuple[HttpReply | SendFailed, Reply | None]:
        try:
            http = await self._line.upstream.send(request.call, deadline_sec=self._model.request_timeout_sec)
        except SendFailed as broken:
            return broken, None
        reader = self._line.wire.reader()
        # what an agent hears it may write anywhere
        reader.feed(self._gateway.redactor.certain(http.body))
        return http, reader.close()

    def _settle(self, exchange: str, ending: Ending) -> None:
        self._lease.settle(
            self._writer, exchange, ending.charged, outcome=ending.outcome, blobs=ending.blobs, **ending.body
        )

    def _failed(self, failure: Failure, http: HttpReply | SendFailed, reply: Reply | None, ending: Ending) -> _Failed:
        error = (reply.error if reply is not None else None) or WireError()
        said = error.message or (str(http) if isinstance(http, SendFailed) else ", ".join(ending.flags))
        clean = self._gateway.redactor
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
