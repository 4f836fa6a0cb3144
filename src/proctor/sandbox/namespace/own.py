"""Folders of this process alone: removed with it, and found by `prune` where it was killed."""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path

from proctor.sandbox.linux import tree
from proctor.sandbox.namespace import marker

_PREFIX = "proctor-base-"


class OwnFolder:
    """A new folder below `place`, there until this object is garbage. Raises OSError."""

    def __init__(self, place: Path) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place.resolve()))
        weakref.finalize(self, tree.remove, self.path)
        marker.write(self.path, "base", ())


def places() -> list[Path]:
    """Where such folders may lie, best first: in memory, else with other temporary files."""
    named = ("/dev/shm", f"/run/user/{os.geteuid()}", tempfile.gettempdir(), "/var/tmp")
    return [place for place in map(Path, dict.fromkeys(named)) if place.is_dir()]


def prune_own() -> list[str]:
    """Remove folders of processes that were killed; the paths that were removed. Those of other users stay."""
    removed: list[str] = []
    for place in places():
        for folder in place.glob(f"{_PREFIX}*"):
            try:
                if folder.lstat().st_uid == os.geteuid():
                    removed += marker.prune(folder)
            except FileNotFoundError:
                continue  # its process ended meanwhile, or another removes it too
    return removed
