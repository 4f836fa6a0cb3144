"""One exchange, as far as it is arithmetic: what is sent and held before it, what is charged and recorded after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from proctor.budget.authority import RELEASED, SETTLED
from proctor.core.models import Message, ToolSpec
from proctor.core.money import ZERO, Usd
from proctor.core.prices import NoPrice
from proctor.core.reasons import Reason
from proctor.core.redact import Redactor
from proctor.core.refusal import Refusal
from proctor.evidence.exchanges import unanswered
from proctor.gateway.failures import Failure, Owed
from proctor.gateway.upstream import HttpReply, SendFailed
from proctor.gateway.wire.base import Call, Flag, Reply, Wire, endpoint
from proctor.gateway.wire.requests import MAX_REQUEST_BYTES
from proctor.study.design import ModelDesign
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

    `recorded` is its body without secrets, which `digest` is of. `input_bound` and `output_bound` are in tokens, and
    `worst_case` is what an exchange within them can cost.
    """

    call: Call
    recorded: bytes
    digest: str
    route: str
    input_bound: int
    output_bound: int
    worst_case: Usd

    @property
    def admitted(self) -> dict[str, Any]:
        """The fields of `exchange.admitted` that are the request's."""
        return {
            "route": self.route,
            "request_digest": self.digest,
            "input_bound": self.input_bound,
            "output_bound": self.output_bound,
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
) -> Request:
    """The request that sends a conversation, and its bounds.

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
    try:
        worst_case = model.price.worst_case(inputs, outputs)
    except NoPrice as error:
        raise Refusal(
            Reason.PRICE_UNKNOWN,
            f"the model `{model.name}` has no price for {error.bucket.value} tokens",
            path=f"models.{model.name}",
        ) from error
    route = redactor.text(f"POST {_path(base_url_of(model), call.path)}")
    return Request(call, recorded, wire.digest(recorded), route, inputs, outputs, worst_case)


@lru_cache(maxsize=256)
def _path(base_url: str, path: str) -> str:
    return urlsplit(endpoint(base_url, path)).path


@dataclass(frozen=True, slots=True)
class Ending:
    """How an exchange is settled; `body` has the other fields of `exchange.ended`."""

    charged: Usd
    outcome: str
    blobs: Mapping[str, bytes]
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
    began_ns: int,
) -> Ending:
    """What is charged for an exchange that came to its end, and what is recorded of it.

    Args:
        http: what the upstream gave.
        reply: its body as read, where there is one.
        failure: what went wrong, None for an answer.
        began_ns: monotonic, when it was admitted.
    """
    flags: list[str] = [] if reply is None else [flag.value for flag in reply.flags]
    charged, estimated = ZERO, False
    owed = Owed.USAGE if failure is None else failure.owed
    usage = reply.usage if reply is not None else None
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
        "finish": reply.finish.value if reply is not None and failure is None else None,
        "usage": usage.as_record() if usage is not None else None,
        "estimated": estimated,
        "flags": flags,
        "timing": {phase: max(0, at - began_ns) for phase, at in http.timing.items()},
    }
    outcome = RELEASED if owed is Owed.NOTHING else SETTLED
    if isinstance(http, HttpReply):
        return Ending(charged, outcome, {"response": redactor.bytes(http.body)}, body)
    return Ending(charged, outcome, {}, {**body, "response": None})


def abandon(request: Request, reason: Reason) -> Ending:
    """The end of an exchange that was left while it may have been under way: its worst case is owed."""
    return Ending(request.worst_case, SETTLED, {}, unanswered(reason, estimated=True))


def _charge(request: Request, model: ModelDesign, reply: Reply | None, flags: list[str]) -> tuple[Usd, bool]:
    """What is charged, and whether that is an estimate."""
    usage = reply.usage if reply is not None else None
    if reply is None or usage is None:
        flags.append(NO_USAGE)
        return request.worst_case, True
    try:
        cost = model.price.cost(usage)
    except NoPrice as error:
        flags.append(f"no_price_{error.bucket.value}")
        return request.worst_case, True
    if Flag.UNPRICED_UNITS in reply.flags or Flag.UNPRICED_UNITS in usage.flags:
        # more was used than tokens, and nobody says what that costs
        return max(cost, request.worst_case), True
    return cost, False


def _same_model(asked: str, resolved: str) -> bool:
    """Whether one name goes on where the other ends, as dated names do; providers' prefixes left out."""
    one, other = (name.rpartition("/")[2].lower() for name in (asked, resolved))
    return one.startswith(other) or other.startswith(one)


def recordable(redactor: Redactor, text: str | None, most: int) -> str | None:
    """Foreign text as it may stand in an entry: without secrets, cut after that, and without half a surrogate pair."""
    return None if text is None else redactor.text(text)[:most].encode("utf-8", "replace").decode()
