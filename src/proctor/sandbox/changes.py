"""What changed in a world since it was marked, told from what it wrote.

A verifier in a fork runs the programs and reads the tables that an agent may have replaced. What is written lies in the
uppers of layers, so looking costs what was written and not what the world shows.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.sandbox.linux import tree

# Where the field puts what is no part of a task's system.
_APART = ("/tmp", "/logs", "/tests", "/solution", "/agent", "/skills")
# What a verifier runs and reads first, first.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/root", "/var", "/")
MOST_KNOWN = 200_000
_MOST_COUNTED = 10_000
_MOST_PATHS = 5
_MOST_CHARS = 300
_WHITEOUT = 0


@dataclass(frozen=True)
class Survey:
    """What stands in a world's uppers: a fingerprint for each path inside.

    `merged` are folders that show what lies below them and are as they are there. `whole` is False where there is more.
    """

    prints: Mapping[str, int]
    folders: frozenset[str]
    merged: frozenset[str]
    whole: bool


@dataclass
class Surveying:
    """A look at all uppers of one world, but for what is below one of `apart`."""

    apart: Sequence[str]
    prints: dict[str, int] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    merged: set[str] = field(default_factory=set)
    whole: bool = True

    def __post_init__(self) -> None:
        self._left_out = {f"/{path.strip('/')}" for path in (*_APART, *self.apart)}

    def is_apart(self, path: str) -> bool:
        """Whether that path, or all of it that is no folder of the system, is left out."""
        return path in self._left_out or ("/" in self._left_out and _key(path) == "/")

    def add(self, upper: Path, at: str, shows_through: Callable[[str, os.stat_result], bool]) -> None:
        """Look at one upper that is mounted `at` (empty for the root). Raises OSError.

        `shows_through` says of a folder in it (by its path there) whether it stands there only because something in it
        was touched.
        """
        if at in self._left_out:
            return
        fd = os.open(upper, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for folder, name, info in tree.walk(fd, lambda folder: f"{at}{folder}" not in self._left_out):
                path = f"{at}{folder}/{name}"
                if self.is_apart(path):
                    continue
                if len(self.prints) >= MOST_KNOWN:
                    self.whole = False
                    return
                self.prints[path] = _print(info)
                if stat.S_ISDIR(info.st_mode):
                    self.folders.add(path)
                    if shows_through(f"{folder}/{name}", info):
                        self.merged.add(path)
        finally:
            os.close(fd)

    def result(self) -> Survey:
        """What was found."""
        return Survey(self.prints, frozenset(self.folders), frozenset(self.merged), self.whole)


def told(before: Survey | None, look: Callable[[], Survey]) -> dict[str, Any]:
    """What is no more as it was, as facts: `changed` counts files for each folder of the system, the rest under `/`.

    A folder counts where nothing in it does. `changed_at_least` says that there may be more. Where nothing can be
    told `changed` is None, and `changed_why_not` says why.
    """
    if before is None or not before.whole:
        why = "the world was not marked" if before is None else f"over {MOST_KNOWN:,} files were written before"
        return {"changed": None, "changed_why_not": why}
    now = look()
    paths = _changed(before, now)
    counts = Counter(map(_key, paths))
    first = sorted(paths, key=lambda path: (_SYSTEM.index(_key(path)), path))[:_MOST_PATHS]
    return {
        "changed": {key: min(counts[key], _MOST_COUNTED) for key in sorted(counts)},
        "changed_at_least": not now.whole or any(count > _MOST_COUNTED for count in counts.values()),
        "changed_paths": [_shown(path) for path in first],
    }


def _changed(before: Survey, now: Survey) -> set[str]:
    differ = {path for path, seen in now.prints.items() if before.prints.get(path) != seen}
    if now.whole:
        differ |= before.prints.keys() - now.prints.keys()
    folders = {path for path in differ if path in (now if path in now.prints else before).folders}
    found = differ - folders
    within = _ancestors(found)
    for path in sorted(folders, reverse=True):  # what lies in a folder comes before it
        if path not in within and (path in before.prints or path not in now.merged):
            found.add(path)
            within |= _ancestors([path])
    return found


def _ancestors(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        while (path := path.rpartition("/")[0]) and path not in found:
            found.add(path)
    return found


def _key(path: str) -> str:
    top = "/" + path.split("/", 2)[1]
    return top if top in _SYSTEM else "/"


def _print(info: os.stat_result) -> int:
    """A number that another content, mode or owner changes; nothing inside can set the time that is in it.

    A folder's leaves out its time, which what comes and goes in it changes.
    """
    if stat.S_ISCHR(info.st_mode) and info.st_rdev == 0:
        return _WHITEOUT  # all of a world's share one file
    if stat.S_ISDIR(info.st_mode):
        return hash((info.st_ino, info.st_mode, info.st_uid, info.st_gid))
    return hash((info.st_ino, info.st_ctime_ns, info.st_mode, info.st_size))


def _shown(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode("utf-8")[:_MOST_CHARS]
