"""Values that have no canonical form are said to have none."""

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
