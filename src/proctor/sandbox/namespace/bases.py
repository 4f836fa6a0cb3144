"""Base layers, made once for each process and kept in memory: what is shown around the host's /usr or over a root.

A base has some hundred files, and making those on a disk for every world took longer than all else together. It is a
function of the machine, the tier and what is hidden, so it is no part of captured worlds: a fork gets it anew.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import proctor
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Tier
from proctor.sandbox.linux import tree
from proctor.sandbox.namespace import layers, skeleton
from proctor.sandbox.namespace.launcher import holder
from proctor.sandbox.namespace.own import OwnFolder, places

_MOST_BOUND = layers.MOST_LAYERS + 2


class Bases:
    """The bases of one process, and with them the empty folders that layers are bound on and the holder program.

    They lie in `folder`, an empty one, which `own` may be.

    Raises:
        OSError: `folder` does not take what they need.
    """

    def __init__(self, folder: Path, own: OwnFolder | None = None) -> None:
        check_place(folder)
        self._lock = threading.Lock()
        self._made: dict[tuple[Tier, Path | None, tuple[Path, ...]], Path] = {}
        self.folder = folder
        self._own = own  # removed with this object
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


def check_place(folder: Path) -> None:
    """Whether `folder` takes bases: whiteouts, attributes, and a program that may run there. Raises OSError."""
    skeleton.try_layer(folder)
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        raise PermissionError(f"programs may not run in {folder}")


def in_a_folder() -> Bases | list[str]:
    """Bases in the best folder of this machine that takes them, or what each of them lacks."""
    faults = []
    for place in places():
        try:
            own = OwnFolder(place)
            return Bases(own.path, own)
        except OSError as fault:
            faults.append(f"{place}: {fault.strerror or fault}")
    return faults


def _always_hidden() -> list[Path]:
    """/usr/src, and this program where it is installed below /usr."""
    own = [Path("/usr/src"), Path(proctor.__file__).resolve().parent]
    if sys.prefix != sys.base_prefix:
        own.append(Path(sys.prefix).resolve())
    return own
