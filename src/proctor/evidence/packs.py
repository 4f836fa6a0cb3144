"""Blobs: small ones are frames of a pack, large ones files of their own; an entry holds the reference."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.core.canonical import MAX_SAFE_INTEGER
from proctor.evidence.disk import Appender
from proctor.evidence.runfolder import RunFolder

MAX_PACK_BYTES = 256 * 1024 * 1024
MAX_FRAME_CONTENT = 1024 * 1024
REMEMBERED = 4096
# of a reference in canonical JSON
MAX_REF_BYTES = 276

_PACK_NAME = re.compile(r"[0-9]{4,9}\.pack", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FRAME_FIELDS = frozenset({"blob", "size", "pack", "offset", "length", "encoding", "stored_sha256"})
_FILE_FIELDS = frozenset({"blob", "size", "path"})
_ENCODINGS = ("raw", "gzip")


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob reference: SHA-256 (hex) and size of the content, and where it is: a frame of a pack, or a file.

    Of a frame, `stored_sha256` is the SHA-256 (hex) of its bytes as they stand: gzip has more than one for a content.
    """

    blob: str
    size: int
    pack: str | None = None
    offset: int = 0
    length: int = 0
    encoding: str = "raw"
    stored_sha256: str = ""

    @property
    def path(self) -> str:
        """The file that holds it, relative to the run folder."""
        return f"packs/{self.pack}" if self.pack is not None else f"blobs/{self.blob[:2]}/{self.blob}"

    def as_record(self) -> dict[str, Any]:
        """The reference as it stands in an entry, in at most `MAX_REF_BYTES`."""
        if self.pack is None:
            return {"blob": self.blob, "size": self.size, "path": self.path}
        return {
            "blob": self.blob,
            "size": self.size,
            "pack": self.pack,
            "offset": self.offset,
            "length": self.length,
            "encoding": self.encoding,
            "stored_sha256": self.stored_sha256,
        }

    @classmethod
    def parse(cls, value: Any) -> Blob | None:
        """The reference in an entry, or None where it is none."""
        if not isinstance(value, dict) or not _is_digest(value.get("blob")) or not _is_count(value.get("size")):
            return None
        if value.keys() == _FILE_FIELDS:
            blob = cls(value["blob"], value["size"])
            return blob if value["path"] == blob.path else None
        if value.keys() != _FRAME_FIELDS or not _is_count(value["offset"]) or not _is_count(value["length"]):
            return None
        pack, encoding, stored = value["pack"], value["encoding"], value["stored_sha256"]
        if type(pack) is not str or not _PACK_NAME.fullmatch(pack) or encoding not in _ENCODINGS:
            return None
        if not _is_digest(stored):
            return None
        return cls(value["blob"], value["size"], pack, value["offset"], value["length"], encoding, stored)


@dataclass(frozen=True, slots=True)
class Spooled:
    """A content of more than `MAX_FRAME_CONTENT` bytes that lies, durably, in a draft of its blob's file."""

    draft: Path
    sha256: str
    size: int


Content = bytes | Spooled


@dataclass(slots=True)
class Staged:
    """Where the blobs of one entry would go. Nothing has happened to them yet."""

    number: int
    offset: int
    refs: dict[str, Blob] = field(default_factory=dict)
    frames: list[tuple[int, bytes]] = field(default_factory=list)
    files: list[tuple[Blob, Content]] = field(default_factory=list)
    spare: list[Path] = field(default_factory=list)


class Packs:
    """The end of the packs, where frames are appended; for one thread."""

    def __init__(self, run: RunFolder, number: int, offset: int) -> None:
        """Args: the last pack's number (0 where there is none) and size."""
        self._run = run
        self._number = number
        self._offset = offset
        self._open: Appender | None = None
        self._open_number = 0
        self._frames: list[tuple[int, bytes]] = []
        self._files: list[tuple[Blob, Content]] = []
        self._spare: list[Path] = []
        self._known: OrderedDict[str, Blob] = OrderedDict()

    def stage(self, blobs: Mapping[str, Content]) -> Staged:
        """Decide where the blobs of an entry go, by field, in the order of the fields' names."""
        staged = Staged(self._number, self._offset)
        for name in sorted(blobs):
            content = blobs[name]
            digest = content.sha256 if isinstance(content, Spooled) else hashlib.sha256(content).hexdigest()
            own = (ref for ref in staged.refs.values() if ref.blob == digest)
            known = self._known.get(digest) or next(own, None)
            staged.refs[name] = known or _place(staged, digest, content)
            if known is not None and isinstance(content, Spooled):
                staged.spare.append(content.draft)
        return staged

    def take(self, staged: Staged) -> None:
        """The entry that names them comes next: have them written by the next `flush`."""
        self._number, self._offset = staged.number, staged.offset
        self._frames += staged.frames
        self._files += staged.files
        self._spare += staged.spare
        for ref in staged.refs.values():
            self._known[ref.blob] = ref
            self._known.move_to_end(ref.blob)
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def flush(self) -> None:
        """Return once everything taken is durable, names included. Raises OSError."""
        disk = self._run.disk
        for blob, content in self._files:
            target = self._run.path / blob.path
            disk.make_dirs(target.parent)
            if isinstance(content, Spooled):
                disk.rename(content.draft, target)
                disk.sync_dir(target.parent)
            else:
                disk.put(target, content)
        self._files.clear()
        while self._spare:
            disk.unlink(self._spare.pop())
        while self._frames:
            number = self._frames[0][0]
            own = [frame for of, frame in self._frames if of == number]
            pack = self._pack(number)
            pack.append(b"".join(own))
            pack.sync()
            del self._frames[: len(own)]

    def close(self) -> None:
        """Close the open pack."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _pack(self, number: int) -> Appender:
        if self._open is None or self._open_number != number:
            self.close()
            path = self._run.packs / f"{number:04d}.pack"
            new = not path.exists()
            self._open, self._open_number = self._run.disk.open_append(path, new=new), number
            if new:
                self._run.disk.sync_dir(self._run.packs)
        return self._open


def _place(staged: Staged, digest: str, content: Content) -> Blob:
    size = content.size if isinstance(content, Spooled) else len(content)
    if isinstance(content, Spooled) or size > MAX_FRAME_CONTENT:
        blob = Blob(digest, size)
        staged.files.append((blob, content))
        return blob
    packed = gzip.compress(content, compresslevel=6, mtime=0)
    frame, encoding = (packed, "gzip") if len(packed) < len(content) else (content, "raw")
    if staged.number == 0 or staged.offset + len(frame) > MAX_PACK_BYTES:
        staged.number, staged.offset = staged.number + 1, 0
    stored = digest if encoding == "raw" else hashlib.sha256(frame).hexdigest()
    blob = Blob(digest, len(content), f"{staged.number:04d}.pack", staged.offset, len(frame), encoding, stored)
    staged.frames.append((staged.number, frame))
    staged.offset += len(frame)
    return blob


def _is_digest(value: Any) -> bool:
    return type(value) is str and _DIGEST.fullmatch(value) is not None


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_SAFE_INTEGER
