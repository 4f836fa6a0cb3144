"""Long objects are read by a faster reader where that is sure to see the same: held to one that is exact."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core import strictjson
from proctor.core.refusal import Refusal

PAD = '"pad": "' + "x" * 600 + '"'
KEYS = st.sampled_from(["a", "b", "a\\\\", 'a\\"', ":", "", "a:", "\\u0061"])
SPACE = st.sampled_from(["", "", "", " ", "\n", "\t "])
SCALARS = st.sampled_from(
    ["1", "-0", "0.5", "1e400", "1e-400", "18446744073709551616", "1" * 41, "null", "true", '":"', '"\\":"', '"a\\\\"']
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda each: f"[{','.join(each)}]"),
        st.lists(st.tuples(KEYS, SPACE, SPACE, inner), max_size=3).map(
            lambda pairs: "{" + ",".join(f'"{key}"{one}:{two}{value}' for key, one, two, value in pairs) + "}"
        ),
    ),
    max_leaves=8,
)


def exact(text: str) -> Any:
    """By Python's own reader; ValueError for a key that stands twice."""

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError
        return dict(pairs)

    def fraction(number: str) -> float:
        value = float(number)
        if value in (float("inf"), float("-inf")) or (value == 0 and set(number.split("e")[0]) & set("123456789")):
            raise ValueError
        return value

    def whole(number: str) -> int:
        if len(number.lstrip("-")) > strictjson.MAX_INTEGER_DIGITS:
            raise ValueError
        return int(number)

    return json.loads(text, object_pairs_hook=made, parse_float=fraction, parse_int=whole)


@given(st.lists(st.tuples(KEYS, SPACE, SPACE, VALUES), max_size=4))
def test_it_reads_what_the_exact_reader_reads(pairs: list[tuple[str, str, str, str]]) -> None:
    text = "{" + ",".join([*(f'"{key}"{one}:{two}{value}' for key, one, two, value in pairs), PAD]) + "}"
    try:
        wanted = exact(text)
    except ValueError:
        with pytest.raises(Refusal):
            strictjson.loads(text.encode())
        return
    read = strictjson.loads(text.encode())
    assert repr(read) == repr(wanted)


def test_depth_is_bounded_in_long_objects_too() -> None:
    deep = f'{{{PAD}, "a": {"[" * 64}{"]" * 64}}}'.encode()
    with pytest.raises(Refusal):
        strictjson.loads(deep)
    assert strictjson.loads(deep, max_depth=65)["a"]
