"""One entry: its line, its check, and the chain that lines form."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

import orjson

from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.strictjson import MAX_DEPTH, loads_canonical
from proctor.evidence.kinds import Kind
from proctor.evidence.merkle import CompactRange, leaf_hash

MAX_LINE_BYTES = 65_535
# what else stands in a line takes the rest at most
MAX_BODY_BYTES = MAX_LINE_BYTES - 200
NO_ENTRY = "0" * 64
JOURNAL = "journal.jsonl"

_ENTRY_FIELDS = frozenset({"seq", "prev", "time", "mono", "kind", "body"})
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z", re.ASCII)
_BODY_FIELDS = {kind: frozenset(name.removesuffix("?") for name in kind.value.fields) for kind in Kind}
# The registry says it in the first words of a field's meaning.
BLOB_FIELDS = {
    kind: frozenset(
        name.removesuffix("?") for name, doc in kind.value.fields.items() if doc.startswith("blob reference")
    )
    for kind in Kind
}
NULL_FIELDS = {kind: frozenset(name[:-1] for name in kind.value.fields if name.endswith("?")) for kind in Kind}
_KIND_JSON = {kind: encode(kind.id) for kind in Kind}
_BY_NAME = {kind.id: kind for kind in Kind}


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry as read; `kind` is text where this version does not know it; `mono` in nanoseconds."""

    seq: int
    prev: str
    time: str
    mono: int
    kind: Kind | str
    body: dict[str, Any]


class Links:
    """Where the next line links to: how many there are, and the last one's digest (hex)."""

    __slots__ = ("head", "size")

    def __init__(self) -> None:
        self.head = NO_ENTRY
        # How many lines there are: the next entry's `seq`.
        self.size = 0

    def advance(self, line: bytes) -> None:
        """Take a line, without its newline."""
        self.head = sha256(line).hexdigest()
        self.size += 1

    def lead_to(self, entry: Entry) -> bool:
        """Whether an entry links to the last line."""
        return entry.seq == self.size and entry.prev == self.head


class Chain(Links):
    """Links, and the tree over all lines."""

    __slots__ = ("_behind", "_tree")

    def __init__(self) -> None:
        super().__init__()
        self._tree = CompactRange()
        self._behind: list[bytes] = []

    @property
    def tree(self) -> CompactRange:
        """The tree over all lines."""
        self.grow()
        return self._tree

    def advance(self, line: bytes) -> None:
        """Take a line, without its newline, that links to `head`."""
        self.link(line)
        self.grow()

    def link(self, line: bytes) -> None:
        """`advance`, with the line's part in the tree left for later: the next line needs none."""
        Links.advance(self, line)
        self._behind.append(line)

    def grow(self) -> None:
        """Do what `link` left for later."""
        for line in self._behind:
            self._tree.append(leaf_hash(line))
        self._behind.clear()


def check_body(kind: Kind, fields: Collection[str]) -> None:
    """Check that a body has exactly its kind's fields.

    Raises:
        ValueError: it has others, or lacks some.
    """
    wanted = _BODY_FIELDS[kind]
    if len(fields) != len(wanted) or not wanted.issuperset(fields):
        missing, extra = sorted(wanted.difference(fields)), sorted(set(fields) - wanted)
        raise ValueError(f"{kind.id}: fields missing {missing}, fields that are not its own {extra}")


def make_line(chain: Chain, time: str, mono: int, kind: Kind, body: bytes) -> bytes:
    """The next entry's line without its newline; `body` is canonical JSON that `check_size` let pass."""
    # The six keys are in canonical order; a test holds that this is `encode` of the whole.
    return b'{"body":%b,"kind":%b,"mono":%d,"prev":"%b","seq":%d,"time":"%b"}' % (
        body,
        _KIND_JSON[kind],
        mono,
        chain.head.encode(),
        chain.size,
        time.encode(),
    )


def check_size(kind: Kind, body_bytes: int) -> None:
    """Check that an entry fits, whatever its place, before anything relies on it.

    Raises:
        Refusal: `entry_too_large`.
    """
    if body_bytes > MAX_BODY_BYTES:
        raise Refusal(
            Reason.ENTRY_TOO_LARGE,
            f"a {kind.id} entry is too large for the journal",
            path=JOURNAL,
            observed=body_bytes,
            required=MAX_BODY_BYTES,
        )


def parse_line(line: bytes, number: int, *, chain: Links | None = None) -> Entry:
    """Read a line (without its newline) strictly.

    Args:
        number: the line's number from 1, for the refusal.
        chain: what the line must link to; not checked where it is None.

    Raises:
        Refusal: `evidence_damaged` names the line.
    """
    where = f"{JOURNAL}:{number}"
    value = _canonical(line, where)
    if not isinstance(value, dict) or value.keys() != _ENTRY_FIELDS:
        raise damaged("a line is not an entry", where, required=sorted(_ENTRY_FIELDS))
    seq, prev, time, mono, name, body = (value[key] for key in ("seq", "prev", "time", "mono", "kind", "body"))
    typed = type(seq) is int and type(mono) is int and type(prev) is str and type(time) is str and type(name) is str
    if not typed or type(body) is not dict or mono < 0 or not _is_time(time):
        raise damaged("an entry's field is not of its type", where)
    if chain is not None and (seq != chain.size or prev != chain.head):
        raise damaged(
            "an entry does not follow the one before it",
            where,
            observed={"seq": seq, "prev": prev[:64]},
            required={"seq": chain.size, "prev": chain.head},
        )
    kind = Kind.by_id(name)
    if kind is not None:
        try:
            check_body(kind, body.keys())
        except ValueError as error:
            raise damaged(f"an entry's body is not its kind's: {error}", where) from error
    return Entry(seq, prev, time, mono, kind if kind is not None else name, body)


def own_line(line: bytes) -> tuple[Kind, dict[str, Any]]:
    """Kind and body of a line that this very process wrote, or read strictly before, and that nobody else writes."""
    value = orjson.loads(line)
    return _BY_NAME[value["kind"]], value["body"]


def _is_time(text: str) -> bool:
    if _TIME.fullmatch(text) is None:
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def damaged(message: str, where: str, observed: Any = None, required: Any = None) -> Refusal:
    """The refusal that says where evidence is not what was written."""
    return Refusal(Reason.EVIDENCE_DAMAGED, message, path=where, observed=observed, required=required)


def _canonical(line: bytes, where: str) -> Any:
    if len(line) > MAX_LINE_BYTES:
        raise damaged("a line is too long", where, observed=len(line), required=MAX_LINE_BYTES)
    # What encodes to the same bytes was canonical, and had no key twice: six times as fast as the strict reader.
    value = _fast(line) if line.count(b"{") + line.count(b"[") <= MAX_DEPTH else None
    if value is not None:
        return value
    try:
        return loads_canonical(line, path=where)
    except Refusal as error:
        raise damaged(f"a line is not canonical JSON: {error.message}", where, observed=error.observed) from error


def _fast(line: bytes) -> Any:
    try:
        value = orjson.loads(line)
        return value if encode(value) == line else None
    except (orjson.JSONDecodeError, Refusal):
        return None
