"""Lines that are told at a glance: a pattern for each kind matches only entries of its shape in canonical form.

Most lines of a journal are of this sort, and to match one takes a fraction of reading and writing it back. A line that
no pattern matches may be sound all the same: then it takes who reads it to say so.
"""

from __future__ import annotations

import re
from functools import lru_cache
from re import Pattern

from proctor_verify import patterns
from proctor_verify.schema import ENVELOPE, KINDS
from proctor_verify.shapes import Shape
from proctor_verify.strictjson import MAX_BYTES, loads_plain

_START = b'{"body":'
_KIND = b',"kind":"'
# What no pattern of its own says is read by itself, where it is one flat object, as the settings of an agent are.
_FLAT = r"(\{[^{}]{0,400}+\})"
_REMEMBERED = 1024


def is_entry(raw: bytes) -> bool:
    """Whether a line, which is UTF-8, is plainly an entry of a known kind and its shape; it may be one and not tell."""
    end = raw.rfind(_KIND)
    if end < 0 or len(raw) > MAX_BYTES or not raw.startswith(_START):
        return False
    rest = _REST.fullmatch(raw, end)
    if rest is None:
        return False
    body, parts = _BODIES[rest[1]]
    found = body.fullmatch(raw, len(_START), end)
    return found is not None and (not parts or all(map(_holds, parts, found.groups())))


@lru_cache(_REMEMBERED)
def _holds(shape: Shape, text: bytes) -> bool:
    value = loads_plain(text)
    return value is not None and shape.holds(value)


def _rest() -> Pattern[bytes]:
    """All of an entry but its body, which comes first."""
    members = {name: shape.text for name, shape in ENVELOPE.items() if name != "body"}
    members["kind"] = f'"({"|".join(map(re.escape, KINDS))})"'
    return re.compile(str(patterns.record(members)).replace(r"\{", ",", 1).encode())


def _body(fields: dict[str, Shape]) -> tuple[Pattern[bytes], tuple[Shape, ...]]:
    """The pattern of a body, and of what shape each of its groups must be found to be."""
    members = {name: shape.text or _FLAT for name, shape in fields.items()}
    apart = tuple(fields[name] for name in sorted(fields) if fields[name].text is None)
    return re.compile(str(patterns.record(members)).encode()), apart


_REST = _rest()
_BODIES = {kind.encode(): _body(fields) for kind, fields in KINDS.items()}
