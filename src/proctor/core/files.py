"""Files that other people keep, read as what they are at that moment."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

# what a disk says that takes no more
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


def read_regular(where: Path, cap: int) -> bytes | None:
    """The bytes of a regular file, or None where it is none or has more than `cap`. Raises OSError.

    A pipe in its place cannot hang the reader.
    """
    fd = os.open(where, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        seen = os.fstat(fd)
        if not stat.S_ISREG(seen.st_mode) or seen.st_size > cap:
            return None
        with os.fdopen(fd, "rb", closefd=False) as file:
            data = file.read(cap + 1)
    finally:
        os.close(fd)
    return data if len(data) <= cap else None


def last_name(path: Path) -> str:
    """The name of what a path leads to; empty where links lead round in a circle, or the current folder is gone."""
    try:
        return path.resolve().name
    except (OSError, RuntimeError):
        return ""
