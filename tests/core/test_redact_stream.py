"""Secrets in bytes that pass by in pieces: never seen, whatever the pieces are, and nothing else is changed."""

from __future__ import annotations

import base64
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.redact import Redactor
from proctor.core.redact_stream import MARK, StreamRedactor

SECRET = "sk-plant/ed+KEY=0123456789"
OTHER = "sk-plant/other.0123456789abc"
ESCAPED = "".join(f"\\u{ord(char):04x}" for char in SECRET)
HALF = SECRET[:9] + "".join(f"\\\\u{ord(char):04X}" for char in SECRET[9:])
SPELLINGS = {
    "plain": SECRET,
    "other": OTHER,
    "slashes": SECRET.replace("/", "\\/"),
    "escaped": ESCAPED,
    "half escaped": HALF,
    "base64": base64.b64encode(SECRET.encode()).decode().rstrip("="),
    "url": SECRET.replace("/", "%2F").replace("+", "%2B").replace("=", "%3D"),
}


def passed(pieces: list[bytes], redactor: StreamRedactor | None = None) -> bytes:
    own = Redactor([SECRET, OTHER]).stream() if redactor is None else redactor
    return b"".join([*map(own.feed, pieces), own.close()])


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, *(cut % (len(data) + 1) for cut in cuts), len(data)})
    return [data[start:end] for start, end in pairwise(places)]


TEXTS = st.lists(
    st.one_of(
        st.sampled_from([*SPELLINGS.values(), SECRET[:7], SECRET[3:], ESCAPED[:20], ESCAPED[5:], "\\", "\\u", "\\u00"]),
        st.text(alphabet='sk-plant/\\u0061\n é"', max_size=9),
    ),
    max_size=8,
).map(lambda parts: "".join(parts).encode())


@given(TEXTS, st.lists(st.integers(0, 2**16), max_size=12))
def test_every_split_gives_the_same(text: bytes, cuts: list[int]) -> None:
    assert passed(pieces(text, cuts)) == passed([text])


@given(TEXTS, st.lists(st.integers(0, 2**16), max_size=12))
def test_no_spelling_comes_through(text: bytes, cuts: list[int]) -> None:
    out = passed(pieces(text, cuts))
    assert not [name for name, spelled in SPELLINGS.items() if spelled.encode() in out]


@pytest.mark.parametrize("name", SPELLINGS)
def test_each_spelling_is_found_at_every_split(name: str) -> None:
    data = f'data: {{"text": "{SPELLINGS[name]}"}}\n\n'.encode()
    for cut in range(len(data) + 1):
        redactor = Redactor([SECRET, OTHER]).stream()
        out = passed([data[:cut], data[cut:]], redactor)
        assert redactor.found and MARK in out and out.startswith(b'data: {"text": "') and out.endswith(b'"}\n\n')


@given(st.binary(max_size=300), st.lists(st.integers(0, 2**16), max_size=12))
def test_what_holds_no_secret_is_not_changed(data: bytes, cuts: list[int]) -> None:
    assert passed(pieces(data, cuts)) == data


def test_events_are_not_held_back() -> None:
    redactor = Redactor([SECRET]).stream()
    for text in ("s", "sk-plant", "\\u00", "plain"):
        event = f"data: {json.dumps({'text': text})}\n\n".encode()
        assert redactor.feed(event) == event
        assert not redactor.pending


def test_only_what_may_start_a_secret_is_held_back() -> None:
    redactor = Redactor([SECRET]).stream()
    assert redactor.feed(b"one sk-pl") == b"one "
    assert redactor.pending
    assert redactor.feed(b"ay") == b"sk-play"
    assert (redactor.close(), redactor.found) == (b"", False)


def test_without_secrets_nothing_is_held_back() -> None:
    redactor = Redactor([]).stream()
    assert redactor.feed(b"sk-pl\\u00") == b"sk-pl\\u00"
