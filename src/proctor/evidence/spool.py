"""A large content on its way into a blob: written to a draft piece by piece, so that it never stands in memory."""

from __future__ import annotations

import hashlib
import secrets

from proctor.evidence.disk import Appender
from proctor.evidence.packs import MAX_FRAME_CONTENT, Content, Spooled
from proctor.evidence.runfolder import RunFolder

# of the folders below `blobs`, where drafts are looked for when a run is taken up
_FOLDER = "00"


class Spool:
    """One content. All methods block, and raise OSError; one that is neither finished nor discarded is left behind."""

    def __init__(self, run: RunFolder) -> None:
        self._disk = run.disk
        self._draft = run.blobs / _FOLDER / f".{secrets.token_hex(16)}"
        self._digest = hashlib.sha256()
        self._file: Appender | None = None

    @property
    def size(self) -> int:
        """Bytes so far."""
        return 0 if self._file is None else self._file.size

    def write(self, data: bytes) -> None:
        """Append."""
        if self._file is None:
            self._disk.make_dirs(self._draft.parent)
            self._file = self._disk.open_append(self._draft, new=True)
        self._digest.update(data)
        self._file.append(data)

    def finish(self) -> Content:
        """What was written, durably, for an entry; the bytes themselves where they are few enough for a frame."""
        if self._file is None:
            return b""
        if self.size <= MAX_FRAME_CONTENT:
            content = self._draft.read_bytes()
            self.discard()
            return content
        self._file.sync()
        self._file.close()
        return Spooled(self._draft, self._digest.hexdigest(), self.size)

    def discard(self) -> None:
        """Remove it."""
        if self._file is not None:
            self._file.close()
            self._disk.unlink(self._draft)
            self._file = None
