"""The check of a public copy's list: what it leaves out is what may be left out, and is not there."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from proctor_verify.check import Check
from proctor_verify.checks.packs import MAX_FRAME
from proctor_verify.errors import Unreadable
from proctor_verify.facts import OpenAttempt
from proctor_verify.folder import NotThere
from proctor_verify.journal import Entry
from proctor_verify.run import Run
from proctor_verify.schema import BLOB_FIELDS
from proctor_verify.verdicts import JSON, REPORTS, TXT
from proctor_verify.withheld import LIST

# What a grade is recomputed from, or could be.
KEPT = frozenset({TXT, JSON, *REPORTS})
_MAY_BE = frozenset({"source", "partial"})
_REMEMBERED = 4096


class Named(Check):
    id = "withheld.named"
    doc = (
        "what a public copy says that it leaves out, an entry names so, it is none of the files that grades are "
        "recomputed from, and it is not there"
    )
    noun = "withheld bodies"
    kinds = (*BLOB_FIELDS, "attempt.ended", "run.recovered")

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._withheld = run.withheld
        # what entries name again is looked at once, as long as it is remembered
        self._is_zeros = lru_cache(_REMEMBERED)(self._look_for_zeros)
        self._is_absent = lru_cache(_REMEMBERED)(self._look_for_nothing)

    def entry(self, entry: Entry) -> None:
        if not self._withheld.bodies:
            return
        if entry.kind == "attempt.ended":
            attempt = self.run.open.get(entry.body["attempt"])
            if attempt is not None:
                self._files(attempt)
        elif entry.kind == "run.recovered":
            for named in entry.body["quarantined"]:
                self._file(named["path"], named["sha256"], named["size"])
        else:
            for name in BLOB_FIELDS[entry.kind]:
                ref = entry.body[name]
                if ref is not None and self._withheld.name_blob(ref["blob"], ref["size"]):
                    self._blob(ref)

    def finish(self) -> None:
        if self._withheld.unread:
            self.cannot_tell(f"{LIST} {self._withheld.fault}")
            return
        if self._withheld.fault is not None:
            self.fail(LIST, self._withheld.fault)
            return
        self.looked = self._withheld.bodies
        for attempt in self.run.open.values():
            self._files(attempt)
        for item in self._withheld.unnamed():
            self.fail(LIST, f"lists {item}, which no entry names so")

    def _files(self, attempt: OpenAttempt) -> None:
        for path, fact in attempt.files.items():
            whole = f"{attempt.folder}/{path}"
            if not self._withheld.has_file(whole):
                continue
            if path in KEPT:
                self.fail(LIST, f"lists {whole}, which grades are recomputed from")
            elif fact.role not in _MAY_BE:
                self.fail(LIST, f"lists {whole}, which is {fact.role}")
            self._file(whole, fact.sha256, fact.size)

    def _file(self, path: str, sha256: str, size: int) -> None:
        if self._withheld.has_file(path):
            self._withheld.name_file(path, sha256, size)
            self._is_absent(path)

    def _blob(self, ref: dict[str, Any]) -> None:
        if "path" in ref:
            self._is_absent(f"blobs/{ref['blob'][:2]}/{ref['blob']}")
            return
        if ref["length"] <= 2 * MAX_FRAME:  # else said by packs.frames
            self._is_zeros(f"packs/{ref['pack']}", ref["offset"], ref["length"])

    def _look_for_zeros(self, pack: str, offset: int, length: int) -> None:
        try:
            stored = self.run.folder.read_part(pack, offset, length)
        except Unreadable:
            return  # said by packs.frames
        if stored.count(0) != len(stored):
            self.fail(pack, f"bytes {offset} to {offset + length} are of a withheld blob, and not zeros")

    def _look_for_nothing(self, path: str) -> None:
        try:
            self.run.folder.open(path).close()
            seen = "stands"
        except NotThere:
            return
        except Unreadable as error:
            seen = str(error)
        self.fail(path, f"{seen}, and is listed as withheld")
