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

# seq, prev, mono and time of an entry, as far as text as it stands
Link = tuple[int, bytes, int, bytes]
# Entries of these kinds begin openings, end them, or are of all that is in flight.
OF_THE_RUN = "run."
_START = b'{"body":'
_KIND = b',"kind":"'
# What no pattern of its own says is read by itself, where it is one flat object, as the settings of an agent are.
_FLAT = r"(\{[^{}]{0,400}+\})"
_REMEMBERED = 1024


def link_of(raw: bytes) -> Link | None:
    """What joins a line, which is UTF-8, to others, where it is plainly an entry of a known kind and its shape.

    It may be one and not tell; what is of the run itself never tells.
    """
    end = raw.rfind(_KIND)
    if end < 0 or len(raw) > MAX_BYTES or not raw.startswith(_START):
        return None
    rest = _REST.fullmatch(raw, end)
    if rest is None:
        return None
    kind, mono, prev, seq, time = rest.groups()
    body, parts = _BODIES[kind]
    found = body.fullmatch(raw, len(_START), end)
    if found is None or (parts and not all(map(_holds, parts, found.groups()))):
        return None
    return int(seq), prev, int(mono), time


@lru_cache(_REMEMBERED)
def _holds(shape: Shape, text: bytes) -> bool:
    value = loads_plain(text)
    return value is not None and shape.holds(value)


def _rest() -> Pattern[bytes]:
    """All of an entry but its body, which comes first."""
    members = {name: patterns.grouped(shape.text) for name, shape in ENVELOPE.items() if shape.text is not None}
    members["kind"] = f'"({"|".join(re.escape(kind.decode()) for kind in _BODIES)})"'
    return re.compile(str(patterns.record(members)).replace(r"\{", ",", 1).encode())


def _body(fields: dict[str, Shape]) -> tuple[Pattern[bytes], tuple[Shape, ...]]:
    """The pattern of a body, and of what shape each of its groups must be found to be."""
    members = {name: shape.text or _FLAT for name, shape in fields.items()}
    apart = tuple(fields[name] for name in sorted(fields) if fields[name].text is None)
    return re.compile(str(patterns.record(members)).encode()), apart


_BODIES = {kind.encode(): _body(fields) for kind, fields in KINDS.items() if not kind.startswith(OF_THE_RUN)}
_REST = _rest()
