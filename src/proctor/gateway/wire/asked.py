"""What a request of an agent's own asks for, as far as its price and its bounds depend on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.usage import Bucket
from proctor.core.wires import CHAT, GEMINI
from proctor.gateway.wire.content import Found, camel, shown
from proctor.gateway.wire.features import BOUNDS
from proctor.gateway.wire.reading import json_value
from proctor.gateway.wire.routes import Kind, Route

# Above every bound that a model has, by far.
_MOST = 10**9
_EMBEDDING_KEYS = frozenset({"model", "input", "encoding_format", "dimensions", "user"})
_CHOICES = {CHAT: ("n", "best_of"), GEMINI: ("candidateCount",)}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, as far as it can be told from its route and body.

    `max_output` is the most tokens of output that each of `choices` may have, None where the request does not say.
    `tools` says whether there are any. `elsewhere` names input that is not in the body, so that its bytes bound
    nothing; `unpriced` what changes the price in a way that nobody knows. Each bucket of `buckets` must have a price.
    """

    model: str
    stream: bool
    max_output: int | None
    choices: int
    tools: bool
    elsewhere: tuple[str, ...] = ()
    unpriced: tuple[str, ...] = ()
    buckets: frozenset[Bucket] = frozenset()


def read_asked(route: Route, body: bytes) -> Asked:
    """Read a request's body, decoded.

    A count is free at every provider, whatever is counted: nothing of it is named.

    Raises:
        Refusal: `request_unreadable` where the body is no JSON object, or is ambiguous, nests too deeply, names no
            model, or says a bound that is none.
    """
    return asked_in(route, read_object(body))


def asked_in(route: Route, request: dict[str, Any]) -> Asked:
    """The same, of a body that was read already, and stays as it is. Raises as `read_asked`."""
    if route.api == GEMINI:
        request = camel(request)
        if isinstance(request.get("generationConfig"), dict):
            request["generationConfig"] = camel(request["generationConfig"])
    model = _model(route, request)
    if route.kind is Kind.COUNT:
        return Asked(model, False, 0, 1, bool(request.get("tools")))
    if route.kind is Kind.EMBEDDINGS:
        unknown = [f"unknown key {shown(key)}" for key in request if key not in _EMBEDDING_KEYS]
        return Asked(model, False, 0, 1, False, unpriced=tuple(unknown[:1]))
    found = Found(route.api)
    found.walk(request)
    bounded = request
    if route.api == GEMINI:
        config = request.get("generationConfig")
        bounded = config if isinstance(config, dict) else {}
    return Asked(
        model=model,
        stream=route.stream or _stream(request),
        # Of two bounds, compatible servers differ in which they go by.
        max_output=max(_counts(bounded, BOUNDS[route.api], 0), default=None),
        choices=max(_counts(bounded, _CHOICES.get(route.api, ()), 1), default=1),
        tools=found.tools,
        elsewhere=found.elsewhere,
        unpriced=found.unpriced,
        buckets=frozenset(found.buckets),
    )


def read_object(body: bytes) -> dict[str, Any]:
    """What a request's body, decoded, is. Raises Refusal `request_unreadable`."""
    try:
        value = json_value(body)
    except Refusal as refusal:
        raise _unreadable(refusal.message, refusal.observed, refusal.required) from refusal
    if not isinstance(value, dict):
        raise _unreadable("the body is no JSON object", type(value).__name__)
    return value


def _unreadable(message: str, observed: Any = None, required: Any = None) -> Refusal:
    return Refusal(Reason.REQUEST_UNREADABLE, message, observed=observed, required=required)


def _model(route: Route, request: Mapping[str, Any]) -> str:
    named = request.get("model")
    if route.model is None:
        if not isinstance(named, str) or not named:
            raise _unreadable("the request names no model")
        return named
    if named is not None and not (isinstance(named, str) and _bare(named) == _bare(route.model)):
        raise _unreadable("the body names another model than the path")
    return _bare(route.model)


def _bare(model: str) -> str:
    return model.removeprefix("models/")


def _stream(request: Mapping[str, Any]) -> bool:
    said = request.get("stream")
    if said is not None and not isinstance(said, bool):
        raise _unreadable("`stream` is neither true nor false")
    return bool(said)


def _counts(said: Mapping[str, Any], keys: Iterable[str], least: int) -> Iterator[int]:
    for key in keys:
        value = said.get(key)
        if value is None:
            continue
        if type(value) is not int or not least <= value <= _MOST:
            raise _unreadable(f"`{key}` is no number that it can be", shown(str(value)), {"at least": least})
        yield value
