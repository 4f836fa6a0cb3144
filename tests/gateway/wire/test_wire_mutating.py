"""The two admitted changes: what they change is said, and all else of the text is as it came."""

from __future__ import annotations

import json
from itertools import takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.mutations import Mutation
from proctor.gateway.wire.asked import read_asked
from proctor.gateway.wire.mutating import mutated
from proctor.gateway.wire.routes import Route, find_route

BOTH = frozenset(Mutation)
ROUTES = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m:generateContent",
    "count": "/v1/messages/count_tokens",
}


def route(name: str) -> Route:
    found = find_route("POST", ROUTES[name])
    assert found is not None
    return found


USAGE = [
    (b'{"stream":true,"model":"m"}', b'{"stream_options":{"include_usage":true},"stream":true,"model":"m"}'),
    (b' { "stream" : true }\n', b' {"stream_options":{"include_usage":true}, "stream" : true }\n'),
    (b'{"stream":true,"stream_options":null}', b'{"stream":true,"stream_options":{"include_usage":true}}'),
    (b'{"stream":true,"stream_options":{ }}', b'{"stream":true,"stream_options":{"include_usage":true }}'),
    (
        b'{"stream":true,"stream_options":{"include_obfuscation":false}}',
        b'{"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}}',
    ),
    (
        b'{"stream":true,"stream_options": {"a":1, "include_usage" : false }}',
        b'{"stream":true,"stream_options": {"a":1, "include_usage" : true }}',
    ),
    (
        b'{"stre\\u0061m":true,"stream_options":{"include_usag\\u0065":null}}',
        b'{"stre\\u0061m":true,"stream_options":{"include_usag\\u0065":true}}',
    ),
]


@pytest.mark.parametrize(("body", "wanted"), USAGE)
def test_a_stream_is_made_to_tell_its_usage(body: bytes, wanted: bytes) -> None:
    assert mutated(route("chat"), body, frozenset({Mutation.INCLUDE_USAGE}), 5) == (wanted, (Mutation.INCLUDE_USAGE,))


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"m"}',
        b'{"stream":false,"stream_options":{}}',
        b'{"stream":true,"stream_options":{"include_usage":true}}',
        b'{"stream":true,"stream_options":7}',
        b'{"messages":[{"stream":true}]}',
        b'{"model":"\\"stream\\":true"}',
    ],
)
def test_a_request_that_needs_no_usage_stays(body: bytes) -> None:
    assert mutated(route("chat"), body, frozenset({Mutation.INCLUDE_USAGE}), 5) == (body, ())


CLAMPED = [
    ("chat", b'{"max_tokens":9}', b'{"max_tokens":5}'),
    ("chat", b'{"max_tokens":9,"max_completion_tokens": 4}', b'{"max_tokens":5,"max_completion_tokens": 4}'),
    ("chat", b'{"max_tokens":9, "max_completion_tokens":900}', b'{"max_tokens":5, "max_completion_tokens":5}'),
    ("chat", b'{"model":"m"}', b'{"max_completion_tokens":5,"model":"m"}'),
    ("chat", b'{"max_tokens":null,"a":0}', b'{"max_completion_tokens":5,"max_tokens":null,"a":0}'),
    ("responses", b'{"max_output_tokens":9}', b'{"max_output_tokens":5}'),
    ("responses", b'{"max_output_tokens":null}', b'{"max_output_tokens":5}'),
    ("anthropic", b'{"max_tokens":6,"x":1.50}', b'{"max_tokens":5,"x":1.50}'),
    ("gemini", b"{}", b'{"generationConfig":{"maxOutputTokens":5}}'),
    ("gemini", b'{"generation_config":{"max_output_tokens":6}}', b'{"generation_config":{"max_output_tokens":5}}'),
    ("gemini", b'{"generationConfig":{"topK":1}}', b'{"generationConfig":{"maxOutputTokens":5,"topK":1}}'),
]


@pytest.mark.parametrize(("name", "body", "wanted"), CLAMPED)
def test_a_bound_is_lowered_or_stated(name: str, body: bytes, wanted: bytes) -> None:
    assert mutated(route(name), body, frozenset({Mutation.CLAMP_MAX_OUTPUT}), 5) == (
        wanted,
        (Mutation.CLAMP_MAX_OUTPUT,),
    )


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("chat", b'{"max_tokens":5}'),
        ("chat", b'{"max_completion_tokens":1,"messages":[{"max_tokens":900}]}'),
        ("anthropic", b'{"max_tokens":0}'),
        ("gemini", b'{"generationConfig":{"maxOutputTokens":5}}'),
        ("gemini", b'{"generationConfig":"x"}'),
        ("count", b'{"max_tokens":900}'),
    ],
)
def test_a_bound_that_holds_stays(name: str, body: bytes) -> None:
    assert mutated(route(name), body, BOTH, 5) == (body, ())


def test_a_server_that_knows_one_name_of_the_bound_alone_is_sent_that() -> None:
    body, made = mutated(route("chat"), b'{"model":"m"}', BOTH, 5, chat_bound="max_tokens")
    assert (body, made) == (b'{"max_tokens":5,"model":"m"}', (Mutation.CLAMP_MAX_OUTPUT,))


def test_nothing_that_is_not_admitted_happens() -> None:
    body = b'{"model":"m","stream":true,"max_tokens":900}'
    assert mutated(route("chat"), body, frozenset(), 5) == (body, ())
    assert mutated(route("chat"), body, BOTH, 5)[1] == (Mutation.INCLUDE_USAGE, Mutation.CLAMP_MAX_OUTPUT)


def shared(one: bytes, other: bytes) -> int:
    """Bytes with which both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
BOUNDED = st.none() | st.integers(0, 20)
REQUESTS = st.builds(
    lambda free, stream, bounds, options: {"model": "m", **free, **stream, **bounds, **options},
    st.dictionaries(st.text(), VALUES, max_size=4),
    st.fixed_dictionaries({}, optional={"stream": st.booleans()}),
    st.dictionaries(st.sampled_from(["max_tokens", "max_completion_tokens", "max_output_tokens"]), BOUNDED, max_size=3),
    st.fixed_dictionaries(
        {},
        optional={"stream_options": st.none() | st.dictionaries(st.sampled_from(["include_usage", "x"]), VALUES)},
    ),
)


@given(
    st.sampled_from(["chat", "responses", "anthropic"]),
    REQUESTS,
    st.permutations(["max_tokens", "max_completion_tokens", "max_output_tokens", "stream", "stream_options"]),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_only_what_is_admitted_differs_and_the_bound_holds(
    name: str, request: dict[str, Any], order: list[str], indent: int | None, ascii_only: bool
) -> None:
    ordered = {**{key: request[key] for key in order if key in request}, **request}
    body = json.dumps(ordered, indent=indent, ensure_ascii=ascii_only).encode()
    changed, made = mutated(route(name), body, BOTH, 7)
    before, after = json.loads(body), json.loads(changed)
    bounds = {"chat": ("max_tokens", "max_completion_tokens"), "responses": ("max_output_tokens",)}
    touched = {*bounds.get(name, ("max_tokens",)), "stream_options"}
    assert {k: v for k, v in before.items() if k not in touched} == {k: v for k, v in after.items() if k not in touched}
    assert (changed == body) == (not made)
    asked = read_asked(route(name), changed)
    assert asked.max_output is not None and asked.max_output <= 7
    if name == "chat" and asked.stream:
        assert after["stream_options"]["include_usage"] is True
    else:
        assert after.get("stream_options") == before.get("stream_options")
    assert mutated(route(name), changed, BOTH, 7) == (changed, ())
    if name != "chat":
        prefix = shared(body, changed)
        suffix = shared(body[prefix:][::-1], changed[prefix:][::-1])
        assert len(body) - prefix - suffix <= len("null")
