"""Writing a public copy: the journal line by line, and beside it whatever its entries name and nobody withholds."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from proctor.evidence.entries import BLOB_FIELDS, JOURNAL, damaged
from proctor.evidence.kinds import Kind
from proctor.evidence.packs import MAX_FRAME_CONTENT, Blob
from proctor.evidence.public.folders import Source, Target, copied, read_at
from proctor.evidence.public.ledger import Ledger
from proctor.evidence.public.withhold import QUARANTINED, Withhold, asks_for_file, asks_for_quarantined

_File = dict[str, Any]
# of a design; manifests, checkpoints and receipts are smaller
_MAX_PLAIN = 256 << 20


@dataclass(slots=True)
class _Attempt:
    """An attempt in flight: its folder, and the last word about each of its files."""

    folder: str
    files: dict[str, _File] = field(default_factory=dict)


class Copier:
    """Takes the entries in order; what they name is copied, or noted as withheld. Raises OSError of the target.

    Every method raises Refusal `evidence_damaged` where a body is not what its entry names.
    """

    def __init__(self, source: Source, target: Target, asked: Collection[Withhold], ledger: Ledger) -> None:
        self._source = source
        self._target = target
        self._asked = asked
        self._ledger = ledger
        self._packs = _Packs(source, target)
        self._open: dict[str, _Attempt] = {}
        self._derived: dict[str, _File] = {}
        self._plain: dict[str, str] = {}

    def take(self, kind: Kind, body: dict[str, Any]) -> None:
        """The next entry."""
        for name in sorted(BLOB_FIELDS[kind]):
            if body[name] is not None:
                self._blob(body[name])
        if kind in (Kind.RUN_ADMITTED, Kind.RUN_RESUMED):
            self._plain.update((file["path"], file["sha256"]) for file in [body["manifest"], *body["abandoned"]])
            if kind is Kind.RUN_ADMITTED:
                self._plain["design.json"] = body["design_sha256"]
        elif kind in (Kind.CHECKPOINT_MADE, Kind.CHECKPOINT_ANCHORED):
            self._plain[body["path"]] = body["sha256"]
        elif kind is Kind.ATTEMPT_ADMITTED:
            self._open[body["attempt"]] = _Attempt(body["folder"])
        elif kind is Kind.ATTEMPT_FILES:
            self._open[body["attempt"]].files.update((file["path"], file) for file in body["files"])
        elif kind is Kind.ATTEMPT_ENDED:
            self._files(self._open.pop(body["attempt"]))
        elif kind is Kind.RUN_RECOVERED:
            for file in body["quarantined"]:
                self._quarantined(file)
        elif kind is Kind.RUN_ENDED:
            self._derived.update((file["path"], file) for file in body["files"])

    def finish(self, unnamed: Collection[str]) -> None:
        """The journal is over; `unnamed` are manifests, checkpoints and receipts that may stand without an entry."""
        self._packs.close()
        for attempt in self._open.values():
            self._files(attempt)
        for file in self._derived.values():
            self._file(file["path"], file)
        for path in sorted({*self._plain, *unnamed}):
            self._whole(path, self._plain.get(path))

    def close(self) -> None:
        """Let go of what is open, finished or not."""
        self._packs.drop()

    def _blob(self, ref: Any) -> None:
        blob = Blob.parse(ref)
        if blob is None:
            raise damaged("this is no blob reference", JOURNAL, observed=repr(ref)[:200])
        shown = not self._ledger.has_blob(blob.blob)
        if blob.pack is not None:
            self._packs.frame(blob, shown=shown)
        elif shown and self._target.size(blob.path) is None:
            self._file(blob.path, {"sha256": blob.blob, "size": blob.size})

    def _files(self, attempt: _Attempt) -> None:
        for path, file in attempt.files.items():
            whole = f"{attempt.folder}/{path}"
            kind = asks_for_file(self._asked, path, file["role"])
            if kind is None:
                self._file(whole, file)
            else:
                self._ledger.withhold_file(whole, file["sha256"], file["size"], kind.word)

    def _quarantined(self, file: _File) -> None:
        if asks_for_quarantined(self._asked, file["source"]):
            self._ledger.withhold_file(file["path"], file["sha256"], file["size"], QUARANTINED)
        else:
            self._file(file["path"], file)

    def _file(self, relative: str, named: _File) -> None:
        with self._source.open(relative) as source, self._target.new(relative) as target:
            digest, size = copied(relative, source, target, named["size"])
        if (digest, size) != (named["sha256"], named["size"]):
            raise damaged("a file is not what its entry names", relative, digest, named["sha256"])

    def _whole(self, relative: str, named: str | None) -> None:
        """A file of which no entry says the size: a manifest, a checkpoint, a receipt, the design."""
        with self._source.open(relative) as source, self._target.new(relative) as target:
            digest, _ = copied(relative, source, target, _MAX_PLAIN)
        if named is not None and digest != named:
            raise damaged("a file is not what its entry names", relative, digest, named)


class _Packs:
    """Packs, one after the other: frames that are shown in their places, and nothing between them."""

    def __init__(self, source: Source, target: Target) -> None:
        self._source = source
        self._target = target
        self._number = 0
        self._end = 0
        self._files = ExitStack()
        self._from: BinaryIO | None = None
        self._to: BinaryIO | None = None

    def frame(self, blob: Blob, *, shown: bool) -> None:
        """The frame that an entry names: copied where it is new and shown."""
        assert blob.pack is not None
        number, end = int(blob.pack.partition(".")[0]), blob.offset + blob.length
        if number == self._number + 1 and blob.offset == 0:
            self.close()
            self._number, self._end = number, 0
            self._from = self._files.enter_context(self._source.open(blob.path))
            self._to = self._files.enter_context(self._target.new(blob.path))
        elif number < self._number or (number == self._number and end <= self._end):
            return
        elif number != self._number or blob.offset != self._end:
            raise damaged("an entry names a frame that is not the next one", blob.path, blob.offset, self._end)
        if blob.length > 2 * MAX_FRAME_CONTENT:
            raise damaged("a frame is larger than frames are", blob.path, blob.length, 2 * MAX_FRAME_CONTENT)
        self._end = end
        assert self._from is not None and self._to is not None
        if shown:
            stored = read_at(blob.path, self._from, blob.offset, blob.length)
            digest = hashlib.sha256(stored).hexdigest()
            if digest != blob.stored_sha256:
                raise damaged("a frame is not what was written", blob.path, digest, blob.stored_sha256)
            self._to.seek(blob.offset)
            self._to.write(stored)

    def close(self) -> None:
        """End the pack that is open, at the last byte that an entry names."""
        if self._from is not None and self._to is not None:
            size = os.fstat(self._from.fileno()).st_size
            if size < self._end:
                raise damaged(
                    "a pack is shorter than its entries say", f"packs/{self._number:04d}.pack", size, self._end
                )
            # What no frame was written to stays a hole, which takes no room where the file system can have one.
            self._to.truncate(self._end)
            self._files.close()
            self._to = None

    def drop(self) -> None:
        """Close what is open, as it is."""
        self._files.close()
