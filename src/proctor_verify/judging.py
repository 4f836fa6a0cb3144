"""Lines judged by themselves, many at once: their hashes, and which of them are plainly entries of their kind's shape.

This is all that can be said of a line without those before it, and about a fifth of the work of a whole verification.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from proctor_verify.glance import is_entry
from proctor_verify.journal import Block, Entry, Line, line_of
from proctor_verify.schema import KINDS, body_fault, envelope_fault
from proctor_verify.strictjson import loads_plain

HASHES = 64


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found of a block's lines.

    `hashes` has, for each, SHA-256 and RFC 6962 leaf hash, 32 bytes each. `odd` are the places of those that are not
    plainly sound: only a reader of single lines can say what they are.
    """

    hashes: bytes
    odd: list[int]


def judge(block: Block) -> Judged:
    """Judge each line of a block."""
    hashes: list[bytes] = []
    odd: list[int] = []
    is_utf8 = _is_utf8(block.data)
    for at, raw in enumerate(block.raw_lines()):
        hashes.append(sha256(raw).digest())
        hashes.append(sha256(b"\0" + raw).digest())
        if not (is_utf8 and is_entry(raw)) and not _is_sound(raw):
            odd.append(at)
    return Judged(b"".join(hashes), odd)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_sound(raw: bytes) -> bool:
    value = loads_plain(raw)
    if value is None or envelope_fault(value) is not None:
        return False
    kind = value["kind"]
    return kind in KINDS and body_fault(kind, value["body"]) is None


def entries(block: Block, judged: Judged) -> Iterator[tuple[Entry, bytes] | Line]:
    """The lines of a judged block: a sound one as its entry and its two hashes, an odd one as a line, yet unread."""
    odd = set(judged.odd)
    values = _values(block, odd)
    raw_lines = block.raw_lines() if odd else []
    hashes, number = judged.hashes, block.first
    for at, value in enumerate(values):
        if value is None:
            yield line_of(number + at, raw_lines[at])
        else:
            yield (
                Entry(
                    number + at, value["seq"], value["prev"], value["time"], value["mono"], value["kind"], value["body"]
                ),
                hashes[at * HASHES : (at + 1) * HASHES],
            )


def _values(block: Block, odd: set[int]) -> list[Any]:
    if not odd:
        # A newline stands between lines and nowhere within one, so that these are the elements of one list.
        whole: list[Any] = json.loads("[" + block.data[:-1].decode().replace("\n", ",") + "]")
        return whole
    return [None if at in odd else json.loads(raw) for at, raw in enumerate(block.raw_lines())]
