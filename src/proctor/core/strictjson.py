"""The one strict reader: bytes in, a value or a refusal out, with length, depth and numbers bounded.

Where two readers could see two things in the same bytes (a key that stands twice, a number that rounds, half of a
surrogate pair), this one refuses.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any, NoReturn

import orjson

from proctor.core.canonical import MAX_SAFE_INTEGER, encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

MAX_BYTES = 65_535
MAX_DEPTH = 64
MAX_INTEGER_DIGITS = 40
# A double written out in full needs at most 1,077 characters.
MAX_FLOAT_CHARS = 1_100

# Possessive, so that hostile quotes cost linear time.
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{\]}]', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SHOWN = 40
# Below, the exact reader is as fast.
_FAST_FROM = 512
# Where these stand, it is not plain which quotes end a key: space before a colon, a quote after an escaped backslash.
_ODD = (b" :", b"\t:", b"\n:", b"\r:", b'\\\\":')


class _Invalid(ValueError):
    """What a parser hook found, on its way out of the parser."""

    def __init__(self, message: str, observed: str) -> None:
        super().__init__(message)
        self.message = message
        self.observed = observed[:_SHOWN].encode("ascii", "backslashreplace").decode()


def loads(data: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH, path: str | None = None) -> Any:
    """Read one JSON value.

    Integers are exact, at most 40 digits; other numbers are the nearest float.

    Args:
        data: UTF-8 without a byte-order mark.
        max_bytes: refuse anything longer, unread.
        max_depth: refuse anything that nests deeper, unread.
        path: where the bytes come from, for the refusal.

    Raises:
        Refusal: `json_invalid`; `observed` is `{"offset": byte}` where the place is known, and what stood there.
    """
    if len(data) <= max_bytes:
        value = _compact(data, max_depth)
        if value is None and len(data) >= _FAST_FROM:
            value = _fast(data, max_depth)
        if value is not None:
            return value
    return _read(_EXACT, data, max_bytes, max_depth, path)


def _compact(data: bytes, max_depth: int) -> dict[str, Any] | None:
    """An object whose text is what a writer without spaces makes of it: no key stands twice, and no number rounds."""
    if b'": ' in data or data.count(b"[") + data.count(b"{") > max_depth:
        return None
    try:
        value = orjson.loads(data)
        return value if type(value) is dict and orjson.dumps(value) == data else None
    except (orjson.JSONDecodeError, TypeError):
        return None


def _fast(data: bytes, max_depth: int) -> dict[str, Any] | None:
    """An object, by a reader ten times as fast, where it is known to read the same; None where that is not known.

    That reader takes the last of two keys, and rounds numbers. Of two keys it keeps one, so that there are fewer than
    closing quotes before colons: these are all quotes before colons but those that are escaped, and those that open a
    string which begins with a colon, of which any makes the numbers differ. Fractions and numbers that may have been
    rounded are left to the exact reader.
    """
    for odd in _ODD:
        if odd in data:
            return None
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    keys = _keys(value, max_depth) if type(value) is dict else None
    return value if keys == data.count(b'":') - data.count(b'\\":') else None


def _keys(value: dict[str, Any], max_depth: int) -> int | None:
    """How many keys there are at all levels; None where there is a fraction, or there are too many levels."""
    count = 0
    level: list[Any] = [value]
    for _ in range(max_depth):
        below: list[Any] = []
        for each in level:
            if type(each) is dict:
                count += len(each)
                each = each.values()
            for child in each:
                kind = type(child)
                if kind is dict or kind is list:
                    below.append(child)
                elif kind is float:
                    return None
        if not below:
            return count
        level = below
    return None


def loads_canonical(data: bytes, *, max_bytes: int = MAX_BYTES, path: str | None = None) -> Any:
    """Read one JSON value whose bytes must be its canonical form, so `encode(result) == data`.

    An integer beyond 2^53 - 1 can only be the canonical form of a float, and comes back as that float.

    Raises:
        Refusal: `json_invalid`, for everything that `loads` refuses and for every other form.
    """
    value = _read(_DOUBLES, data, max_bytes, MAX_DEPTH, path)
    canonical = encode(value)
    if canonical != data:
        offset = next((i for i, (a, b) in enumerate(zip(data, canonical, strict=False)) if a != b), len(canonical))
        raise Refusal(
            Reason.JSON_INVALID,
            "JSON is not in its canonical form",
            path=path,
            observed={"offset": offset, "bytes": repr(data[offset : offset + _SHOWN])},
            required={"bytes": repr(canonical[offset : offset + _SHOWN])},
        )
    return value


def _read(decoder: json.JSONDecoder, data: bytes, max_bytes: int, max_depth: int, path: str | None) -> Any:
    if len(data) > max_bytes:
        _refuse("JSON is too long", path, {"bytes": len(data)}, {"bytes": max_bytes})
    if data.count(b"[") + data.count(b"{") > max_depth:
        _bound_depth(data, max_depth, path)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse("JSON is not UTF-8", path, {"offset": error.start}, cause=error)
    try:
        value = decoder.decode(text)
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode())
        _refuse(f"not JSON: {error.msg}", path, {"offset": offset}, cause=error)
    except _Invalid as error:
        _refuse(error.message, path, {"text": error.observed}, cause=error)
    except RecursionError as error:
        _refuse("JSON nests too deeply for this reader", path, {"max_depth": max_depth}, cause=error)
    if "\\u" in text and _SURROGATE_ESCAPE.search(text):
        _refuse_lone_surrogates(value, path)
    return value


def _bound_depth(data: bytes, max_depth: int, path: str | None) -> None:
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(data):
        first = data[token.start()]
        if first in b"[{":
            depth += 1
            if depth > max_depth:
                _refuse("JSON nests too deeply", path, {"offset": token.start()}, {"depth": max_depth})
        elif first in b"]}":
            depth -= 1


def _refuse_lone_surrogates(value: Any, path: str | None) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        lone = f"\\u{ord(error.object[error.start]):04x}"
        _refuse("a string holds half of a surrogate pair", path, {"text": lone}, cause=error)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _Invalid("an object has one key twice", Counter(key for key, _ in pairs).most_common(1)[0][0])
    return made


def _exact_integer(text: str) -> int:
    if len(text.lstrip("-")) > MAX_INTEGER_DIGITS:
        raise _Invalid(f"an integer has more than {MAX_INTEGER_DIGITS} digits", text)
    return int(text)


def _double_or_safe_integer(text: str) -> int | float:
    number = _exact_integer(text)
    return number if -MAX_SAFE_INTEGER <= number <= MAX_SAFE_INTEGER else float(text)


def _float(text: str) -> float:
    if len(text) > MAX_FLOAT_CHARS:
        raise _Invalid(f"a number has more than {MAX_FLOAT_CHARS} characters", text)
    number = float(text)
    if math.isinf(number):
        raise _Invalid("a number is beyond what a double can hold", text)
    if number == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        raise _Invalid("a number is closer to zero than a double can hold", text)
    return number


def _constant(name: str) -> NoReturn:
    raise _Invalid("NaN and infinities are not JSON", name)


_EXACT = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_exact_integer, parse_float=_float, parse_constant=_constant
)
_DOUBLES = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_double_or_safe_integer, parse_float=_float, parse_constant=_constant
)


def _refuse(
    message: str, path: str | None, observed: Any, required: Any = None, cause: BaseException | None = None
) -> NoReturn:
    raise Refusal(Reason.JSON_INVALID, message, path=path, observed=observed, required=required) from cause
