"""One exchange, as far as it is arithmetic: what is sent and held before it, what is charged and recorded after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from proctor.budget.lease import RELEASED, SETTLED
from proctor.core.models import Message, ToolSpec
from proctor.core.money import ZERO, Usd
from proctor.core.prices import NoPrice
from proctor.core.reasons import Reason
from proctor.core.redact import Redactor
from proctor.core.refusal import Refusal
from proctor.evidence.exchanges import unanswered
from proctor.evidence.packs import Content
from proctor.gateway.failures import Failure, Owed
from proctor.gateway.upstream import HttpReply, SendFailed
from proctor.gateway.wire.base import Call, Flag, Reply, Wire, endpoint
from proctor.gateway.wire.requests import MAX_REQUEST_BYTES
from proctor.study.actors import ModelDesign
from proctor.study.providers import PROVIDERS

# What providers add of their own to explain tools to a model: a few hundred tokens at most, wherever it is written.
TOOLS_TOKENS = 2_048
# The journal's entries are bounded; so is what a provider can put into one.
MAX_NAME = 200
# Flags of ours, beside the wire's: what the journal tells of an exchange that was charged all the same.
NO_USAGE = "no_usage"
OTHER_MODEL = "other_model"


@dataclass(frozen=True, slots=True)
class Request:
    """A request, ready to be sent as often as it takes.

    `recorded` is its body, decoded and without secrets, which `digest` is of. `input_bound` and `output_bound` are in
    tokens, and `held` is what an exchange within them can cost: nothing where it is `free`. `mutations` are what was
    changed of it.
    """

    recorded: bytes
    digest: str
    route: str
    input_bound: int
    output_bound: int
    held: Usd
    free: bool = False
    mutations: tuple[str, ...] = ()

    @property
    def admitted(self) -> dict[str, Any]:
        """The fields of `exchange.admitted` that are the request's."""
        return {
            "route": self.route,
            "request_digest": self.digest,
            "input_bound": self.input_bound,
            "output_bound": self.output_bound,
            "mutations": list(self.mutations),
        }


def base_url_of(model: ModelDesign) -> str:
    """Where its provider is; empty for one that is part of proctor."""
    return model.base_url or PROVIDERS[model.provider].base_url or ""


def prepare(
    wire: Wire,
    model: ModelDesign,
    redactor: Redactor,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    max_output_tokens: int | None,
) -> tuple[Call, Request]:
    """The call that sends a conversation, and its bounds.

    A token is at least one byte of what it stands for, and the body's JSON around each message is longer than what a
    provider puts in its place: so the body's bytes bound the tokens that go in, those as recorded too, which is what a
    reader can see of them.

    Raises:
        Refusal: `json_invalid`; `context_exceeded` for a body of more than `MAX_REQUEST_BYTES`; `price_unknown` where
            the model has no price for text.
    """
    call = wire.request(model, messages, tools, max_output_tokens)
    if len(call.body) > MAX_REQUEST_BYTES:
        raise Refusal(
            Reason.CONTEXT_EXCEEDED,
            "the conversation is longer than any that can be sent",
            path=f"models.{model.name}",
            observed={"bytes": len(call.body)},
            required={"bytes": MAX_REQUEST_BYTES},
        )
    recorded = redactor.bytes(call.body)
    inputs = max(len(call.body), len(recorded)) + (TOOLS_TOKENS if tools else 0)
    outputs = model.max_output_tokens
    if max_output_tokens is not None:
        outputs = min(outputs, max_output_tokens)
    held = worst_case(model, inputs, outputs)
    route = route_text(redactor, model, call.path)
    return call, Request(recorded, wire.digest(recorded), route, inputs, outputs, held)


def worst_case(model: ModelDesign, inputs: int, outputs: int) -> Usd:
    """What an exchange within these bounds, in tokens, can cost. Raises Refusal `price_unknown`."""
    try:
        return model.price.worst_case(inputs, outputs)
    except NoPrice as error:
        raise Refusal(
            Reason.PRICE_UNKNOWN,
            f"the model `{model.name}` has no price for {error.bucket.value} tokens",
            path=f"models.{model.name}",
        ) from error


def route_text(redactor: Redactor, model: ModelDesign, path: str) -> str:
    """The `route` of `exchange.admitted`."""
    return _route(redactor, base_url_of(model), path)


@lru_cache(maxsize=256)
def _route(redactor: Redactor, base_url: str, path: str) -> str:
    return redactor.text(f"POST {urlsplit(endpoint(base_url, path)).path}")


@dataclass(frozen=True, slots=True)
class Recorded:
    """What came back, without secrets: the body, the map of its chunks, and flags of ours."""

    response: Content | None = None
    chunks: bytes | None = None
    flags: tuple[str, ...] = ()

    @property
    def blobs(self) -> dict[str, Content]:
        """By field."""
        both = {"response": self.response, "chunks": self.chunks}
        return {name: content for name, content in both.items() if content is not None}


@dataclass(frozen=True, slots=True)
class Ending:
    """How an exchange is settled; `body` has the other fields of `exchange.ended`."""

    charged: Usd
    outcome: str
    blobs: Mapping[str, Content]
    body: Mapping[str, Any]

    @property
    def flags(self) -> tuple[str, ...]:
        """What of it does not fit together."""
        return tuple(self.body["flags"])


def conclude(
    request: Request,
    model: ModelDesign,
    redactor: Redactor,
    http: HttpReply | SendFailed,
    reply: Reply | None,
    failure: Failure | None,
    recorded: Recorded,
    began_ns: int,
) -> Ending:
    """What is charged for an exchange that came to its end, and what is recorded of it.

    Args:
        http: what the upstream gave; of a reply, only what comes before its body.
        reply: its body as read, where there is one.
        failure: what went wrong, None for an answer.
        recorded: what is kept of the body.
        began_ns: monotonic, when it was admitted.
    """
    flags: list[str] = [] if reply is None else [flag.value for flag in reply.flags]
    charged, estimated = ZERO, False
    owed = Owed.NOTHING if request.free else Owed.USAGE if failure is None else failure.owed
    usage = reply.usage if reply is not None and not request.free else None
    if owed is not Owed.NOTHING:
        charged, estimated = _charge(request, model, reply if owed is Owed.USAGE else None, flags)
    if usage is not None:
        flags += [flag for flag in usage.flags if flag not in flags]
    resolved = reply.model if reply is not None else None
    if resolved is not None and not _same_model(model.model, resolved):
        flags.append(OTHER_MODEL)
    body = {
        "http_status": http.status,
        "error": failure.reason.id if failure is not None else None,
        "resolved_model": recordable(redactor, resolved, MAX_NAME),
        "finish": reply.finish.value if reply is not None and failure is None and not request.free else None,
        "usage": usage.as_record() if usage is not None else None,
        "estimated": estimated,
        "flags": [*flags, *recorded.flags],
        "timing": {phase: max(0, at - began_ns) for phase, at in http.timing.items()},
    }
    blobs = recorded.blobs
    absent = {name: None for name in ("response", "chunks") if name not in blobs}
    return Ending(charged, RELEASED if owed is Owed.NOTHING else SETTLED, blobs, {**body, **absent})


def abandon(request: Request, reason: Reason) -> Ending:
    """The end of an exchange that was left while it may have been under way: its worst case is owed."""
    if request.free:
        return Ending(ZERO, RELEASED, {}, unanswered(reason, estimated=False))
    return Ending(request.held, SETTLED, {}, unanswered(reason, estimated=True))


def _charge(request: Request, model: ModelDesign, reply: Reply | None, flags: list[str]) -> tuple[Usd, bool]:
    """What is charged, and whether that is an estimate."""
    usage = reply.usage if reply is not None else None
    if reply is None or usage is None:
        flags.append(NO_USAGE)
        return request.held, True
    try:
        cost = model.price.cost(usage)
    except NoPrice as error:
        flags.append(f"no_price_{error.bucket.value}")
        return request.held, True
    if Flag.UNPRICED_UNITS in reply.flags or Flag.UNPRICED_UNITS in usage.flags:
        # more was used than tokens, and nobody says what that costs
        return max(cost, request.held), True
    return cost, False


def _same_model(asked: str, resolved: str) -> bool:
    """Whether one name goes on where the other ends, as dated names do; providers' prefixes left out."""
    one, other = (name.rpartition("/")[2].lower() for name in (asked, resolved))
    return one.startswith(other) or other.startswith(one)


def recordable(redactor: Redactor, text: str | None, most: int) -> str | None:
    """Foreign text as it may stand in an entry: without secrets, cut after that, and without half a surrogate pair."""
    return None if text is None else redactor.text(text)[:most].encode("utf-8", "replace").decode()
