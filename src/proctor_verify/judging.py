"""Lines judged by themselves, many at once: which of them are plainly entries that follow one another.

This needs none of the lines before, and is about a third of the work of a whole verification.
"""

from __future__ import annotations

import json
from binascii import hexlify
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from proctor_verify.clocks import ahead
from proctor_verify.glance import OF_THE_RUN, Link, link_of
from proctor_verify.journal import Block, Entry, Line, Stretch, line_of
from proctor_verify.merkle import leaf_hash, subtrees
from proctor_verify.schema import KINDS, body_fault, envelope_fault
from proctor_verify.strictjson import loads_plain

_parts = itemgetter("seq", "prev", "time", "mono", "kind", "body")


class Span(NamedTuple):
    """What was found of so many lines of a block, from the one at `start` on, which are a stretch."""

    start: int
    lines: int
    least: int
    most: int
    head: bytes
    subtrees: list[tuple[int, bytes]]


def judge(block: Block) -> list[Span]:
    """The stretches of a block. Only a reader of single lines can say what the others are."""
    raw_lines, cuts = block.raw_lines(), set(block.cuts)
    read = _link_of if _is_utf8(block.data) else _read
    links = [read(raw) for raw in raw_lines]
    digests = [sha256(raw).digest() for raw in raw_lines]
    starts = [0]
    for at in range(1, len(raw_lines)):
        this, before = links[at], links[at - 1]
        if this is not None and before is not None and at not in cuts:
            seq, _, mono, time = before
            if this[0] == seq + 1 and this[2] >= mono and this[3] >= time and this[1] == hexlify(digests[at - 1]):
                continue
        starts.append(at)
    spans: list[Span] = []
    for start, end in pairwise([*starts, len(raw_lines)]):
        if links[start] is not None:
            offs = [ahead(link[3], link[2]) for link in links[start:end] if link is not None]
            trees = subtrees([leaf_hash(raw) for raw in raw_lines[start:end]], block.first + start)
            spans.append(Span(start, end - start, min(offs), max(offs), digests[end - 1], trees))
    return spans


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _link_of(raw: bytes) -> Link | None:
    return link_of(raw) or _read(raw)


def _read(raw: bytes) -> Link | None:
    value = loads_plain(raw)
    if value is None or envelope_fault(value) is not None:
        return None
    kind = value["kind"]
    if kind not in KINDS or kind.startswith(OF_THE_RUN) or body_fault(kind, value["body"]) is not None:
        return None
    return value["seq"], value["prev"].encode(), value["mono"], value["time"].encode()


def pieces(block: Block, spans: Sequence[Span]) -> Iterator[Stretch | Line]:
    """The stretches of a judged block, and the lines that are in none, yet unread."""
    raw_lines, at = block.raw_lines(), 0
    for span in spans:
        yield from _lines(block.first + at, raw_lines[at : span.start])
        at = span.start + span.lines
        own, first = raw_lines[span.start : at], block.first + span.start
        values = json.loads(b"[%b]" % b",".join(own))
        entries = [Entry(number, *_parts(value)) for number, value in enumerate(values, first)]
        yield Stretch(entries, own, span.head.hex(), span.subtrees, span.least, span.most)
    yield from _lines(block.first + at, raw_lines[at:])


def lines_of(stretch: Stretch) -> Iterator[Line]:
    """The lines of a stretch, yet unread."""
    return _lines(stretch.entries[0].line, stretch.raw)


def _lines(first: int, raw_lines: Sequence[bytes]) -> Iterator[Line]:
    for number, raw in enumerate(raw_lines, first):
        yield line_of(number, raw)
