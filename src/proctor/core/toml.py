"""TOML as its standard reads it: the library's own reader takes integers that no 64 bits hold, and that no text can be.

In hexadecimal a short text is a number of more digits than Python writes out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any


def loads(text: str) -> dict[str, Any]:
    """The values of a text. Raises ValueError, RecursionError."""
    values = tomllib.loads(text)
    if any(not -(2**63) <= number < 2**63 for number in _integers(values)):
        raise ValueError("an integer has more than 64 bits")
    return values


def _integers(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _integers(each)
    elif isinstance(value, list):
        for each in value:
            yield from _integers(each)
    elif type(value) is int:
        yield value
