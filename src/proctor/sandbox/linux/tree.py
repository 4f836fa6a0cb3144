"""Walking and removing what agents built: any depth, any modes."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

_PATH_MAX = 4096
_HOP = 1000  # characters: at most four bytes each


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


def walk(top: int, enter: Callable[[str], bool] = lambda folder: True) -> Iterator[tuple[str, str, os.stat_result]]:
    """Everything below the folder behind the descriptor `top`: its folder (`""` or `/a/b`), its name and what it is.

    Folders that `enter` does not want, that cannot be read or that go meanwhile are not looked into.
    """
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            fd = _open_folder(top, f".{folder}")
        except OSError:
            continue
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    try:
                        info = entry.stat(follow_symlinks=False)
                    except OSError:
                        continue
                    yield folder, entry.name, info
                    if stat.S_ISDIR(info.st_mode) and enter(f"{folder}/{entry.name}"):
                        pending.append(f"{folder}/{entry.name}")
        except OSError:
            continue
        finally:
            os.close(fd)


def _open_folder(top: int, path: str) -> int:
    """Open a folder below `top`, in several steps where the path is longer than one call takes."""
    fd = os.dup(top)
    while path:
        cut = len(path) if len(path.encode("utf-8", "surrogateescape")) < _PATH_MAX else path.rindex("/", 0, _HOP)
        try:
            deeper = os.open(path[:cut], os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
        finally:
            os.close(fd)
        fd, path = deeper, path[cut + 1 :]
    return fd


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
