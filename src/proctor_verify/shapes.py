"""What a value of JSON must be, in words, as a test, and as text; the scalars that the evidence format is made of."""

from __future__ import annotations

import re
from calendar import isleap
from collections.abc import Callable
from typing import Any, NamedTuple

from proctor_verify import patterns

Holds = Callable[[Any], bool]


class Shape(NamedTuple):
    """What a value must be: in words, as a test, and as text.

    `text` is a pattern of canonical JSON, in UTF-8, of such values. It need not match every one of them, and matches
    nothing else; None where there is no such pattern.
    """

    words: str
    holds: Holds
    text: str | None = None


def matches(pattern: str, words: str) -> Shape:
    """Text that a pattern, which is one of characters that JSON writes as they are, matches as a whole."""
    fullmatch = re.compile(pattern, re.ASCII).fullmatch
    return Shape(words, lambda v: type(v) is str and fullmatch(v) is not None, patterns.matching(pattern))


def one_of(*words: str) -> Shape:
    """One of these words."""
    return among(" | ".join(words), frozenset(words))


def among(words: str, allowed: frozenset[str]) -> Shape:
    """One of many words, which `words` describes."""
    return Shape(words, lambda v: type(v) is str and v in allowed, patterns.words(allowed))


def or_null(shape: Shape) -> Shape:
    """That, or null."""
    holds = shape.holds
    text = patterns.either([patterns.NULL, shape.text])
    return Shape(f"{shape.words}, or null", lambda v: v is None or holds(v), text)


def list_of(shape: Shape) -> Shape:
    """A list of these."""
    holds = shape.holds
    words = f"a list, each {shape.words}"
    return Shape(words, lambda v: type(v) is list and all(map(holds, v)), patterns.list_of(shape.text))


def record(**fields: Shape) -> Shape:
    """An object with exactly these fields."""
    keys = fields.keys()
    tests = [(name, shape.holds) for name, shape in fields.items()]
    words = f"an object with exactly {', '.join(fields)}, each of its type"
    return Shape(
        words,
        lambda v: type(v) is dict and v.keys() == keys and all(holds(v[name]) for name, holds in tests),
        patterns.record({name: shape.text for name, shape in fields.items()}),
    )


def with_optional(shape: Shape, **optional: Shape) -> Shape:
    """An object that is of a shape once these fields, each of its own where it is there, are left out."""
    of_rest = shape.holds

    def holds(v: Any) -> bool:
        if type(v) is not dict or not all(name not in v or each.holds(v[name]) for name, each in optional.items()):
            return False
        return of_rest({name: value for name, value in v.items() if name not in optional})

    return Shape(f"{shape.words}; and, where they are there, {', '.join(optional)}", holds)


def either(first: Shape, second: Shape) -> Shape:
    """One or the other."""
    return Shape(
        f"{first.words}; or {second.words}",
        lambda v: first.holds(v) or second.holds(v),
        patterns.either([first.text, second.text]),
    )


def where(shape: Shape, words: str, holds: Holds, text: str | None = None) -> Shape:
    """That, and a rule that joins its parts; `text` is of values for which the rule holds."""
    of_shape = shape.holds
    return Shape(f"{shape.words}, {words}", lambda v: of_shape(v) and holds(v), text)


def integer(least: int, most: int) -> Shape:
    """An integer within bounds; neither a boolean nor a float is one."""
    words = f"an integer from {least} to {most}"
    return Shape(words, lambda v: type(v) is int and least <= v <= most, patterns.integer(least, most))


TEXT = Shape("text", lambda v: type(v) is str, patterns.STRING)
COUNT = Shape("an integer of 0 or more", lambda v: type(v) is int and v >= 0, patterns.COUNT)
FROM_ONE = Shape("an integer of 1 or more", lambda v: type(v) is int and v >= 1, patterns.FROM_ONE)
NUMBER = Shape("a number", lambda v: type(v) is int or type(v) is float, patterns.NUMBER)
FLAG = Shape("true or false", lambda v: type(v) is bool, patterns.FLAG)
OBJECT = Shape("an object", lambda v: type(v) is dict)
# No run spends more than 10^15 dollars; the bound keeps sums short.
MONEY = matches(r"(?:0|[1-9][0-9]{0,15})\.[0-9]{12}", "an amount of money, 0 or more, with exactly 12 decimals")
SHA256 = matches(r"[0-9a-f]{64}", "64 lower-case hex digits")
_DAYS = r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|[12]\d))"
_MOMENT = rf"(?!0000)\d{{4}}-{_DAYS}T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{{6}}Z"
_moment = re.compile(_MOMENT, re.ASCII).fullmatch
TIME = Shape(
    "a UTC time with 6 decimals and Z",
    lambda v: type(v) is str and _moment(v) is not None and (v[5:10] != "02-29" or isleap(int(v[:4]))),
    patterns.moment(_MOMENT),
)
