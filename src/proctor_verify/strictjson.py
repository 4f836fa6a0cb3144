"""Strict JSON as section 1 of the evidence format defines it, and the check that bytes are canonical.

`loads_canonical` reads every line of a journal, so it has a quick way: read with the C scanner, write back with the C
encoder, compare. Bytes that come back the same have no key twice, no white space and no odd escape. The quick way
gives up on numbers and characters that Python may write in another way than RFC 8785; the slow way then decides.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

from proctor_verify import canonical
from proctor_verify.errors import Unreadable

MAX_BYTES = 65_535
MAX_DEPTH = 64
MAX_DIGITS = 40
MAX_NUMBER_CHARS = 1_100

# A number that Python may write in another way than RFC 8785; what looks like one within a string does no harm.
_ODD_NUMBER = re.compile(r"[:,\[]-?[0-9.]+(?:e|(?<=\.0)[,\]}])")
_BRACKETS = re.compile(r"[\[\]{}]")


def loads(data: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """One JSON value; integers exact, other numbers the nearest float.

    Raises:
        Unreadable: not strict JSON, or beyond a bound.
    """
    return _parse(_STRICT, _checked_text(data, max_bytes, max_depth))


def loads_canonical(data: bytes, *, max_bytes: int = MAX_BYTES) -> Any:
    """One JSON value whose bytes are its canonical form; an integer beyond 2^53 - 1 is read as the float it stands for.

    Raises:
        Unreadable: not strict JSON, beyond a bound, or another form.
    """
    text = _checked_text(data, max_bytes, MAX_DEPTH)
    value = _quick(text)
    if value is not _UNSURE:
        return value
    value = _parse(_STRICT_DOUBLES, text)
    if canonical.encode(value) != data:
        raise Unreadable("JSON is not in canonical form")
    return value


def loads_plain(data: bytes) -> Any:
    """The same where the quick way can tell, and None where it cannot: then the bytes may be canonical or not.

    Whatever this reads, `json.loads` reads as the same value.
    """
    try:
        value = _quick(_checked_text(data, MAX_BYTES, MAX_DEPTH))
    except Unreadable:
        return None
    return None if value is _UNSURE else value


def _quick(text: str) -> Any:
    try:
        value, _ = _QUICK.raw_decode(text)
        same = _rewrite(value) == text
    except (ValueError, RecursionError):
        return _UNSURE
    # Keys are written back in code-point order, which is the order of RFC 8785 unless one is beyond U+FFFF.
    return value if same and (text.isascii() or len(text.encode("utf-16-le")) == 2 * len(text)) else _UNSURE


def encode(value: Any) -> bytes:
    """The canonical bytes of a value that `loads_canonical` read, or that is made of such.

    Raises:
        Unreadable: it is nested too deeply.
    """
    try:
        text = _rewrite(value)
        plain = text.isascii() or len(text.encode("utf-16-le")) == 2 * len(text)
    except (ValueError, RecursionError):
        return canonical.encode(value)
    # in brackets, for a value that is a number
    return text.encode() if plain and not _ODD_NUMBER.search(f"[{text}]") else canonical.encode(value)


def _checked_text(data: bytes, max_bytes: int, max_depth: int) -> str:
    if len(data) > max_bytes:
        raise Unreadable(f"{len(data)} bytes, where {max_bytes} are allowed")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(f"byte {error.start} is not UTF-8") from None
    if text.count("{") + text.count("[") > max_depth and _depth(text) > max_depth:
        raise Unreadable(f"nested deeper than {max_depth}")
    return text


def _depth(text: str) -> int:
    """How deep the brackets outside of strings go."""
    unescaped = text.replace("\\\\", "").replace('\\"', "")
    outside = "".join(unescaped.split('"')[::2])
    depth = deepest = 0
    for bracket in _BRACKETS.findall(outside):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _parse(decoder: json.JSONDecoder, text: str) -> Any:
    try:
        value = decoder.decode(text)
        if "\\ud" in text.replace("\\uD", "\\ud"):
            # The parser lets halves of pairs through, and they have no UTF-8.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        raise Unreadable(f"not JSON: {error}") from None
    except UnicodeEncodeError:
        raise Unreadable("a string holds a lone surrogate") from None
    except RecursionError:
        raise Unreadable("nested too deeply to read") from None
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise Unreadable(f"key {ascii(key)[:40]} stands twice")
        members[key] = value
    return members


def _integer(literal: str) -> int:
    if len(literal) - literal.startswith("-") > MAX_DIGITS:
        raise Unreadable(f"an integer of more than {MAX_DIGITS} digits")
    return int(literal)


def _integer_or_double(literal: str) -> int | float:
    exact = _integer(literal)
    return exact if abs(exact) <= canonical.SAFE_INTEGER else float(exact)


def _quick_integer(literal: str) -> int:
    if len(literal) > 15:
        raise ValueError("perhaps beyond 2^53 - 1")
    return int(literal)


def _quick_double(literal: str) -> float:
    # What repr writes with a point and without an exponent, ECMAScript writes too, unless it is a whole number.
    if "e" in literal or literal.endswith(".0"):
        raise ValueError("written in another way")
    return float(literal)


def _double(literal: str) -> float:
    if len(literal) > MAX_NUMBER_CHARS:
        raise Unreadable(f"a number of more than {MAX_NUMBER_CHARS} characters")
    value = float(literal)
    mantissa = literal.lower().partition("e")[0]
    if math.isinf(value) or (value == 0 and mantissa.strip("-0.")):
        raise Unreadable(f"{literal[:40]} is out of a double's range")
    return value


def _not_json(literal: str) -> NoReturn:
    raise Unreadable(f"{literal} is not JSON")


_STRICT = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_integer, parse_float=_double, parse_constant=_not_json
)
_STRICT_DOUBLES = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_integer_or_double, parse_float=_double, parse_constant=_not_json
)
_QUICK = json.JSONDecoder(parse_int=_quick_integer, parse_float=_quick_double)
_REWRITE = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)
_UNSURE = object()


def _write_with() -> Callable[[Any], str]:
    """The C encoder made once, where there is one: `encode` makes it anew each time, a tenth of reading a line."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _REWRITE.encode
    text: Any = json.encoder.encode_basestring
    pieces = make(None, _REWRITE.default, text, None, ":", ",", True, False, False)
    return lambda value: "".join(pieces(value, 0))


_rewrite = _write_with()
