"""What a container wrote: from its upper folder where that can be read, else as the engine lists it.

The engine's own list compares every file of the image, and has neither content nor times: it costs a third of a second,
and cannot tell what was changed again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.sandbox.changes import MOST_KNOWN, Survey, Surveying
from proctor.sandbox.docker.engine import Engine
from proctor.sandbox.docker.paths import parents
from proctor.sandbox.linux import tree
from proctor.sandbox.namespace.layers import is_opaque

_LIST_SEC = 60.0
# A commit writes holes out as zeros: a sparse file of an agent, which takes no space itself, would fill the disk.
MOST_HOLES = 16 << 30


class Uppers:
    """The folders of a container's files on this machine: what it wrote, and what shows through."""

    def __init__(self, upper: Path, lowers: Sequence[Path]) -> None:
        self._upper, self._lowers = upper, lowers

    @classmethod
    def of(cls, seen: Mapping[str, Any]) -> Uppers | None:
        """Those that the engine names, where it is on this machine and we may read them."""
        data = (seen.get("GraphDriver") or {}).get("Data") or {}
        if "UpperDir" not in data or "LowerDir" not in data:
            return None
        upper = Path(data["UpperDir"])
        # layers' folders lie where nobody but root goes
        return cls(upper, [Path(part) for part in data["LowerDir"].split(":")]) if os.access(upper, os.R_OK) else None

    def survey(self, apart: Sequence[str]) -> Survey:
        """Look at all that was written, but for what is below one of `apart`. Raises OSError."""
        looking = Surveying(apart)
        looking.add(self._upper, "", self._shows_through)
        return looking.result()

    def holes_too_large(self) -> int | None:
        """Bytes that are in files and on no disk, where a commit must not write them out; else None. Raises OSError."""
        fd = os.open(self._upper, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            found = os.statvfs(self._upper)
            most = min(MOST_HOLES, found.f_bavail * found.f_frsize // 2)
            holes = 0
            for _, _, info in tree.walk(fd):
                if stat.S_ISREG(info.st_mode):
                    holes += max(0, info.st_size - info.st_blocks * 512) // info.st_nlink
            return holes if holes > most else None
        finally:
            os.close(fd)

    def _shows_through(self, path: str, info: os.stat_result) -> bool:
        for lower in self._lowers:
            try:
                below = os.lstat(f"{lower}{path}")
            except OSError:
                continue
            same = (below.st_mode, below.st_uid, below.st_gid) == (info.st_mode, info.st_uid, info.st_gid)
            return same and not is_opaque(f"{self._upper}{path}")
        return False


async def listed(engine: Engine, container: str, apart: Sequence[str]) -> Survey:
    """The same from the engine's list: what was changed before the mark and again after it is not told.

    Raises EngineError.
    """
    rows = await engine.call("GET", f"containers/{container}/changes", deadline_sec=_LIST_SEC) or []
    return told_by_list({row["Path"]: row["Kind"] for row in rows}, apart)


def told_by_list(paths: Mapping[str, int], apart: Sequence[str]) -> Survey:
    """A survey from paths and what became of each (0 changed, 1 added, 2 removed)."""
    looking = Surveying(apart)
    for path, kind in paths.items():
        if looking.is_apart(path) or any(looking.is_apart(parent) for parent in parents(path)):
            continue
        if len(looking.prints) >= MOST_KNOWN:
            looking.whole = False
            break
        looking.prints[path] = kind
    folders = {parent for path in looking.prints for parent in parents(path) if parent in looking.prints}
    return Survey(looking.prints, frozenset(folders), frozenset(folders), looking.whole)
