"""Layers on the host: where a world's files lie, joining many layers into one, and removing what agents built."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# The kernel takes 500 lower layers, its mount options 4,096 bytes; each more layer slows every lookup down.
MOST_LAYERS = 16
_OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")


@dataclass(frozen=True)
class Home:
    """The folder of one world: short names, for they stand in mount options."""

    path: Path

    @property
    def marker(self) -> Path:
        """Says whose it is."""
        return self.path / "marker.json"

    @property
    def base(self) -> Path:
        """The lowest layer of our own: what is shown around the host's /usr or on a given root."""
        return self.path / "s"

    @property
    def upper(self) -> Path:
        """What the world writes: a folder for each mount."""
        return self.path / "u"

    @property
    def work(self) -> Path:
        """The kernel's work folders."""
        return self.path / "w"

    @property
    def holder(self) -> Path:
        """The program of PID 1."""
        return self.path / "h"

    def mount_point(self, index: int) -> Path:
        """Where the layer `index` is bound before the start."""
        return self.path / "l" / str(index)


def flatten(layers: Sequence[Path], into: Path) -> None:
    """Join layers, lowest first, into one new layer that shows the same. Whiteouts stay, for a base lies below.

    Files are linked and not copied: layers are never written again. Raises OSError.
    """
    into.mkdir(mode=0o755)
    for layer in layers:
        for top in sorted(os.listdir(layer)):
            _join(f"{layer}/{top}", f"{into}/{top}")


def _join(source: str, target: str) -> None:
    pending = [(source, target)]
    while pending:
        upper, merged = pending.pop()
        info = os.lstat(upper)
        there = _lstat(merged)
        if not stat.S_ISDIR(info.st_mode):
            if there is not None:
                remove(Path(merged))
            os.link(upper, merged, follow_symlinks=False)
            continue
        opaque = _is_opaque(upper)
        if there is not None and (opaque or not stat.S_ISDIR(there.st_mode)):
            hides = opaque or not stat.S_ISDIR(there.st_mode)
            remove(Path(merged))
            there = None
            opaque = hides
        if there is None:
            os.mkdir(merged)
        os.chown(merged, info.st_uid, info.st_gid)
        os.chmod(merged, stat.S_IMODE(info.st_mode))
        shutil.copystat(upper, merged)
        if opaque:
            os.setxattr(merged, "user.overlay.opaque", b"y")
        pending += [(f"{upper}/{name}", f"{merged}/{name}") for name in os.listdir(upper)]


def _is_opaque(path: str) -> bool:
    for name in _OPAQUE:
        try:
            if os.getxattr(path, name, follow_symlinks=False) == b"y":
                return True
        except OSError:
            continue
    return False


def remove(path: Path) -> None:
    """Remove a file or a whole tree, whatever an agent made of it: any depth, any modes. Raises OSError.

    One folder is open at a time and no path gets longer than a name, so neither descriptors nor path lengths nor the
    stack limit the depth. Nobody else may write there meanwhile.
    """
    info = _lstat(str(path))
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
        os.chmod(name, 0o700)
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


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None
