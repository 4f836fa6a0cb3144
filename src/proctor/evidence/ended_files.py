"""Files of attempts that ended, held against their entries before a run goes on: as far as that costs little."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.evidence.disk import open_regular
from proctor.evidence.entries import JOURNAL, Entry, damaged
from proctor.evidence.kinds import Kind
from proctor.evidence.runfolder import RunFolder

# Of a larger file the size alone is looked at: `verify` reads it all.
MAX_READ = 64 << 10


@dataclass(slots=True)
class _Attempt:
    folder: str
    files: dict[str, dict[str, Any]] = field(default_factory=dict)


def held(run: RunFolder, entries: Iterable[Entry]) -> Iterator[Entry]:
    """The same entries; each file of an attempt that ends is one, has its size, and up to `MAX_READ` its digest.

    Raises:
        Refusal: `evidence_damaged` names the file.
        OSError: one cannot be read.
    """
    attempts: dict[str, _Attempt] = {}
    for entry in entries:
        try:
            _note(run, attempts, entry)
        except (KeyError, TypeError, ValueError) as error:
            where = f"{JOURNAL}:{entry.seq + 1}"
            raise damaged(f"an entry names files in no way that is known: {error!r}", where) from error
        yield entry


def _note(run: RunFolder, attempts: dict[str, _Attempt], entry: Entry) -> None:
    body = entry.body
    if entry.kind is Kind.ATTEMPT_ADMITTED:
        attempts[body["attempt"]] = _Attempt(body["folder"])
    elif entry.kind is Kind.ATTEMPT_FILES:
        attempts[body["attempt"]].files.update((file["path"], file) for file in body["files"])
    elif entry.kind is Kind.ATTEMPT_ENDED:
        attempt = attempts.pop(body["attempt"])
        for file in attempt.files.values():
            _hold(run, f"{attempt.folder}/{file['path']}", file)


def _hold(run: RunFolder, path: str, file: dict[str, Any]) -> None:
    size, digest = _seen(run.path / path)
    if size is None:
        raise damaged("a file that an attempt left is missing", path)
    if size != file["size"]:
        raise damaged("a file that an attempt left has another size", path, size, file["size"])
    if digest not in (None, file["sha256"]):
        raise damaged("a file that an attempt left is not what was written", path, digest, file["sha256"])


def _seen(path: Path) -> tuple[int | None, str | None]:
    """Size and SHA-256 of a plain file; no digest of a large one, and no size where none stands."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            return size, hashlib.sha256(file.read(size)).hexdigest() if size <= MAX_READ else None
    except OSError:
        # what is there and cannot be read is another matter than what is none
        if path.is_file() and not path.is_symlink():
            raise
        return None, None
