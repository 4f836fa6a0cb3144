"""Values that have a canonical form at the edges of its rules; those that have none are said to have none."""

from __future__ import annotations

from typing import Any

import pytest

from proctor_verify import canonical
from proctor_verify.errors import Unreadable


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


NONE: dict[str, Any] = {
    "nested too deeply": nested(100_000),
    "half a pair": ["\ud800"],
    "half a pair for a key": {"\udfff": 1},
    "no number": float("nan"),
    "an infinity": [float("-inf")],
    "no JSON": {"a": {1}},
    "a set of text": {"a"},
    "bytes": b"a",
    "a number for a key": {1: 2},
    "too large for a double to tell": 2**53,
    "too large, below nothing": -(2**53),
}


@pytest.mark.parametrize("what", NONE)
def test_what_has_no_canonical_form(what: str) -> None:
    with pytest.raises(Unreadable):
        canonical.encode(NONE[what])


def test_the_largest_that_have_one() -> None:
    assert canonical.encode([2**53 - 1, 1 - 2**53]) == b"[9007199254740991,-9007199254740991]"


WRITTEN: list[tuple[Any, str]] = [
    (None, "null"),
    (True, "true"),
    (False, "false"),
    (0, "0"),
    (-1, "-1"),
    ("", '""'),
    ("\u00e9\n\u2028\x7f/", '"\u00e9\\n\u2028\x7f/"'),
    ([], "[]"),
    ((1, [2]), "[1,[2]]"),
    ({}, "{}"),
    ({"b": 1, "a": {"d": None, "c": True}}, '{"a":{"c":true,"d":null},"b":1}'),
    # by units of UTF-16, not by characters
    ({"\uffff": 1, "\U00010000": 2}, '{"\U00010000":2,"\uffff":1}'),
    (0.0, "0"),
    (-0.0, "0"),
    (1.0, "1"),
    (-1.5, "-1.5"),
    (10.25, "10.25"),
    (100.0, "100"),
    (0.1, "0.1"),
    (0.001, "0.001"),
    (1e-6, "0.000001"),
    (1.5e-6, "0.0000015"),
    (1e-7, "1e-7"),
    (1.5e-7, "1.5e-7"),
    (1e16, "10000000000000000"),
    (1e20, "100000000000000000000"),
    (123456789012345680000.0, "123456789012345680000"),
    (1e21, "1e+21"),
    (-1.2e21, "-1.2e+21"),
    (1.2345e22, "1.2345e+22"),
    (5e-324, "5e-324"),
    (1.7976931348623157e308, "1.7976931348623157e+308"),
    (9007199254740993.0, "9007199254740992"),
    (4.5, "4.5"),
    (333333333.3333333, "333333333.3333333"),
]


@pytest.mark.parametrize(("value", "text"), WRITTEN, ids=[text for _, text in WRITTEN])
def test_how_a_value_is_written(value: Any, text: str) -> None:
    assert canonical.encode(value) == text.encode()
