"""RFC 8785 canonical JSON, written from the RFC: section 3.2.2 for literals, strings and numbers, 3.2.3 for order."""

from __future__ import annotations

import json
import math
from typing import Any

from proctor_verify.errors import Unreadable

SAFE_INTEGER = 9_007_199_254_740_991

_STRING = json.JSONEncoder(ensure_ascii=False).encode


def encode(value: Any) -> bytes:
    """The canonical bytes of a JSON value.

    Raises:
        Unreadable: there are none, for this value.
    """
    try:
        return _text(value).encode("utf-8")
    except UnicodeEncodeError:
        raise Unreadable("a string holds a lone surrogate") from None
    except RecursionError:
        raise Unreadable("a value is nested too deeply") from None


def number(value: float) -> str:
    """A float as ECMAScript writes it (ECMA-262, Number::toString), which is what RFC 8785 wants.

    Raises:
        Unreadable: NaN or an infinity.
    """
    if not math.isfinite(value):
        raise Unreadable("a number is not finite")
    if value < 0:
        return "-" + number(-value)
    if value == 0:
        return "0"
    # repr has the same shortest digits as ECMAScript; only where it puts the point and the exponent differs.
    mantissa, _, exponent = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = whole + fraction
    point -= len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0")
    return _place_point(digits, point)


def _place_point(digits: str, point: int) -> str:
    """The value 0.DIGITS times ten to the power of `point`."""
    if 0 < point <= 21:
        whole, fraction = digits[:point].ljust(point, "0"), digits[point:]
        return f"{whole}.{fraction}" if fraction else whole
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    scientific = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{scientific}e{point - 1:+d}"


def _text(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return _STRING(value)
    if kind is int:
        if abs(value) > SAFE_INTEGER:
            raise Unreadable("an integer is beyond 2^53 - 1")
        return str(value)
    if value is None or kind is bool:
        return {None: "null", True: "true", False: "false"}[value]
    if kind is float:
        return number(value)
    if kind is list or kind is tuple:
        return "[" + ",".join(map(_text, value)) + "]"
    if kind is dict:
        if any(type(key) is not str for key in value):
            raise Unreadable("an object has a key that is no string")
        in_order = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(f"{_text(key)}:{_text(value[key])}" for key in in_order) + "}"
    raise Unreadable(f"a {kind.__name__} has no JSON form")
