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
    def upper(self) -> Path:
        """What the world writes: a folder for each mount."""
        return self.path / "u"

    @property
    def work(self) -> Path:
        """The kernel's work folders."""
        return self.path / "w"


def flatten(layers: Sequence[Path], into: Path) -> None:
    """Join layers, lowest first, into one new layer that shows the same. Whiteouts stay, for a base lies below.

    Files are linked and not copied: layers are never written again. Raises OSError.
    """
    into.mkdir(mode=0o755)
    for layer in layers:
        for top in sorted(layer.iterdir()):
            _join(str(top), f"{into}/{top.name}", keep_whiteouts=True)


def apply(layer: Path, onto: Path) -> None:
    """Copy one layer onto plain folders that nothing lies below: what it hides is removed there. Raises OSError."""
    for top in sorted(layer.iterdir()):
        _join(str(top), f"{onto}/{top.name}", keep_whiteouts=False)


def _join(source: str, target: str, *, keep_whiteouts: bool) -> None:
    pending = [(source, target)]
    while pending:
        upper, merged = pending.pop()
        info = os.lstat(upper)
        there = _lstat(merged)
        if not stat.S_ISDIR(info.st_mode):
            if there is not None:
                remove(Path(merged))
            if _is_whiteout(info):
                if keep_whiteouts:
                    os.mknod(merged, info.st_mode, info.st_rdev)
            elif keep_whiteouts:
                os.link(upper, merged, follow_symlinks=False)
            else:
                shutil.copy2(upper, merged, follow_symlinks=False)
                os.chown(merged, info.st_uid, info.st_gid, follow_symlinks=False)
            continue
        opaque = _is_opaque(upper)
        if there is not None and (opaque or not stat.S_ISDIR(there.st_mode)):
            hides = opaque or not stat.S_ISDIR(there.st_mode)
            remove(Path(merged))
            there = None
            opaque = hides
        if there is None:
            Path(merged).mkdir()
        os.chown(merged, info.st_uid, info.st_gid)
        shutil.copystat(upper, merged)
        if opaque and keep_whiteouts:
            os.setxattr(merged, "user.overlay.opaque", b"y")
        with os.scandir(upper) as entries:
            pending += [(entry.path, f"{merged}/{entry.name}") for entry in entries]


def _is_whiteout(info: os.stat_result) -> bool:
    return stat.S_ISCHR(info.st_mode) and info.st_rdev == 0


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


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None
