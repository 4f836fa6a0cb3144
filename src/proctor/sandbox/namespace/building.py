"""Preparing a world's folders before it starts: empty uppers over layers, or whole copies."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Bundle, Tier
from proctor.sandbox.namespace import bundles, layers, skeleton
from proctor.sandbox.namespace.command import Mount

_COPY_SEC = 1800


@dataclass(frozen=True)
class Plan:
    """A world to prepare: on `base`, over a given `root` or the host's folders, below `captured` layers."""

    home: layers.Home
    tier: Tier
    root: Path | None
    base: Path
    captured: tuple[Path, ...]
    files: layers.Files
    bundles: tuple[Bundle, ...] = ()

    @property
    def tops(self) -> tuple[str, ...]:
        """Names of the mounts; `root` is `/`."""
        return ("root",) if self.root else ("root", *skeleton.host_tops())

    @property
    def bound(self) -> tuple[Path, ...]:
        """Folders that are bound at `l/<index>` before the start."""
        if self.files is layers.Files.COPIED:
            return ()
        return (self.base, *self.captured, *([self.root] if self.root else []))

    def mounts(self, cover: str) -> list[Mount]:
        """The mounts for bwrap, where `bound` and the world's folder are found below `cover`."""
        if self.files is layers.Files.COPIED:
            return [Mount(top, _at(top), ()) for top in self.tops]
        found = []
        for top in self.tops:
            own = (self.base, *self.captured)
            lowers = [f"{cover}/l/{index}/{top}" for index, layer in enumerate(own) if (layer / top).is_dir()]
            if self.root:
                lowers.insert(0, f"{cover}/l/{len(own)}")
            elif top != "root":
                lowers.insert(0, f"/{top}")
            found.append(Mount(top, _at(top), tuple(lowers)))
        return found


def _at(top: str) -> str:
    return "/" if top == "root" else f"/{top}"


def prepare(plan: Plan) -> None:
    """Make the folders that the world writes to, in its home that exists already.

    Raises:
        Refusal: SANDBOX_START_FAILED when a copy fails.
        OSError: the host's disk refuses.
    """
    home = plan.home
    home.upper.mkdir()
    bundles.make_folders(home.files, plan.bundles)
    if plan.files is layers.Files.COPIED:
        _copy(plan, plan.tops)
        _place_bundles(plan, ())
        return
    home.work.mkdir()
    for top in plan.tops:
        (home.work / top).mkdir()
        # An upper's own folder is what is seen at the top of its mount: it takes the mode of what lies below.
        layer = next((layer for layer in reversed(plan.captured) if (layer / top).is_dir()), plan.base)
        (home.upper / top).mkdir()
        (home.upper / top).chmod((layer / top).stat().st_mode & 0o7777)
    _place_bundles(plan, (*reversed(plan.captured), plan.base))


def _place_bundles(plan: Plan, lowers: Sequence[Path]) -> None:
    for bundle in plan.bundles:
        bundles.make_point(bundle.target, plan.home.upper, plan.tops, lowers)


def _copy(plan: Plan, tops: Sequence[str]) -> None:
    """Fill the uppers with whole copies, where overlays cannot be had."""
    for top in tops:
        target = plan.home.upper / top
        target.mkdir()
        if plan.captured:
            _copy_tree(plan.captured[-1] / top, target, plan.tier)
        elif plan.root:
            _copy_tree(plan.root, target, plan.tier)
        elif top != "root":
            _copy_tree(Path("/") / top, target, plan.tier)
    if not plan.captured:
        layers.apply(plan.base, plan.home.upper)


def _copy_tree(source: Path, target: Path, tier: Tier) -> None:
    """Copy everything that can be read; an ordinary user cannot read all of the host's files, nor keep their owners."""
    command = ["cp", "-a", "--reflink=auto", f"{source}/.", str(target)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_COPY_SEC, check=False)
    if done.returncode != 0 and tier is Tier.PRIVILEGED:
        said = done.stderr[-500:].decode("utf-8", "replace")
        raise Refusal(Reason.SANDBOX_START_FAILED, "the root could not be copied", observed=said)
