"""Checks of the signed tree heads."""

from __future__ import annotations

import hashlib

from proctor_verify import notes
from proctor_verify.check import Check
from proctor_verify.checks.heads import head_fault
from proctor_verify.checks.keys import stated_key
from proctor_verify.errors import Unreadable
from proctor_verify.journal import Entry
from proctor_verify.notes import path_of
from proctor_verify.run import Run


def _note(run: Run, size: int) -> notes.Note:
    return notes.parse(run.folder.read(path_of(size), notes.MAX_NOTE_BYTES))


class Files(Check):
    id = "checkpoints.files"
    doc = "each `checkpoint.made` names a file that stands, by its digest; each file but the last is named by one"
    noun = "checkpoints named"
    kinds = ("checkpoint.made",)

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._named: set[int] = set()

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        path, size = entry.body["path"], entry.body["size"]
        if path != path_of(size) or size > entry.line:
            self.fail_at(entry, f"names {path} for a checkpoint of {size} entries")
            return
        self._named.add(size)
        try:
            raw = self.run.folder.read(path, notes.MAX_NOTE_BYTES)
        except Unreadable as error:
            self.fail(path, str(error))
            return
        if hashlib.sha256(raw).hexdigest() != entry.body["sha256"]:
            self.fail(path, f"is not the file that line {entry.line + 1} names")

    def finish(self) -> None:
        for size in sorted(self.run.note_sizes - self._named):
            if size < self.run.size:
                self.fail(path_of(size), "is named by no entry")


class Signature(Check):
    id = "checkpoints.signature"
    doc = "each checkpoint file is a signed note, signed by a key that an opening names"
    noun = "signatures"
    kinds = ("run.admitted", "run.resumed")
    unblinded = True

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._keys: set[notes.Key] = set()

    def entry(self, entry: Entry) -> None:
        key = stated_key(entry)
        if key is not None:
            self._keys.add(key)

    def finish(self) -> None:
        if not self._keys:
            self.cannot_tell("no opening names a key")
            return
        for size in sorted(self.run.note_sizes):
            self.looked += 1
            try:
                note = _note(self.run, size)
            except Unreadable as error:
                self.fail(path_of(size), str(error))
                continue
            if not any(note.signed_by(key) for key in self._keys):
                self.fail(path_of(size), "is not signed by the run's key")


class Head(Check):
    id = "checkpoints.head"
    doc = "each checkpoint has this run's origin, its file's size, and the root recomputed at that size"
    noun = "tree heads"
    kinds = ("checkpoint.made",)
    unblinded = True

    def entry(self, entry: Entry) -> None:
        size = entry.body["size"]
        root = self.run.roots.get(size)
        if root is not None and root.hex() != entry.body["root"]:
            self.fail_at(entry, f"names root {entry.body['root']} at {size}, where the journal has {root.hex()}")

    def finish(self) -> None:
        origin = notes.origin_of(self.run.first["run_id"]) if self.run.first else None
        for size in sorted(self.run.note_sizes):
            try:
                note = _note(self.run, size)
            except Unreadable:
                continue  # said by checkpoints.signature
            self.looked += 1
            try:
                head = notes.checkpoint(note.text)
            except Unreadable as error:
                self.fail(path_of(size), str(error))
                continue
            if head.size != size:
                self.fail(path_of(size), f"covers {head.size} entries")
            elif size > self.run.size:
                self.fail(path_of(size), f"covers {size} entries, and {self.run.size} stand in the journal")
            elif origin is not None and head.origin != origin:
                self.fail(path_of(size), f"is of {head.origin}, not of {origin}")
            elif self.run.roots[size] != head.root:
                self.fail(path_of(size), f"has root {head.root.hex()}, the journal {self.run.roots[size].hex()}")


class Last(Check):
    id = "checkpoints.last"
    doc = "a checkpoint covers every entry"
    noun = "entries covered"
    unblinded = True

    def finish(self) -> None:
        covered = max((size for size in self.run.note_sizes if size <= self.run.size), default=0)
        if covered == self.run.size:
            self.looked = covered
        elif self.run.ended or self.run.blind:
            self.fail("checkpoints", f"the last covers {covered} of {self.run.size} entries")
        else:
            self.cannot_tell(f"{self.run.size - covered} entries at the end of an open run are not covered yet")


class SinceExtends(Check):
    id = "since.extends"
    doc = (
        "the checkpoint given with `--since` is of this run, signed by its key, and has the root of this journal at "
        "its size"
    )
    noun = "checkpoint was given with --since"
    unblinded = True

    def finish(self) -> None:
        asked, head = self.run.elsewhere.asked, self.run.elsewhere.since
        if asked.since is None:
            return
        if head is None:
            self.cannot_tell("it is not known which run this is")
            return
        fault = head_fault(self.run, head)
        if fault is not None:
            self.fail("--since", fault)
        self.looked = 1
        self.said = f"the journal goes on from {head.size:,} entries: {self.run.size - head.size:,} since then"
