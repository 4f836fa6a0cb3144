"""The changes that a design may admit to requests of agents' own. Each is in one place of the text; all else stays as
it came, byte for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from proctor.core.mutations import Mutation
from proctor.core.wires import CHAT, GEMINI
from proctor.gateway.wire.features import BOUNDS
from proctor.gateway.wire.routes import Kind, Route

_GEMINI_CONFIG = ("generationConfig", "generation_config")
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()

# Text that takes the place of what stands from one index to another.
_Edit = tuple[int, int, str]


def mutated(
    route: Route, body: bytes, admitted: frozenset[str], max_output: int, *, chat_bound: str = "max_completion_tokens"
) -> tuple[bytes, tuple[str, ...]]:
    """A request's body with what is admitted of it changed, and the names of what was.

    `include_usage` has a stream of the chat format tell its usage. `clamp_max_output` lowers a bound of the output
    that is above `max_output`, and states one where there is none.

    Args:
        route: of the request.
        body: decoded, as `read_asked` has read it without a refusal.
        admitted: the names of the mutations that the design admits.
        max_output: tokens of output that each choice may have.
        chat_bound: what the model's provider calls the bound in the chat format.
    """
    if route.kind is not Kind.ANSWER or not admitted:
        return body, ()
    text = body.decode("utf-8")
    root = _Object(text, 0)
    edits: dict[Mutation, list[_Edit]] = {}
    if Mutation.INCLUDE_USAGE in admitted and route.api == CHAT and root.value("stream") is True:
        edits[Mutation.INCLUDE_USAGE] = list(_telling_usage(root))
    if Mutation.CLAMP_MAX_OUTPUT in admitted:
        first = chat_bound if route.api == CHAT else BOUNDS[route.api][0]
        edits[Mutation.CLAMP_MAX_OUTPUT] = list(_clamped(route, root, first, max_output))
    if not any(edits.values()):
        return body, ()
    changed = _applied(text, (edit for made in edits.values() for edit in made))
    return changed.encode(), tuple(name.value for name, made in edits.items() if made)


def _telling_usage(root: _Object) -> Iterator[_Edit]:
    options = root.value("stream_options")
    if options is None:
        yield root.put("stream_options", '{"include_usage":true}')
    elif isinstance(options, dict) and options.get("include_usage") is not True:
        yield root.inner("stream_options").put("include_usage", "true")


def _clamped(route: Route, root: _Object, first: str, most: int) -> Iterator[_Edit]:
    holder = root
    if route.api == GEMINI:
        name = next((key for key in _GEMINI_CONFIG if root.value(key) is not None), _GEMINI_CONFIG[0])
        config = root.value(name)
        if config is None:
            yield root.put(name, f'{{"{first}":{most}}}')
            return
        if not isinstance(config, dict):
            return
        holder = root.inner(name)
    stated = [key for key in BOUNDS[route.api] if holder.value(key) is not None]
    for key in stated:
        value = holder.value(key)
        if isinstance(value, int) and value > most:
            yield holder.put(key, str(most))
    if not stated:
        yield holder.put(first, str(most))


def _applied(text: str, edits: Iterable[_Edit]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, put in sorted(edits, key=lambda edit: edit[0]):
        pieces += (text[at:start], put)
        at = end
    return "".join((*pieces, text[at:]))


class _Object:
    """An object in a JSON text, and where the values of its members stand.

    Args:
        text: valid JSON, without a key that stands twice.
        at: where the object begins, or the space before it.
    """

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self._first = _skip(text, at) + 1
        self._members: dict[str, tuple[int, int, object]] = {}
        at = _skip(text, self._first)
        while text[at] != "}":
            key, at = _DECODER.raw_decode(text, at)
            start = _skip(text, _skip(text, at) + 1)
            value, end = _DECODER.raw_decode(text, start)
            self._members[key] = start, end, value
            at = _skip(text, end)
            if text[at] == ",":
                at = _skip(text, at + 1)

    def value(self, key: str) -> object:
        """The value of a key, None where there is none."""
        return self._members[key][2] if key in self._members else None

    def inner(self, key: str) -> _Object:
        """The object that a key has."""
        return _Object(self._text, self._members[key][0])

    def put(self, key: str, value: str) -> _Edit:
        """The edit that gives a key this value."""
        if key in self._members:
            start, end, _ = self._members[key]
            return start, end, value
        return self._first, self._first, f'"{key}":{value}' + ("," if self._members else "")


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match is not None else at
