"""Layers on the host: where a world's files lie, and joining many layers into one."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from proctor.sandbox.linux.tree import lstat, remove

# The kernel takes 500 lower layers, its mount options 4,096 bytes; each more layer slows every lookup down.
MOST_LAYERS = 16
_OPAQUE = ("user.overlay.opaque", "trusted.overlay.opaque")


class Files(StrEnum):
    """How a world has files of its own over those that it shares: the best that its scratch folder allows."""

    OVERLAY = "overlay"
    MEMORY = "overlay in memory"
    COPIED = "copied"


@dataclass(frozen=True)
class Home:
    """The folders of one world: `path` in its scratch folder, which tells whose it is, and `files` for its layers.

    Both are the same where the scratch folder takes layers.
    """

    path: Path
    files: Path

    @property
    def upper(self) -> Path:
        """What the world writes: a folder for each mount."""
        return self.files / "u"

    @property
    def work(self) -> Path:
        """The kernel's work folders."""
        return self.files / "w"

    def make(self) -> None:
        """Make both. Raises OSError."""
        self.path.mkdir(mode=0o700)
        if self.files != self.path:
            self.files.mkdir(mode=0o700)

    def remove(self) -> None:
        """Remove everything. Raises OSError."""
        remove(self.files)
        remove(self.path)


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
        there = lstat(merged)
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
        opaque = is_opaque(upper)
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


def is_opaque(path: str) -> bool:
    """Whether a folder of a layer hides all that lies below it."""
    for name in _OPAQUE:
        try:
            if os.getxattr(path, name, follow_symlinks=False) == b"y":
                return True
        except OSError:
            continue
    return False
