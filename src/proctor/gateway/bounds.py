"""What a request of an agent inside may cost at most, and whether it may be sent at all: pure."""

from __future__ import annotations

from dataclasses import dataclass

from proctor.core.money import ZERO
from proctor.core.mutations import Mutation
from proctor.core.reasons import Reason
from proctor.core.redact import Redactor
from proctor.core.refusal import Refusal
from proctor.gateway.exchange import TOOLS_TOKENS, Request, route_text, worst_case
from proctor.gateway.wire.asked import Asked, asked_in, read_object
from proctor.gateway.wire.chat import bound_key
from proctor.gateway.wire.decoding import decoded
from proctor.gateway.wire.formats import WIRES
from proctor.gateway.wire.mutating import mutated
from proctor.gateway.wire.requests import MAX_REQUEST_BYTES
from proctor.gateway.wire.routes import Kind, Route
from proctor.study.actors import ModelDesign


@dataclass(frozen=True, slots=True)
class Bounded:
    """A request that may be sent. `sent` is its body as it goes on: as it came, unless `request.mutations` are some."""

    request: Request
    asked: Asked
    sent: bytes


def bound(model: ModelDesign, redactor: Redactor, route: Route, body: bytes, encoding: str | None) -> Bounded:
    """The bounds of a request for the model.

    Args:
        body: as it came.
        encoding: of the body, as its header says.

    Raises:
        Refusal: `request_unreadable`, `request_too_large`, `model_not_listed`, `feature_unpriced`,
            `output_above_bound`, `price_unknown`.
    """
    plain = decoded(encoding, body, MAX_REQUEST_BYTES)
    value = read_object(plain)
    asked = asked_in(route, value)
    _check(model, asked)
    outputs = _outputs(model, asked)
    clear, mutations = mutated(
        route,
        plain,
        frozenset(model.mutations),
        model.max_output_tokens // asked.choices,
        chat_bound=bound_key(model),
    )
    recorded = redactor.bytes(clear)
    inputs = max(len(clear), len(recorded)) + (TOOLS_TOKENS if asked.tools else 0)
    free = route.kind is Kind.COUNT
    if asked.elsewhere:
        inputs = max(inputs, _window(model, asked))
    request = Request(
        recorded=recorded,
        # what nothing was changed of, or taken out of, has been read
        digest=WIRES[route.api].digest(value if recorded is plain else recorded),
        route=route_text(redactor, model, route.path),
        input_bound=inputs,
        output_bound=0 if free else outputs,
        held=ZERO if free else worst_case(model, inputs, outputs),
        free=free,
        mutations=mutations,
    )
    return Bounded(request, asked, clear if mutations else body)


def _check(model: ModelDesign, asked: Asked) -> None:
    if asked.model != model.model.removeprefix("models/"):
        raise Refusal(
            Reason.MODEL_NOT_LISTED,
            "the request is for another model than the trial's",
            path=f"models.{model.name}",
            observed=asked.model[:200],
            required=model.model,
        )
    if asked.unpriced:
        raise Refusal(
            Reason.FEATURE_UNPRICED,
            f"the request uses {', '.join(asked.unpriced)}, whose price is not known",
            observed=list(asked.unpriced),
        )
    priced = {row.bucket for row in model.price.rows}
    unnamed = sorted(bucket.value for bucket in asked.buckets if bucket.value not in priced)
    if unnamed:
        raise Refusal(
            Reason.FEATURE_UNPRICED,
            f"the request makes {', '.join(unnamed)} tokens, for which the model `{model.name}` has no price",
            path=f"models.{model.name}.price",
            observed=unnamed,
        )


def _outputs(model: ModelDesign, asked: Asked) -> int:
    """Tokens that may come out, of all choices together."""
    most = model.max_output_tokens
    # to some compatible servers, none at all is no bound
    stated = asked.max_output or most
    if stated * asked.choices <= most:
        return stated * asked.choices
    if Mutation.CLAMP_MAX_OUTPUT in model.mutations and asked.choices <= most:
        return most // asked.choices * asked.choices
    raise Refusal(
        Reason.OUTPUT_ABOVE_BOUND,
        "the request allows more output than the design does",
        path=f"models.{model.name}.max_output_tokens",
        observed={"max_output": asked.max_output, "choices": asked.choices},
        required={"at most": most},
    )


def _window(model: ModelDesign, asked: Asked) -> int:
    if model.context_window is None:
        raise Refusal(
            Reason.FEATURE_UNPRICED,
            f"input of the request is not in its body ({', '.join(asked.elsewhere)}), so that its size bounds nothing",
            path=f"models.{model.name}.context_window",
            observed=list(asked.elsewhere),
        )
    return model.context_window
