"""Checks of recorded bytes: frames of packs, and blobs."""

from __future__ import annotations

import hashlib
import re
import zlib
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any

from proctor_verify.aside import InOrder
from proctor_verify.buffers import Buffers
from proctor_verify.check import Check
from proctor_verify.errors import Unreadable
from proctor_verify.journal import Entry
from proctor_verify.run import Run
from proctor_verify.schema import BLOB_FIELDS

MAX_FRAME = 1 << 20
MAX_PACK = 256 << 20
# Frames that are named again need not be looked at again: of so many, which bounds the memory that takes.
REMEMBERED = 4096
identity = itemgetter("blob", "size", "pack", "offset", "length", "encoding", "stored_sha256")
# As packs are numbered, from 0001 on.
_PACK = re.compile(r"(?!0000)(?:[0-9]{4}|[1-9][0-9]{4,8})\.pack")


def inflated(stored: bytes | memoryview, size: int) -> bytes | None:
    """The content of exactly one gzip member of that size, or None where it is none."""
    inflate = zlib.decompressobj(wbits=31)
    try:
        content = inflate.decompress(stored, size + 1)
    except zlib.error:
        return None
    return content if inflate.eof and not inflate.unused_data and len(content) == size else None


def frame_fault(stored: bytes | memoryview, ref: dict[str, Any]) -> str | None:
    """What is wrong with the bytes of a frame; None where nothing is."""
    digest = hashlib.sha256(stored).hexdigest()
    if digest != ref["stored_sha256"]:
        return f"not stored bytes of digest {ref['stored_sha256']}"
    size = len(stored)
    if ref["encoding"] == "gzip":
        content = inflated(stored, ref["size"])
        if content is None:
            return "not one whole gzip member of the size named"
        size, digest = len(content), hashlib.sha256(content).hexdigest()
    if size != ref["size"] or digest != ref["blob"]:
        return f"not {ref['size']} bytes of digest {ref['blob']}"
    return None


@lru_cache(2)
def _name_of(pack: int) -> str:
    return f"{pack:04d}.pack"


class Frames(Check):
    id = "packs.frames"
    doc = (
        "frames lie in the packs in the order of their first naming, without gaps; each has its digest as stored "
        "and as decoded"
    )
    noun = "frames"
    kinds = tuple(BLOB_FIELDS)

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._pack = 0
        self._end = 0
        self._known: set[tuple[Any, ...]] = set()
        self._buffers = Buffers(2 * MAX_FRAME)
        self._order = InOrder(run.aside)

    def entry(self, entry: Entry) -> None:
        for name in BLOB_FIELDS[entry.kind]:
            ref = entry.body[name]
            if ref is not None and "pack" in ref:
                self._frame(entry, ref)

    def _frame(self, entry: Entry, ref: dict[str, Any]) -> None:
        key = identity(ref)
        if key in self._known:
            return
        self.looked += 1
        pack, offset, length = ref["pack"], ref["offset"], ref["length"]
        current = _name_of(self._pack)
        if pack == _name_of(self._pack + 1) and offset == 0:
            self._close_pack()
            self._pack += 1
            self._end = 0
        elif not (pack == current and offset <= self._end) and not self._is_earlier(pack):
            self._not_there(entry, f"names bytes {offset} of {pack}, where {current} goes on at {self._end}")
            return
        if pack == _name_of(self._pack):
            if offset < self._end < offset + length:
                self._not_there(entry, f"names bytes {offset} to {offset + length} of {pack}, across frames")
                return
            self._end = max(self._end, offset + length)
        if len(self._known) < REMEMBERED:
            self._known.add(key)
        self._look(ref)

    def _not_there(self, entry: Entry, seen: str) -> None:
        self._order.tell(partial(self.fail_at, entry), seen)

    def _told(self, ref: dict[str, Any], buffer: bytearray | None, fault: str | None) -> None:
        self._buffers.give(buffer)
        if fault is not None:
            start = ref["offset"]
            self.fail_body(f"packs/{ref['pack']}", f"bytes {start} to {start + ref['length']}: {fault}")

    def _is_earlier(self, pack: str) -> bool:
        return _PACK.fullmatch(pack) is not None and int(pack[:-5]) < self._pack

    def _look(self, ref: dict[str, Any]) -> None:
        buffer = self._buffers.take(ref["length"])
        stored = self._stored(ref, buffer)
        told = partial(self._told, ref, buffer)
        if stored is None or isinstance(stored, str):
            self._order.tell(told, stored)
        else:
            self._order.work(told, partial(frame_fault, stored, ref), ref["length"] + ref["size"])

    def _stored(self, ref: dict[str, Any], buffer: bytearray | None) -> bytes | memoryview | str | None:
        """The bytes of a frame; else what is wrong with it, None where it may be left out."""
        if ref["size"] > MAX_FRAME or ref["length"] > 2 * MAX_FRAME or ref["offset"] + ref["length"] > MAX_PACK:
            return "more than a frame or a pack may hold"
        try:
            stored = self.run.folder.read_part(f"packs/{ref['pack']}", ref["offset"], ref["length"], buffer)
        except Unreadable as error:
            return str(error)
        if len(stored) != ref["length"]:
            return "the pack ends before"
        if self.run.withheld.has_blob(ref["blob"]):
            return None
        return stored

    def _close_pack(self) -> None:
        if not self._pack:
            return
        path = f"packs/{self._pack:04d}.pack"
        try:
            with self.run.folder.open(path) as stream:
                size = stream.seek(0, 2)
        except Unreadable:
            return  # said where its first frame was read
        if size > self._end:
            seen = f"holds {size - self._end} bytes after its last frame that no entry names"
            self._order.tell(partial(self.fail, path), seen)

    def settle(self) -> None:
        self._order.finish()

    def finish(self) -> None:
        self._close_pack()


class Blobs(Check):
    id = "blobs.files"
    doc = "each blob that an entry names by its path stands there, with its size and digest"
    noun = "blobs"
    kinds = tuple(BLOB_FIELDS)

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._known: set[tuple[str, int]] = set()
        self._order = InOrder(run.aside)

    def entry(self, entry: Entry) -> None:
        for name in BLOB_FIELDS[entry.kind]:
            ref = entry.body[name]
            if ref is not None and "path" in ref:
                self._blob(entry, ref)

    def _blob(self, entry: Entry, ref: dict[str, Any]) -> None:
        path, blob = ref["path"], ref["blob"]
        if path != f"blobs/{blob[:2]}/{blob}":
            self._order.tell(partial(self.fail_at, entry), f"puts blob {blob} at {path}")
            return
        if (blob, ref["size"]) in self._known:
            return
        self.looked += 1
        self._known.add((blob, ref["size"]))
        if self.run.withheld.has_blob(blob):
            return
        self.run.folder.look(path, blob, ref["size"], self._order, partial(self._told, path))

    def _told(self, path: str, fault: str | None) -> None:
        if fault is not None:
            self.fail_body(path, fault)

    def settle(self) -> None:
        self._order.finish()
