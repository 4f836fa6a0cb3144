"""Checks of anchors: the receipts in the run, what had to be anchored, and what stands there now."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime

from proctor_verify.anchors import Commit, Copy, Receipt, object_id, receipt_path
from proctor_verify.check import Check
from proctor_verify.checks.heads import head_fault
from proctor_verify.checks.keys import stated_key
from proctor_verify.elsewhere import Head, Place, none_there
from proctor_verify.journal import Entry
from proctor_verify.notes import name_of, origin_of
from proctor_verify.run import Run


class ReceiptsNamed(Check):
    id = "anchors.receipts"
    doc = (
        "each `checkpoint.anchored` names, once, a receipt of a checkpoint before it, that stands, by its digest, "
        "and has the form of one; of a run that is over, each other is of the last checkpoint"
    )
    noun = "receipts"
    kinds = ("checkpoint.anchored",)

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._seen: set[str] = set()

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        path, size = entry.body["path"], entry.body["size"]
        if path != receipt_path(size, entry.body["anchor"]):
            self.fail_at(entry, f"names {path} for {entry.body['anchor']} and {size} entries")
        elif size not in self.run.receipts.made:
            self.fail_at(entry, f"no entry before it names a checkpoint of {size} entries")
        elif path in self._seen:
            self.fail_at(entry, f"names {path} once more")
        self._seen.add(path)

    def finish(self) -> None:
        receipts = self.run.receipts
        standing = {receipt_path(size, anchor): size for size, anchor in receipts.standing()}
        for path in sorted(self._seen - standing.keys()):
            self.fail(path, "is not there")
        self.looked = max(self.looked, len(receipts.sound))
        for path, why in sorted(receipts.faults.items()):
            self.fail(path, why)
        for path, size in standing.items():
            if path not in self._seen and self.run.ended and size != self.run.size:
                self.fail(path, "is named by no entry")


class _OfReceipts(Check):
    """A rule that holds for each receipt whose bytes can be gone by."""

    noun = "receipts"

    def finish(self) -> None:
        for receipt in self.run.receipts.sound:
            self.looked += 1
            for fault in self.faults(receipt):
                self.fail(receipt.path, fault)

    def faults(self, receipt: Receipt) -> Iterator[str]:
        raise NotImplementedError


class Identity(_OfReceipts):
    id = "anchors.identity"
    doc = (
        "a receipt is of this run, of the place that the design names, and of a checkpoint file that stands, by "
        "size and digest; author and committer of its commit are the run's key"
    )
    needs_design = True
    kinds = ("run.admitted",)

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._fingerprint: str | None = None

    def entry(self, entry: Entry) -> None:
        key = stated_key(entry)
        self._fingerprint = key.fingerprint if key is not None else None

    def faults(self, receipt: Receipt) -> Iterator[str]:
        origin = origin_of(self.run.first["run_id"]) if self.run.first else receipt.origin
        if receipt.origin != origin:
            yield f"is of {receipt.origin}, not of {origin}"
        location = self.design.parts.anchors.locations.get(receipt.anchor, receipt.location)
        if receipt.location != location:
            yield f"is of {receipt.location}, and the design's is {location}"
        if receipt.size != receipt.of:
            yield f"is of a checkpoint of {receipt.size} entries"
        named = self.run.receipts.made.get(receipt.of) or _digest(self.run, receipt.of)
        if receipt.sha256 != named:
            yield f"is of a checkpoint with digest {receipt.sha256}, and {named or 'none'} stands"
        if isinstance(receipt.snapshot, Commit) and self._fingerprint is not None:
            for role, person in zip(("author", "committer"), receipt.snapshot.people, strict=True):
                if person is None:
                    yield f"its commit's {role} is not of the form proctor <fingerprint> seconds zone"
                elif person.fingerprint != self._fingerprint:
                    yield f"its commit's {role} is {person.fingerprint}, and the run's key {self._fingerprint}"


class Pushed(_OfReceipts):
    id = "anchors.pushed"
    doc = "the return code of what pushed is the integer 0"

    def faults(self, receipt: Receipt) -> Iterator[str]:
        code = receipt.return_code
        if type(code) is not int or code != 0:
            yield f"has return code {code!r}"


class Chronology(_OfReceipts):
    id = "anchors.chronology"
    doc = (
        "a push ends no earlier than it started, none starts or ends earlier than that of a smaller checkpoint at "
        "the same anchor, and its commit was made in between"
    )

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._last: dict[str, Receipt] = {}

    def faults(self, receipt: Receipt) -> Iterator[str]:
        last = self._last.get(receipt.anchor)
        if receipt.started > receipt.ended:
            yield f"started at {receipt.started}, and ended at {receipt.ended}"
        if last is not None and receipt.started < last.started:
            yield f"started at {receipt.started}, and {last.path} at {last.started}"
        elif last is not None and receipt.ended < last.ended:
            yield f"ended at {receipt.ended}, and {last.path} at {last.ended}"
        self._last[receipt.anchor] = receipt
        if isinstance(receipt.snapshot, Commit):
            earliest, latest = _seconds(receipt.started), _seconds(receipt.ended)
            for role, person in zip(("author", "committer"), receipt.snapshot.people, strict=True):
                if person is not None and not earliest <= person.seconds <= latest:
                    yield f"its commit's {role} wrote at {person.seconds}, not from {earliest} to {latest}"


class Snapshot(_OfReceipts):
    id = "anchors.snapshot"
    doc = (
        "what was read back at the anchor is the checkpoint: a commit of this run's ref whose objects have their "
        "ids, with a tree of the one file; or the copied note"
    )

    def faults(self, receipt: Receipt) -> Iterator[str]:
        note = self.run.receipts.note(receipt.of)
        run_id = self.run.first["run_id"] if self.run.first else None
        found = receipt.snapshot
        if isinstance(found, Copy):
            path = f"{run_id}/{name_of(receipt.of)}"
            if run_id is not None and found.path != path:
                yield f"was read back from {found.path}, not from {path}"
            if note is not None and (found.sha256, found.size) != (hashlib.sha256(note).hexdigest(), len(note)):
                yield f"what was read back has digest {found.sha256} and {found.size} bytes, and the checkpoint has not"
            return
        if run_id is not None and found.ref != f"refs/proctor/{run_id}":
            yield f"is of the ref {found.ref}"
        if found.hashed != found.id:
            yield f"the content of commit {found.id} has the id {found.hashed}"
        if found.tree != found.tree_hashed:
            yield f"commit {found.id} is of tree {found.tree}, and the tree's content has the id {found.tree_hashed}"
        if found.blob is None:
            yield f"the tree of commit {found.id} is not of one checkpoint"
        elif note is not None and found.blob != object_id(b"blob", note, len(found.id)):
            yield f"the file in commit {found.id} is not the checkpoint"


class Required(Check):
    id = "anchors.required"
    doc = (
        "where anchors are required, a block is admitted only after each took a checkpoint in the opening, and "
        "not after one failed, until it took one more"
    )
    noun = "blocks under required anchors"
    kinds = ("run.admitted", "run.resumed", "checkpoint.anchored", "anchor.failed", "block.admitted")
    needs_design = True

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._took: set[str] = set()

    def entry(self, entry: Entry) -> None:
        if entry.kind == "checkpoint.anchored":
            self._took.add(entry.body["anchor"])
        elif entry.kind == "anchor.failed":
            self._took.discard(entry.body["anchor"])
        elif entry.kind != "block.admitted":
            self._took.clear()
        elif self.design.parts.anchors.required:
            self.looked += 1
            for anchor in self.design.parts.anchors.locations.keys() - self._took:
                self.fail_at(entry, f"a block is admitted, and the anchor {anchor} has not taken a checkpoint")


class Covered(Check):
    id = "anchors.covered"
    doc = "where anchors are required, the last checkpoint of a run that is over has a receipt of each"
    noun = "required anchors of a run that is over"
    needs_design = True

    def finish(self) -> None:
        anchors, size = self.design.parts.anchors, self.run.size
        if not anchors.required or not self.run.ended or size not in self.run.note_sizes:
            return
        standing = set(self.run.receipts.standing())
        for anchor in anchors.locations:
            self.looked += 1
            if (size, anchor) not in standing:
                self.fail(receipt_path(size, anchor), "is not there: the last checkpoint was not pushed to this anchor")


class Remote(Check):
    id = "anchors.remote"
    doc = (
        "what stands at each place given with `--anchor` are checkpoints of this run, one at least, each signed "
        "by its key, with the root of this journal at its size; the receipts of that place are of what stands "
        "there"
    )
    noun = "place given with --anchor"
    unblinded = True

    def finish(self) -> None:
        for place in self.run.elsewhere.places:
            self._place(place)
        self.said = f"checkpoints at anchors: {self.looked:,}"

    def _place(self, place: Place) -> None:
        for head in place.heads:
            self.looked += 1
            fault = head_fault(self.run, head)
            if fault is not None:
                self.fail(_at(place, head), fault)
        if place.doubt is not None:
            self.cannot_tell(f"{place.where}: {place.doubt}")
        elif not place.heads:
            named = sorted({receipt.location for receipt in self.run.receipts.sound})
            self.fail(place.where, none_there(place, self.run.first["run_id"] if self.run.first else "", named))
        elif self.run.blind is None:
            for receipt in missing_receipts(self.run, place):
                self.fail(receipt.path, f"what it names does not stand at {place.where}")


def missing_receipts(run: Run, place: Place) -> list[Receipt]:
    """Receipts of that place that name what does not stand there."""
    standing = {head.name for head in place.heads}
    receipts = [receipt for receipt in run.receipts.sound if receipt.anchor == place.kind]
    there = {receipt.of for receipt in receipts if receipt.names in standing}
    # a place has many spellings: it is the receipts' own where it is called so, or has anything that they name; but in
    # folders a note has the same name everywhere, and the last one is put wherever somebody wants it
    last = {max((receipt.of for receipt in receipts), default=0)} if place.kind == "drop" else set()
    telling = there - last
    return [receipt for receipt in receipts if receipt.of not in there and (telling or receipt.location == place.where)]


def _at(place: Place, head: Head) -> str:
    return f"{place.where}:{head.name}" if head.name else place.where


def _digest(run: Run, size: int) -> str | None:
    note = run.receipts.note(size)
    return hashlib.sha256(note).hexdigest() if note is not None else None


def _seconds(time: str) -> int:
    return int(datetime.fromisoformat(time).timestamp())
