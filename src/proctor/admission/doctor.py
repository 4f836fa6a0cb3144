"""What this machine can do: read-only looks, each with what would add what is missing."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor import __version__
from proctor.admission.docker import docker_facts
from proctor.admission.worlds import sandbox_kind
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_probe
from proctor.evidence.keys import KEY_FILE, config_dir, load_or_create
from proctor.sandbox.base import Availability

# less than this, and a run of a few hundred trials may not fit
LITTLE_SPACE_BYTES = 2 * 2**30
# limits of a sandbox, and the control group controller that can hold each
_LIMITS = {"cpus": "cpu", "memory": "memory", "storage": None, "pids": "pids"}
# remedies that send people here
_TO_DOCTOR = (Reason.SANDBOX_UNAVAILABLE.remedy, Reason.SANDBOX_START_FAILED.remedy)
_ELSEWHERE = "Mend what is named here, or use another machine: Linux 5.11 or newer where user namespaces are allowed."


@dataclass(frozen=True)
class Look:
    """One thing: whether it is there (None: it need not be), what was seen, what would add it where it is missing."""

    name: str
    ok: bool | None
    seen: str
    remedy: str | None = None
    facts: Mapping[str, Any] | None = None

    def as_record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "ok": self.ok,
            "seen": self.seen,
            "remedy": self.remedy,
            "facts": dict(self.facts) if self.facts is not None else None,
        }


def look(runs: Path, environ: Mapping[str, str], deadline_sec: float) -> tuple[Look, ...]:
    """Look at everything. `runs` is where runs would go; a sandbox can be had iff the look `sandbox` is ok."""
    return (
        Look("python", True, f"{platform.python_version()} ({sys.executable})"),
        Look("proctor", True, f"{__version__} ({Path(__file__).resolve().parents[1]})"),
        *_sandbox(deadline_sec),
        _docker(environ, deadline_sec),
        _space(runs),
        _key(environ),
        _git(),
    )


def _sandbox(deadline_sec: float) -> list[Look]:
    try:
        found = sandbox_kind("namespace").probe(seal_probe(deadline_sec))
    except Refusal as refusal:
        return [_no_sandbox((refusal,), {})]
    facts = {"tier": found.tier.value, "notes": list(found.notes), **found.facts}
    if not found.available:
        return [_no_sandbox(found.refusals, facts)]
    # why a control group is missing stands with the limit that it would hold
    missing = (found.facts.get("groups_missing") or {}).values()
    notes = [note for note in found.notes if not any(why in note for why in missing)]
    said = "; ".join([f"namespace, {found.tier.value} tier", *dict.fromkeys(notes)])
    return [Look("sandbox", True, said, None, facts), *_limits(found), *_worlds(found)]


def _no_sandbox(refusals: Sequence[Refusal], facts: Mapping[str, Any]) -> Look:
    seen = "; ".join(dict.fromkeys(str(refusal) for refusal in refusals))
    remedies = (_ELSEWHERE if refusal.remedy in _TO_DOCTOR else refusal.remedy for refusal in refusals)
    records = [refusal.as_record() for refusal in refusals]
    return Look("sandbox", False, seen, " ".join(dict.fromkeys(remedies)), {**facts, "refusals": records})


def _limits(found: Availability) -> list[Look]:
    groups, missing = found.facts.get("groups") or {}, found.facts.get("groups_missing") or {}
    looks = []
    for name, controller in _LIMITS.items():
        if controller in groups:
            looks.append(Look(f"limit {name}", True, f"held by control groups ({groups[controller]})"))
        elif name in found.capabilities.limits:
            looks.append(Look(f"limit {name}", True, "held by proctor itself: a watcher, and limits of processes"))
        else:
            why = f"cannot be held: {missing.get(controller, 'no means for it here')}"
            fix = "Run as root, where the control groups of this machine can be written."
            looks.append(Look(f"limit {name}", None, why, fix))
    return looks


def _worlds(found: Availability) -> list[Look]:
    networks = ", ".join(sorted(network.value for network in found.capabilities.networks))
    several = found.capabilities.many_users
    overlay = bool(found.facts.get("overlay", True))
    return [
        Look("networks", True, networks),
        Look(
            "users",
            several or None,
            "several users inside" if several else "one user inside",
            None if several else "Run as root for tasks that need several users.",
        ),
        Look(
            "overlay",
            overlay or None,
            "worlds start on overlay mounts" if overlay else "worlds start on copies of the root, slowly",
            None if overlay else "Set TMPDIR, and PROCTOR_RUNS, to folders on ext4, xfs or tmpfs.",
        ),
    ]


def _docker(environ: Mapping[str, str], deadline_sec: float) -> Look:
    found = docker_facts(environ, seal_probe(deadline_sec))
    said = f"answers at {found.endpoint} ({found.named_by})" if found.endpoint else "does not answer"
    return Look("docker", None, f"{said}; not used in this version", None, found.as_record())


def _space(runs: Path) -> Look:
    there = next(folder for folder in (runs, *runs.parents) if folder.is_dir())
    usage = shutil.disk_usage(there)
    writable = os.access(there, os.W_OK | os.X_OK)
    facts = {"runs": str(runs), "free_bytes": usage.free, "writable": writable}
    seen = f"{usage.free / 2**30:.1f} GiB free for runs in {runs}" + ("" if writable else ", which may not be written")
    if usage.free >= LITTLE_SPACE_BYTES and writable:
        return Look("space", True, seen, None, facts)
    return Look("space", False, seen, "Set PROCTOR_RUNS to a folder with more space that you may write.", facts)


def _key(environ: Mapping[str, str]) -> Look:
    folder = config_dir(environ)
    path = folder / KEY_FILE
    facts = {"config_dir": str(folder)}
    if not path.exists():
        return Look("key", None, f"none yet; the first run makes {path}", "`proctor keys` makes it now.", facts)
    try:
        key, _ = load_or_create(folder)
    except Refusal as refusal:
        return Look("key", False, str(refusal), refusal.remedy, facts)
    return Look("key", True, f"{key.fingerprint} ({path})", None, {**facts, "fingerprint": key.fingerprint})


def _git() -> Look:
    found = shutil.which("git")
    if found is not None:
        return Look("git", True, found)
    return Look(
        "git",
        None,
        "not installed: runs cannot say which commit of a study they are of",
        "Install git, for example with `apt-get install git`.",
    )
