"""Base layers, made once for each process and kept in memory: what is shown around the host's /usr or over a root.

A base has some hundred files, and making those on a disk for every world took longer than all else together. It is a
function of the machine, the tier and what is hidden, so it is no part of captured worlds: a fork gets it anew.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

import proctor
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Tier
from proctor.sandbox.namespace import layers, marker, skeleton
from proctor.sandbox.namespace.launcher import holder, tree

PREFIX = "proctor-base-"
_MOST_BOUND = layers.MOST_LAYERS + 2


def places() -> list[Path]:
    """Where bases may lie, best first: in memory, else with other temporary files."""
    return [place for place in (Path("/dev/shm"), Path(tempfile.gettempdir())) if place.is_dir()]


def prune_bases() -> list[str]:
    """Remove bases of processes that were killed; the paths that were removed. Those of other users stay."""
    removed: list[str] = []
    for place in places():
        for folder in place.glob(f"{PREFIX}*"):
            try:
                if folder.lstat().st_uid == os.geteuid():
                    removed += marker.prune(folder)
            except FileNotFoundError:
                continue  # its process ended meanwhile, or another removes it too
    return removed


class Bases:
    """The bases of one process, and with them the empty folders that layers are bound on and the holder program."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[tuple[Tier, Path | None, tuple[Path, ...]], Path] = {}
        prune_bases()
        self.folder = _new_folder()
        weakref.finalize(self, tree.remove, self.folder)
        (self.folder / "x").mkdir()
        for index in range(_MOST_BOUND):
            (self.folder / "l" / str(index)).mkdir(parents=True)
        self.holder.write_bytes(holder.image())
        self.holder.chmod(0o755)

    @property
    def holder(self) -> Path:
        """The program of PID 1."""
        return self.folder / "h"

    def base(self, tier: Tier, root: Path | None, hidden: Sequence[Path]) -> Path:
        """The base layer of a world on `root`, or on the host's folders where that is None.

        Raises:
            Refusal: PATH_UNSAFE when a shown folder itself is to be hidden.
            OSError: the host's disk refuses.
        """
        key = (tier, root, tuple(sorted({*hidden, *_always_hidden()})))
        with self._lock:
            if key not in self._made:
                base = self.folder / f"b{len(self._made)}"
                try:
                    if root is None:
                        skeleton.build_on_host(base, tier, key[2])
                    else:
                        skeleton.build_on_root(base, root, tier, key[2])
                except (OSError, Refusal):
                    tree.remove(base)
                    raise
                self._made[key] = base
            return self._made[key]


def _new_folder() -> Path:
    """A folder that can hold what layers need: whiteouts and attributes. Raises Refusal (SANDBOX_UNAVAILABLE)."""
    faults = []
    for place in places():
        try:
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        except OSError as fault:
            faults.append(str(fault))
            continue
        try:
            skeleton.try_layer(folder)
            marker.write(folder, "base", ())
        except OSError as fault:
            faults.append(str(fault))
            tree.remove(folder)
            continue
        return folder
    raise Refusal(
        Reason.SANDBOX_UNAVAILABLE,
        "no folder takes base layers",
        observed=faults,
        required="whiteouts and user attributes in /dev/shm or the temporary folder",
    )


def _always_hidden() -> list[Path]:
    """/usr/src, and this program where it is installed below /usr."""
    own = [Path("/usr/src"), Path(proctor.__file__).resolve().parent]
    if sys.prefix != sys.base_prefix:
        own.append(Path(sys.prefix).resolve())
    return own
