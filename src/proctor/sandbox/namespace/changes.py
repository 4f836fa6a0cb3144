"""What stands in a namespace world's uppers: one folder for each top folder of the host that it overlays."""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from proctor.sandbox.changes import Survey, Surveying
from proctor.sandbox.namespace import layers


@dataclass(frozen=True)
class Lowers:
    """What a world's uppers lie on: `captured` layers, lowest first, on `base`, on a given `root` or the host."""

    captured: tuple[Path, ...]
    base: Path
    root: Path | None

    def folder(self, top: str, inner: str) -> tuple[int, int, int] | None:
        """Mode, user and group of a folder as it shows through, or None where there is none."""
        for layer in (*reversed(self.captured), self.base):
            found = _owned(f"{layer}/{top}{inner}")
            if found is not None:
                return found
        if self.root is not None:
            return _owned(f"{self.root}{inner}")
        return _owned(f"/{top}{inner}") if top != "root" else None


def survey(upper: Path, lowers: Lowers, apart: Sequence[str]) -> Survey:
    """Look at all uppers of a world in `upper`, but for what is below one of `apart`. Raises OSError."""
    looking = Surveying(apart)
    for top in sorted(upper.iterdir()):
        at = "" if top.name == "root" else f"/{top.name}"
        looking.add(top, at, functools.partial(_shows_through, top, lowers))
        if not looking.whole:
            break
    return looking.result()


def _shows_through(top: Path, lowers: Lowers, inner: str, info: os.stat_result) -> bool:
    owned = (info.st_mode, info.st_uid, info.st_gid)
    return lowers.folder(top.name, inner) == owned and not layers.is_opaque(f"{top}{inner}")


def _owned(path: str) -> tuple[int, int, int] | None:
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return (info.st_mode, info.st_uid, info.st_gid) if stat.S_ISDIR(info.st_mode) else None
