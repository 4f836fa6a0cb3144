"""The files of an attempt's folder, as its `attempt.files` entries name them: digested, durable, so many an entry."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from proctor.core.canonical import encode
from proctor.evidence.disk import Disk, is_regular, open_regular

# an entry holds at most 65,535 bytes, and a path at most 4,096 characters that may each take six when escaped
_FILES_PER_ENTRY = 100
_BYTES_PER_ENTRY = 48_000


def digested(folder: Path, named: Collection[str]) -> list[dict[str, Any]]:
    """`{path, sha256, size}` of every regular file below `folder` that is not in `named`, once it is on the disk.

    Links and special files are never opened, and a name that is no UTF-8 is none that an entry could hold.
    Raises OSError.
    """
    found: list[dict[str, Any]] = []
    for here, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(here, name)
            relative = path.relative_to(folder).as_posix()
            if relative not in named and is_regular(path) and _is_text(relative):
                digest, size = digest_of(path)
                found.append({"path": relative, "sha256": digest, "size": size})
        Disk().sync_dir(Path(here))
    return found


def digest_of(path: Path) -> tuple[str, int]:
    """SHA-256 (hex) and size of a file, once its content is on the disk. Raises OSError."""
    with open_regular(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
        return digest, file.tell()


def in_entries(files: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The files in groups that an entry has room for, in order."""
    group: list[dict[str, Any]] = []
    used = 0
    for file in files:
        needed = len(encode(file))
        if group and (len(group) == _FILES_PER_ENTRY or used + needed > _BYTES_PER_ENTRY):
            yield group
            group, used = [], 0
        group.append(file)
        used += needed
    if group:
        yield group


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
