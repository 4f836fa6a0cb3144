"""Files that rows attach: each hashed once, and read again only as it was hashed."""

from __future__ import annotations

import hashlib
from pathlib import Path

from proctor.core.files import read_regular
from proctor.core.reasons import Reason
from proctor.tasks.question_row import Fault

MAX_ATTACHED_BYTES = 1 << 20


class Attachments:
    """The files below one question set's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._digests: dict[str, str] = {}

    def text(self, path: str) -> str:
        """The text of a file, at most `MAX_ATTACHED_BYTES`; its digest is kept from the first time on.

        Raises:
            Fault: QUESTION_INVALID (absent, outside of the folder, too large), NOT_IN_THIS_VERSION (no text),
                TASK_CHANGED (no longer what was hashed).
        """
        data = self._read(path)
        digest = hashlib.sha256(data).hexdigest()
        if self._digests.setdefault(path, digest) != digest:
            raise Fault(f"the file {path!r} changed", digest, self._digests[path], Reason.TASK_CHANGED)
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise Fault(
                f"the file {path!r} is no text, and this version attaches texts only",
                path,
                "a UTF-8 text",
                Reason.NOT_IN_THIS_VERSION,
            )
        return text

    def digest(self, path: str) -> str:
        """SHA-256 of a file whose text was read, hex. Raises KeyError."""
        return self._digests[path]

    def _read(self, path: str) -> bytes:
        try:
            where = (self._folder / path).resolve()
            if not where.is_relative_to(self._folder):
                raise Fault(f"the file {path!r} leads out of the question set's folder", path, "a file below it")
            data = read_regular(where, MAX_ATTACHED_BYTES)
        except (OSError, ValueError, RuntimeError) as error:
            if isinstance(error, Fault):
                raise
            why = error.strerror if isinstance(error, OSError) else error
            raise Fault(f"the file {path!r} cannot be read: {why}", path, "a file") from error
        if data is None:
            raise Fault(f"{path!r} is larger than a text can be, or no file", path, {"bytes": MAX_ATTACHED_BYTES})
        return data
