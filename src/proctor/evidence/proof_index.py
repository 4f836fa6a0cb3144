"""Where a journal's subtrees and finals are, so that a proof reads a few lines of it and not all.

Of each tile of 256 lines the index has the place in bytes and the root, of each perfect subtree above its root, and of
each trial the lines of its last admission and its final. The lines after the last whole tile are read each time.
Nothing of it is believed: what it says ends in a proof that leads to a signed root, or it is thrown away.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from proctor.core.refusal import Refusal
from proctor.evidence.entries import JOURNAL, MAX_LINE_BYTES, damaged, parse_line
from proctor.evidence.kinds import Kind
from proctor.evidence.merkle import Range, leaf_hash, node_hash, root, split
from proctor.evidence.reader import read_lines

_LEVEL = 8
TILE = 1 << _LEVEL

_FORMAT = 1
_LEVEL_SHIFT = 56
# Whoever holds it for longer reads the whole journal, which is done as soon without it.
_WAIT_SEC = 1.0
_SCHEMA = (
    "CREATE TABLE tiles (position INTEGER PRIMARY KEY, offset INTEGER NOT NULL)",
    "CREATE TABLE nodes (place INTEGER PRIMARY KEY, hash BLOB NOT NULL)",
    "CREATE TABLE trials (trial INTEGER PRIMARY KEY, admitted INTEGER, final INTEGER)",
    "CREATE TABLE ends (offset INTEGER NOT NULL)",
    "INSERT INTO ends VALUES (0)",
    f"PRAGMA user_version = {_FORMAT}",
)
_ADMITTED = b'"kind":"%b"' % Kind.ATTEMPT_ADMITTED.id.encode()
_FINAL = b'"kind":"%b"' % Kind.TRIAL_FINAL.id.encode()
_TRIAL = re.compile(r"[0-9a-f]{16}", re.ASCII)


class IndexUnfit(Exception):
    """The index does not fit itself or the journal: it is to be made anew."""


class Marks(NamedTuple):
    """Lines of a trial, from 0: of its last admission and of its final; None where there is none."""

    admitted: int | None = None
    final: int | None = None


def cache_dir(environ: Mapping[str, str]) -> Path:
    """Where indexes are kept: `$XDG_CACHE_HOME/proctor/proofs`, or the same below `~/.cache`."""
    shared = Path(environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification wants relative paths ignored.
    return (shared if shared.is_absolute() else Path.home() / ".cache") / "proctor" / "proofs"


class JournalIndex:
    """The index of one open journal, complete up to what stood in it when it was made or opened."""

    def __init__(self, database: sqlite3.Connection, journal: BinaryIO) -> None:
        """Takes in what was appended since the index was kept.

        Raises:
            IndexUnfit: it is none, or not of this version.
            Refusal: `evidence_damaged` for a line that is too long.
            sqlite3.Error, OSError.
        """
        self._database = database
        self._journal = journal
        self._held: dict[int, list[bytes]] = {}
        database.execute("BEGIN IMMEDIATE")
        version = self._integer("PRAGMA user_version")
        if version == 0:
            for statement in _SCHEMA:
                database.execute(statement)
        elif version != _FORMAT:
            raise IndexUnfit(f"format {version}")
        self.tiles = self._integer("SELECT count(*) FROM tiles")
        self._tail, self._tail_marks = self._extend(self._integer("SELECT offset FROM ends"))
        database.execute("COMMIT")

    @property
    def size(self) -> int:
        """How many whole lines the journal had."""
        return self.tiles * TILE + len(self._tail)

    def marks(self, trial: str) -> Marks:
        """The lines of a trial, by its id."""
        row = self._database.execute("SELECT admitted, final FROM trials WHERE trial = ?", (_number(trial),)).fetchone()
        kept = Marks(*(row or ()))
        if not all(line is None or (type(line) is int and line >= 0) for line in kept):
            raise IndexUnfit("the lines of a trial are none")
        late = self._tail_marks.get(trial, Marks())
        admitted = late.admitted if late.admitted is not None else kept.admitted
        return Marks(admitted, late.final if late.final is not None else kept.final)

    def line(self, index: int) -> bytes:
        """A line of the journal, from 0, without its newline.

        Raises:
            IndexUnfit: there is no such line where it should be.
        """
        lines = self._lines_of(index // TILE)
        if not 0 <= index % TILE < len(lines):
            raise IndexUnfit(f"line {index} is not where it should be")
        return lines[index % TILE]

    def root(self, leaves: Range) -> bytes:
        """The root over a range of leaves that the tree's shape makes: one of a path of `merkle`, or the whole.

        Raises:
            IndexUnfit: a part of it is missing.
        """
        low, high = leaves
        count = high - low
        whole = count >= TILE and count & (count - 1) == 0 and high <= self.tiles * TILE
        if whole:
            return self._node(count.bit_length() - 1, low // count)
        if count <= TILE:
            start = low % TILE
            lines = self._lines_of(low // TILE)[start : start + count]
            if len(lines) != count:
                raise IndexUnfit(f"lines {low} to {high} are not all there")
            return root([leaf_hash(line) for line in lines])
        middle = low + split(count)
        return node_hash(self.root((low, middle)), self.root((middle, high)))

    def _node(self, level: int, position: int) -> bytes:
        row = self._database.execute("SELECT hash FROM nodes WHERE place = ?", (_place(level, position),)).fetchone()
        if row is None or type(row[0]) is not bytes:
            raise IndexUnfit(f"the subtree {position} of level {level} is missing")
        return row[0]

    def _integer(self, query: str, *values: int) -> int:
        row = self._database.execute(query, values).fetchone()
        if row is None or type(row[0]) is not int or row[0] < 0:
            raise IndexUnfit(f"{query}: no count")
        return row[0]

    def _lines_of(self, tile: int) -> list[bytes]:
        if tile == self.tiles:
            return self._tail
        if tile not in self._held:
            self._journal.seek(self._integer("SELECT offset FROM tiles WHERE position = ?", tile))
            self._held[tile] = list(islice(read_lines(self._journal), TILE))
        return self._held[tile]

    def _extend(self, offset: int) -> tuple[list[bytes], dict[str, Marks]]:
        """Take in the whole tiles from `offset` on; returns the lines after them, and what they say of trials."""
        start = offset
        self._journal.seek(offset)
        lines = read_lines(self._journal)
        while True:
            tile = list(islice(lines, TILE))
            for place, line in enumerate(tile, start=self.tiles * TILE + 1):
                if len(line) > MAX_LINE_BYTES:
                    raise damaged("a line is too long", f"{JOURNAL}:{place}", required=MAX_LINE_BYTES)
            marks = _marks(tile, self.tiles * TILE)
            if len(tile) < TILE:
                if offset != start:
                    self._database.execute("UPDATE ends SET offset = ?", (offset,))
                return tile, marks
            self._add(tile, offset, marks)
            offset += sum(map(len, tile)) + TILE

    def _add(self, tile: list[bytes], offset: int, marks: dict[str, Marks]) -> None:
        position = self.tiles
        self._database.execute("INSERT INTO tiles VALUES (?, ?)", (position, offset))
        level, subtree = _LEVEL, root([leaf_hash(line) for line in tile])
        while True:
            self._database.execute("INSERT INTO nodes VALUES (?, ?)", (_place(level, position), subtree))
            if not position & 1:
                break
            subtree = node_hash(self._node(level, position - 1), subtree)
            level, position = level + 1, position >> 1
        for trial, (admitted, final) in marks.items():
            self._database.execute(
                "INSERT INTO trials VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET"
                " admitted = coalesce(excluded.admitted, admitted), final = coalesce(excluded.final, final)",
                (_number(trial), admitted, final),
            )
        self.tiles += 1


def _marks(lines: list[bytes], start: int) -> dict[str, Marks]:
    """What lines say of trials, by their ids."""
    known: dict[str, Marks] = {}
    for index, line in enumerate(lines, start=start):
        # Within a string the quotes would be escaped: whatever has these bytes has such a member.
        if _FINAL not in line and _ADMITTED not in line:
            continue
        try:
            entry = parse_line(line, index + 1)
        except Refusal:
            # of damage anywhere, the proof tells as much as it has to
            continue
        trial = entry.body.get("trial")
        if not isinstance(trial, str) or not _TRIAL.fullmatch(trial):
            continue
        before = known.get(trial, Marks())
        if entry.kind is Kind.TRIAL_FINAL:
            known[trial] = before._replace(final=index)
        elif entry.kind is Kind.ATTEMPT_ADMITTED:
            known[trial] = before._replace(admitted=index)
    return known


def _place(level: int, position: int) -> int:
    return (level << _LEVEL_SHIFT) | position


def _number(trial: str) -> int:
    # SQLite's integers are signed
    return int(trial, 16) - 2**63


def open_database(path: Path | None) -> sqlite3.Connection:
    """The database of an index: kept at `path`, with its folder, or in memory alone. Raises OSError, sqlite3.Error."""
    if path is None:
        return sqlite3.connect(":memory:", isolation_level=None)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    database = sqlite3.connect(path, isolation_level=None, timeout=_WAIT_SEC)
    # What a crash leaves is thrown away: no wait for the disk is worth it.
    database.execute("PRAGMA synchronous = OFF")
    return database


def forget(path: Path | None) -> None:
    """Throw a kept index away. Raises OSError."""
    if path is not None:
        for name in (path, path.with_name(path.name + "-journal")):
            name.unlink(missing_ok=True)
