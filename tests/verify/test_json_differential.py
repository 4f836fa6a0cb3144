"""Two readers and two writers of different make agree on generated and on damaged input."""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from proctor.core import canonical as our_canonical
from proctor.core import strictjson as ours
from proctor.core.refusal import Refusal
from proctor_verify import canonical as their_canonical
from proctor_verify import strictjson as theirs
from proctor_verify.errors import Unreadable

REFUSED = object()
CHARACTERS = st.characters() | st.sampled_from('\x00\x1f\x7f"\\/\u2028\ud7ff\ud800\udfff\ue000\uffff\U00010000')
TEXT = st.text(CHARACTERS, max_size=8)
NUMBERS = (
    st.integers()
    | st.integers(2**53 - 3, 2**53 + 3)
    | st.integers(10**39, 10**41)
    | st.floats()
    | st.floats(-1000, 1000).map(lambda x: round(x, 4))
    | st.sampled_from([1e-7, 1e-6, 1e-4, 1e15, 1e16, 1e21, 2.0**53, -0.0, math.nan, math.inf])
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


class Name(enum.StrEnum):
    A = "a"


STRANGE = st.recursive(
    st.sampled_from([b"a", Name.A, {1: 2}, {Name.A: 1}, {1}, 1j, (1, 2), object()]) | NUMBERS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3) | st.tuples(inner),
    max_leaves=6,
)


def result(call: Callable[[Any], Any], argument: Any) -> Any:
    """The value as text, so that 1, 1.0 and True differ; or that it was refused."""
    try:
        return repr(call(argument))
    except (Refusal, Unreadable):
        return REFUSED


def both_agree(data: bytes) -> None:
    assert result(ours.loads, data) == result(theirs.loads, data)
    assert result(ours.loads_canonical, data) == result(theirs.loads_canonical, data)


@given(VALUES | STRANGE)
def test_both_write_the_same_bytes_or_refuse(value: Any) -> None:
    assert result(our_canonical.encode, value) == result(their_canonical.encode, value)


@given(VALUES, st.booleans(), st.booleans())
def test_both_read_what_python_writes_in_the_same_way(value: Any, ascii_only: bool, compact: bool) -> None:
    separators = (",", ":") if compact else (", ", ": ")
    text = json.dumps(value, ensure_ascii=ascii_only, separators=separators, sort_keys=compact)
    both_agree(text.encode("utf-8", "surrogatepass"))


@given(VALUES, st.data())
def test_both_read_damaged_bytes_in_the_same_way(value: Any, data: st.DataObject) -> None:
    good = json.dumps(value, ensure_ascii=data.draw(st.booleans()), separators=(",", ":"), sort_keys=True)
    damaged = bytearray(good.encode("utf-8", "surrogatepass"))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged)))
        length = data.draw(st.integers(0, 4))
        piece = data.draw(
            st.binary(max_size=2)
            | st.sampled_from(
                [b'"', b"\\", b"[", b"]", b"{", b"}", b",", b":", b"0", b"e9", b".", b"-", b"\\ud83d", b"NaN"]
            )
            | st.just(bytes(damaged[at : at + length]) * 2)
        )
        damaged[at : at + length] = piece
    both_agree(bytes(damaged))


@given(st.text(alphabet='{}[]",:\\ud8DcfeE019+-. \n', max_size=24))
@example("[Infinity]")
@example("NaN")
@example("-0")
@example('{"a":1,"a":1}')
@example('"\\ud83d\\ude00"')
@example('"\\uD83D\\uDE00"')
@example("1e+21")
@example("[1.0]")
@example("0.00001")
def test_both_read_nearly_json_in_the_same_way(text: str) -> None:
    both_agree(text.encode())


@given(st.lists(st.sampled_from([b"[", b"]", b'{"a":', b"}", b'"["', b'"\\"["', b'"\\\\"', b",", b"1"]), max_size=160))
def test_both_bound_depth_in_the_same_way(pieces: list[bytes]) -> None:
    both_agree(b"".join(pieces))


@given(st.integers(55, 75), st.integers(0, 70), st.booleans())
def test_both_find_the_same_depth_too_deep(depth: int, wide: int, objects: bool) -> None:
    opening, closing = (b'{"[":', b"}") if objects else (b"[", b"]")
    nested = opening * depth + b"1" + closing * depth
    both_agree(nested)
    both_agree(b"[" + b'"[\\"[",' * wide + b"[]," * wide + nested + b"]")


def test_both_read_the_case_files_in_the_same_way(cases: Path) -> None:
    files = [f for f in (cases / "json").rglob("*") if f.is_file()]
    assert len(files) > 360
    for file in files:
        both_agree(file.read_bytes())
        both_agree(file.read_bytes().rstrip(b"\n"))
