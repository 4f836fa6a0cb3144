"""What a copy leaves out, remembered outside of memory: a run may have millions of bodies."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from types import TracebackType

from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.withheld import MAX_BLOBS, MAX_FILES

_TABLES = """
CREATE TABLE blob (digest BLOB PRIMARY KEY, size INTEGER NOT NULL, kind TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE file (path TEXT PRIMARY KEY, sha256 TEXT NOT NULL, size INTEGER NOT NULL, kind TEXT NOT NULL)
    WITHOUT ROWID;
"""


class Ledger:
    """Bodies by digest and files by path, each once, with the word of the kind that asked for it first."""

    def __init__(self) -> None:
        # A database without a name is a private temporary file, which its end removes.
        self._database = sqlite3.connect("")
        self._database.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;" + _TABLES)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self._database.close()

    def withhold_blob(self, digest: str, size: int, kind: str) -> None:
        """Leave a blob out; `digest` in hex."""
        self._put("INSERT OR IGNORE INTO blob VALUES (?, ?, ?)", bytes.fromhex(digest), size, kind)

    def withhold_file(self, path: str, sha256: str, size: int, kind: str) -> None:
        """Leave a file out; the path is relative to the run. The last word about a path counts."""
        self._put("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?)", path, sha256, size, kind)

    def has_blob(self, digest: str) -> bool:
        """Whether a blob of that digest is left out."""
        return self._one("SELECT 1 FROM blob WHERE digest = ?", bytes.fromhex(digest)) is not None

    def has_file(self, path: str) -> bool:
        """Whether the file at that path is left out."""
        try:
            return self._one("SELECT 1 FROM file WHERE path = ?", path) is not None
        except UnicodeEncodeError:
            return False  # a name that is no UTF-8 is none that an entry could hold

    def counts(self) -> dict[str, tuple[int, int]]:
        """Bodies and bytes by the word of their kind."""
        both = "SELECT kind, size FROM blob UNION ALL SELECT kind, size FROM file"
        rows = self._database.execute(f"SELECT kind, count(*), sum(size) FROM ({both}) GROUP BY kind")
        return {kind: (bodies, size) for kind, bodies, size in rows}

    def written(self) -> Iterator[bytes]:
        """`withheld.json`, piece by piece.

        Raises:
            Refusal: `invalid_value`: the lists are longer than a reader takes.
        """
        for table, most in (("blob", MAX_BLOBS), ("file", MAX_FILES)):
            rows = self._database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            if rows > most:
                message = f"a copy may leave out {most:,} {table}s at most"
                raise Refusal(Reason.INVALID_VALUE, message, observed=rows, required=most)
        yield b'{"blobs":['
        for number, (digest, size) in enumerate(self._database.execute("SELECT digest, size FROM blob ORDER BY 1")):
            yield (b"," if number else b"") + encode({"blob": digest.hex(), "size": size})
        yield b'],"files":['
        files = self._database.execute("SELECT path, sha256, size FROM file ORDER BY path COLLATE BINARY")
        for number, (path, sha256, size) in enumerate(files):
            yield (b"," if number else b"") + encode({"path": path, "sha256": sha256, "size": size})
        yield b'],"format":1}'

    def _put(self, statement: str, *values: bytes | str | int) -> None:
        self._database.execute(statement, values)

    def _one(self, statement: str, value: bytes | str) -> object:
        return self._database.execute(statement, (value,)).fetchone()
