"""Removing what agents built: any depth, any modes."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def remove(path: Path) -> None:
    """Remove a file or a whole tree, whatever an agent made of it: any depth, any modes. Raises OSError.

    One folder is open at a time and no path gets longer than a name, so neither descriptors nor path lengths nor the
    stack limit the depth. Nobody else may write there meanwhile.
    """
    info = lstat(str(path))
    if info is None:
        return
    if not stat.S_ISDIR(info.st_mode):
        path.unlink()
        return
    fd = _enter(str(path), None)
    names: list[str] = []
    try:
        while True:
            deeper = _clear(fd)
            if deeper is not None:
                child = _enter(deeper, fd)
                os.close(fd)
                fd = child
                names.append(deeper)
            elif names:
                parent = os.open("..", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
                os.close(fd)
                fd = parent
                os.rmdir(names.pop(), dir_fd=fd)
            else:
                break
    finally:
        os.close(fd)
    path.rmdir()


def _enter(name: str, within: int | None) -> int:
    """Open a folder that may have been made unreadable."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    if within is None:
        Path(name).chmod(0o700)
    elif stat.S_IMODE(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode) & 0o700 != 0o700:
        os.chmod(name, 0o700, dir_fd=within)
    return os.open(name, flags, dir_fd=within)


def _clear(fd: int) -> str | None:
    """Remove all but folders; the name of one folder that is left, or None."""
    with os.scandir(fd) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                try:
                    os.rmdir(entry.name, dir_fd=fd)
                except OSError:
                    return entry.name
            else:
                os.unlink(entry.name, dir_fd=fd)
    return None


def lstat(path: str) -> os.stat_result | None:
    """What is at `path` itself, or None. Raises OSError."""
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None
