"""Canonical JSON (RFC 8785): one value, one sequence of bytes, so that a digest means something.

orjson writes the same bytes as RFC 8785, many times faster than the reference package, as long as there is no float
of unusual size, no type that it would quietly turn into a string, and no character outside of the basic plane (where
code-point order, which it sorts keys by, is not UTF-16 order). What it wrote is handed out only where all three are
known; everything else goes to the reference package.
"""

from __future__ import annotations

import math
import re
from types import NoneType
from typing import Any

import orjson
import rfc8785

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

MAX_SAFE_INTEGER = 2**53 - 1

_FAST = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_SUBCLASS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
)
_SCALARS: frozenset[type] = frozenset({str, int, bool, NoneType})
_SCALARS_AND_FLOAT: frozenset[type] = _SCALARS | {float}
_STR: frozenset[type] = frozenset({str})
_ASTRAL = re.compile(rb"[\xf0-\xf4]")
_REQUIRED = "None, bool, int within 2^53 - 1, finite float, str, list or tuple, dict with str keys; no subclasses"


def encode(value: Any) -> bytes:
    """The RFC 8785 bytes of a value made of dict, list, tuple, str, int, float, bool and None.

    Raises:
        Refusal: `json_invalid` for what has no such form: NaN and infinities, integers beyond 2^53 - 1, lone
            surrogates, keys that are no str, other types (subclasses too), nesting without end.
    """
    try:
        fast = orjson.dumps(value, option=_FAST)
    except TypeError:
        return _reference(value)
    # The walk comes after orjson, which has refused cycles by then.
    if _stranger(value, _SCALARS) is None and (fast.isascii() or _ASTRAL.search(fast) is None):
        return fast
    del fast  # of one text of 64 MiB, another copy less
    return _reference(value)


def _reference(value: Any) -> bytes:
    try:
        encoded = rfc8785.dumps(value)
    except rfc8785.IntegerDomainError as error:
        raise _refusal("an integer is beyond 2^53 - 1, where other readers round") from error
    except rfc8785.FloatDomainError as error:
        raise _refusal("NaN and infinities have no JSON form") from error
    except UnicodeEncodeError as error:
        raise _refusal("an object key holds a lone surrogate") from error
    # Not only its own errors: of an integer that is too long to be shown it cannot even say that it is too large.
    except ValueError as error:
        raise _refusal(f"a value has no canonical JSON form: {error}") from error
    except RecursionError as error:
        raise _refusal("a value is nested too deeply, or within itself") from error
    stranger = _stranger(value, _SCALARS_AND_FLOAT)
    if stranger is not None:
        raise _refusal("a value has no canonical JSON form", observed=stranger.__name__)
    return encoded


def _stranger(value: Any, scalars: frozenset[type]) -> type | None:
    """The first type found that is no container, none of `scalars` (exactly), and no float of one form."""
    pending = [(value,)]
    while pending:
        children = pending.pop()
        if scalars.issuperset(map(type, children)):
            continue
        for child in children:
            kind = type(child)
            if kind in scalars or (kind is float and _has_one_form(child)):
                continue
            if kind is dict:
                if not _STR.issuperset(map(type, child)):
                    return next(type(key) for key in child if type(key) is not str)
                pending.append(child.values())
            elif kind is list or kind is tuple:
                pending.append(child)
            else:
                return kind
    return None


def _has_one_form(number: float) -> bool:
    """Whether every writer of shortest digits writes it alike: a fraction that needs no exponent."""
    return 1e-4 <= abs(number) < math.inf and not number.is_integer()


def _refusal(message: str, observed: Any = None) -> Refusal:
    return Refusal(Reason.JSON_INVALID, message, observed=observed, required=_REQUIRED)
