"""What changed in a container since it was marked: from its upper folder where that can be read, else as it is told.

The engine's own list compares every file of the image, and has neither content nor times: it costs a third of a second,
and cannot tell what was changed again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.sandbox.docker.engine import Engine, EngineError
from proctor.sandbox.namespace.changes import Survey
from proctor.sandbox.namespace.launcher import tree
from proctor.sandbox.namespace.layers import is_opaque

# Where the field puts what is no part of a task's system.
_APART = ("/tmp", "/logs", "/tests", "/solution", "/agent", "/skills")
_MOST_KNOWN = 200_000
_LIST_SEC = 60.0


class Uppers:
    """The folders of a container's files on this machine: what it wrote, and what shows through."""

    def __init__(self, upper: Path, lowers: Sequence[Path]) -> None:
        self.upper, self.lowers = upper, lowers

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
        left_out = {f"/{path.strip('/')}" for path in (*_APART, *apart)}
        prints: dict[str, int] = {}
        folders: set[str] = set()
        merged: set[str] = set()
        fd = os.open(self.upper, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for folder, name, info in tree.walk(fd, lambda folder: folder not in left_out):
                path = f"{folder}/{name}"
                if path in left_out:
                    continue
                if len(prints) >= _MOST_KNOWN:
                    return Survey(prints, frozenset(folders), frozenset(merged), whole=False)
                prints[path] = _print(info)
                if stat.S_ISDIR(info.st_mode):
                    folders.add(path)
                    if self._shows_through(path, info):
                        merged.add(path)
        finally:
            os.close(fd)
        return Survey(prints, frozenset(folders), frozenset(merged), whole=True)

    def _shows_through(self, path: str, info: os.stat_result) -> bool:
        """Whether a folder stands in the upper only because something in it was touched."""
        for lower in self.lowers:
            try:
                below = os.lstat(f"{lower}{path}")
            except OSError:
                continue
            same = (below.st_mode, below.st_uid, below.st_gid) == (info.st_mode, info.st_uid, info.st_gid)
            return same and not is_opaque(f"{self.upper}{path}")
        return False


async def listed(engine: Engine, container: str, apart: Sequence[str]) -> Survey:
    """The same from the engine's list: what was there at the mark and is changed again is not told.

    Raises EngineError.
    """
    left_out = tuple(f"/{path.strip('/')}" for path in (*_APART, *apart))
    rows = await engine.call("GET", f"containers/{container}/changes", deadline_sec=_LIST_SEC) or []
    if len(rows) > _MOST_KNOWN:
        raise EngineError(None, f"over {_MOST_KNOWN:,} files were written")
    paths = {row["Path"]: row["Kind"] for row in rows}
    wanted = {
        path: kind for path, kind in paths.items() if not any(path == f or path.startswith(f"{f}/") for f in left_out)
    }
    folders = {parent for path in paths for parent in _above(path) if parent in wanted}
    return Survey(wanted, frozenset(folders), frozenset(folders), whole=True)


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(2, len(parts))]


def _print(info: os.stat_result) -> int:
    """A number that another content, mode or owner changes; nothing inside can set the time that is in it."""
    if stat.S_ISCHR(info.st_mode) and info.st_rdev == 0:
        return 0  # what was removed
    if stat.S_ISDIR(info.st_mode):
        return hash((info.st_ino, info.st_mode, info.st_uid, info.st_gid))
    return hash((info.st_ino, info.st_ctime_ns, info.st_mode, info.st_size))
