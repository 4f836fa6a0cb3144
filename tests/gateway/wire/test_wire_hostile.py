"""Replies that somebody changed: any value of any type anywhere, any byte, any cut. Never a traceback."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_parts import STREAMS, WHOLE, model, read, sse

from proctor.core.models import Message, Role
from proctor.gateway.wire.base import Flag, Reply
from proctor.gateway.wire.formats import WIRES
from proctor.gateway.wire.reading import MAX_VALUES

APIS = sorted(WHOLE)
ODD = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.5,
        10**30,
        "",
        "text",
        "ü👋",
        [],
        [None],
        [[]],
        [7],
        {},
        {"type": 7},
        {"index": "x"},
        [{}],
        {"text": []},
    ]
) | st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every holder and key within a value."""
    found: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        holder = pending.pop()
        keys = (
            list(holder) if isinstance(holder, dict) else list(range(len(holder))) if isinstance(holder, list) else []
        )
        for key in keys:
            found.append((holder, key))
            pending.append(holder[key])
    return found


def changed(value: Any, data: st.DataObject) -> Any:
    made = copy.deepcopy(value)
    for _ in range(data.draw(st.integers(1, 3))):
        found = places(made)
        if not found:
            break
        holder, key = data.draw(st.sampled_from(found))
        holder[key] = copy.deepcopy(data.draw(ODD))
    return made


def check(api: str, reply: Reply) -> None:
    assert type(reply.text) is type(reply.thoughts) is str
    assert reply.model is None or type(reply.model) is str
    assert reply.raw_finish is None or type(reply.raw_finish) is str
    assert len(set(reply.flags)) == len(reply.flags)
    for call in reply.calls:
        assert call.id
        assert call.name or not reply.whole
        assert call.arguments is None or type(call.arguments) is dict
    if reply.usage is not None:
        assert all(type(count) is int and count > 0 for count in reply.usage.tokens.values())
        assert set(reply.usage.flags) <= set(reply.flags)
    said = Message(Role.ASSISTANT, reply.text, reply.calls, native=reply.native)
    called = model(api=api)
    json.loads(WIRES[api].request(called, [Message(Role.USER, "x"), said]).body)


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_values_of_any_type_anywhere(api: str, data: st.DataObject) -> None:
    check(api, read(api, changed(WHOLE[api], data)))
    events = changed(STREAMS[api], data)
    reply = read(api, sse(*events), stream=True)
    check(api, reply)
    piece = data.draw(st.integers(1, 90))
    assert read(api, sse(*events), stream=True, piece=piece) == reply


@pytest.mark.parametrize("api", APIS)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_bytes_changed_cut_and_joined_anywhere(api: str, data: st.DataObject) -> None:
    body = bytearray(json.dumps(WHOLE[api]).encode() if data.draw(st.booleans()) else sse(*STREAMS[api]))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    cut = bytes(body[: data.draw(st.integers(0, len(body)))])
    for stream in (False, True):
        reply = read(api, cut, stream=stream)
        check(api, reply)
        assert read(api, cut, stream=stream, piece=data.draw(st.integers(1, 90))) == reply


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("body", [b"{" * 100_000, b'{"choices":' + b"[" * 100_000, b'{"content":' + b'{"a":' * 100_000])
def test_depth_costs_nothing_and_breaks_nothing(api: str, body: bytes) -> None:
    for framed in (body, b"data: " + body + b"\n\n"):
        assert not read(api, framed, stream=True).whole


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("many", [b"{},", b"[],", b"1,"])
def test_values_without_number_are_not_read(api: str, many: bytes) -> None:
    body = b'{"choices":[' + many * MAX_VALUES + b"1]}"
    for framed in (body, b"data: " + body + b"\n\n"):
        assert Flag.UNREADABLE in read(api, framed, stream=True).flags
