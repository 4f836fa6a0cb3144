"""Server-sent events: every framing that is allowed, in pieces of any size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.gateway.wire.sse import Event, EventParser

FRAMED = [
    (b"data: a\n\n", [Event("", b"a")]),
    (b"data:a\n\n", [Event("", b"a")]),
    (b"data:  a\n\n", [Event("", b" a")]),
    (b"data: a\r\n\r\n", [Event("", b"a")]),
    (b"data: a\r\rdata: b\r\r", [Event("", b"a"), Event("", b"b")]),
    (b"\xef\xbb\xbfdata: a\n\n", [Event("", b"a")]),
    (b"event: x\ndata: a\n\ndata: b\n\n", [Event("x", b"a"), Event("", b"b")]),
    (b"data: a\ndata: b\ndata\n\n", [Event("", b"a\nb\n")]),
    (b": hello\nid: 7\nretry: 3\nwhat: else\ndata: a\n\n", [Event("", b"a")]),
    (b"event: x\n\ndata:\n\ndata: b\n\n", [Event("", b"b")]),
    (b"data: a\n\ndata: cut", [Event("", b"a"), Event("", b"cut")]),
    ("data: ü👋 \n\n".encode(), [Event("", "ü👋 ".encode())]),
    (b"\n\n\r\n", []),
]


def parse(pieces: list[bytes]) -> list[Event]:
    parser = EventParser()
    events = [event for piece in pieces for event in parser.feed(piece)]
    last = parser.close()
    return events + ([] if last is None else [last])


@pytest.mark.parametrize(("data", "events"), FRAMED)
def test_each_framing_is_read_whole_and_byte_by_byte(data: bytes, events: list[Event]) -> None:
    assert parse([data]) == events
    assert parse([data[i : i + 1] for i in range(len(data))]) == events


def test_comments_are_passed_over() -> None:
    assert parse([b": one\n:two\n\n", b":\ndata: a\n\n"]) == [Event("", b"a")]


@given(
    st.lists(
        st.sampled_from([b"data: a", b"data", b":c", b"event: e", b"\r", b"\n", b"\r\n", b"\xf0\x9f", b"\x91\x8b"])
    ),
    st.data(),
)
def test_any_split_gives_the_same_events(parts: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert parse(pieces) == parse([stream])
