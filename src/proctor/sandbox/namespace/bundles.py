"""Folders of the host that a world sees read-only: no part of its layers, so captures and forks have none of them.

A bind mount tells inside where on its file system the folder lies. So each is the lower layer of a read-only overlay,
whose place in the mount table is the same neutral one that layers have.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from proctor.sandbox.base import Bundle
from proctor.sandbox.linux import tree
from proctor.sandbox.namespace.layers import is_opaque
from proctor.sandbox.rules import names_of

# Below a world's own folder: one folder for each bundle, and one that stays empty.
FOLDER = "b"
EMPTY = "e"


def make_folders(home: Path, bundles: Sequence[Bundle]) -> None:
    """Make the folders that bundles are bound on, in a world's own. Raises OSError."""
    for name in (EMPTY, *map(str, range(len(bundles)))):
        (home / FOLDER / name).mkdir(parents=True)


def make_point(target: str, uppers: Path, tops: Sequence[str], lowers: Sequence[Path]) -> None:
    """Make a folder in the uppers for each name of `target`, which looks as what it covers in `lowers`, highest first.

    A link that a former agent left on the way is covered by it: what mounts there would follow it out of the world.
    Where there are no lowers all files lie in the uppers, and a link is removed.

    Raises:
        OSError: the host's disk refuses.
    """
    parts = names_of(target)
    top = parts[0] if parts[0] in tops else "root"
    inner = parts if top == "root" else parts[1:]
    at = uppers / top
    for name, below in zip(inner, _shown([layer / top for layer in lowers], inner), strict=True):
        at /= name
        there = tree.lstat(str(at))
        if there is not None and not stat.S_ISDIR(there.st_mode):
            tree.remove(at)
            there = None
        if there is None:
            at.mkdir()
            at.chmod(stat.S_IMODE(below.st_mode) if below else 0o755)
            if below and os.geteuid() == 0:
                os.chown(at, below.st_uid, below.st_gid)


def _shown(layers: Sequence[Path], names: Sequence[str]) -> Iterator[os.stat_result | None]:
    """For each name on the way the folder that shows there, or None: what lies above may hide what lies below."""
    for name in names:
        deeper, first = [], None
        for layer in layers:
            info = tree.lstat(str(layer / name))
            if info is None:
                continue
            if not stat.S_ISDIR(info.st_mode):
                break
            deeper.append(layer / name)
            first = first or info
            if is_opaque(str(layer / name)):
                break
        layers = deeper
        yield first
