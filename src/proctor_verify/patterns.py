"""Patterns of text that is canonical JSON, in UTF-8, for values of some sort.

Each matches only what is canonical and of its sort; it need not match all of that. Where there is no pattern of a part,
which is None here, there is none of the whole, or one of such wholes as do without the part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

# Integers of more digits may be written in another way, or stand for a float.
_MAX_DIGITS = 15
_PLAIN = r'[^"\\\x00-\x1f]*+'

NULL = "null"
FLAG = "(?:true|false)"
STRING = rf'"{_PLAIN}(?:\\["\\bfnrt]{_PLAIN})*+"'
FROM_ONE = rf"(?:[1-9][0-9]{{0,{_MAX_DIGITS - 1}}}+)"
COUNT = rf"(?:0|{FROM_ONE})"
# Decimals that no fewer digits write: they have fewer than 16, and the last is no zero.
NUMBER = rf"(?:0|-?{FROM_ONE}|-?(?:0|[1-9][0-9]{{0,6}}+)\.[0-9]{{0,5}}[1-9])"
_NO_LEAP_DAY = r"(?!\d{4}-02-29)"


def matching(pattern: str) -> str:
    """Strings that a pattern matches, which is one of characters that JSON writes as they are."""
    return f'"(?:{pattern})"'


def moment(pattern: str) -> str:
    """Times that a pattern matches, but for those of which it takes the year to say whether they are any."""
    return f'"{_NO_LEAP_DAY}(?:{pattern})"'


def words(allowed: Iterable[str]) -> str:
    """One of these strings."""
    return f"(?:{'|'.join(map(_literal, sorted(allowed)))})"


def grouped(text: str) -> str:
    """The same, as a group: of a string what stands between its quotes."""
    return f'"({text[1:-1]})"' if text.startswith('"') else f"({text})"


def integer(least: int, most: int) -> str | None:
    """Integers of 0 or more within bounds, of such lengths as have all their numbers within them."""
    lengths = [n for n in range(1, _MAX_DIGITS + 1) if least <= 10 ** (n - 1) and 10**n - 1 <= most]
    any_of = ["0"] if least <= 0 <= most else []
    if lengths:
        any_of.append(f"[1-9][0-9]{{{lengths[0] - 1},{lengths[-1] - 1}}}+")
    return either(any_of)


def either(patterns: Iterable[str | None]) -> str | None:
    """One or the other."""
    there = [pattern for pattern in patterns if pattern is not None]
    return f"(?:{'|'.join(there)})" if there else None


def list_of(text: str | None) -> str:
    """A list of these, which may be empty."""
    return r"\[\]" if text is None else rf"\[(?:{text}(?:,{text})*+)?\]"


def record(members: Mapping[str, str | None]) -> str | None:
    """An object with exactly these members."""
    if None in members.values():
        return None
    return rf"\{{{','.join(f'{_literal(name)}:{members[name]}' for name in sorted(members))}\}}"


def some_of(members: Mapping[str, str]) -> str:
    """An object with some of these members, or none."""
    # a comma stands before another member, and nowhere else
    each = (rf'(?:{_literal(name)}:{members[name]}(?:,(?=")|(?=\}})))?' for name in sorted(members))
    return rf"\{{{''.join(each)}\}}"


def at_most_one(text: str) -> str:
    """An object with one member of any name, or none."""
    return rf"\{{(?:{STRING}:{text})?\}}"


def _literal(text: str) -> str:
    return re.escape(json.dumps(text))
