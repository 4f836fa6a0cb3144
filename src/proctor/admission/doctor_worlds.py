"""What worlds this machine can have: each kind of sandbox by its own probe, and what either tier can do with it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from proctor.admission.worlds import KINDS, sandbox_kind
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.sandboxes import SandboxChoice
from proctor.core.tokens import seal_probe
from proctor.sandbox.base import Availability, Capabilities, Tier
from proctor.sandbox.namespace.limits import holdable
from proctor.sandbox.namespace.probe import settings_to_change

# limits of a sandbox, and the control group controller that can hold each
_LIMITS = {"cpus": "cpu", "memory": "memory", "storage": None, "pids": "pids"}
# remedies that send people here
_TO_DOCTOR = (Reason.SANDBOX_UNAVAILABLE.remedy, Reason.SANDBOX_START_FAILED.remedy)
_ELSEWHERE = "Mend what is named here, or use another machine: Linux 5.11 or newer where user namespaces are allowed."
_ADD_DOCKER = (
    "Install Docker Engine 20.10 or newer and start it, for example with `apt-get install docker.io`; or set"
    " DOCKER_HOST to an engine that runs elsewhere."
)
_JOIN = "Join the group of the engine's socket, for example with `sudo usermod -aG docker $USER`, and log in again."
_ADD_ROOT = "Run proctor as root: `sudo proctor doctor` says what that adds here."
_FILES = {
    "overlay": "worlds start on overlay mounts",
    "memory": "worlds start on overlay mounts in memory",
    "copied": "worlds start on copies of the root, slowly",
}
_NOTHING = Capabilities(
    networks=frozenset(), many_users=False, freeze=False, capture=False, builds_images=False, limits=frozenset()
)
# an ordinary user on a machine where we are root: the number that no file belongs to
_NOBODY = 65_534
_TRY_SEC = 5.0


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
        return {**asdict(self), "facts": dict(self.facts) if self.facts is not None else None}


def look_at_worlds(deadline_sec: float) -> list[Look]:
    """Whether a sandbox can be had at all, what each kind can do and cannot, and what the other tier could."""
    found = {name: _probe(name, deadline_sec) for name in KINDS}
    there = [each for each in found.values() if each.available]
    if there:
        said = ", ".join(f"{each.kind} ({each.tier.value} tier)" for each in there)
        whole = Look("sandbox", True, said)
    else:
        remedies = dict.fromkeys(_remedy(refusal, each.kind) for each in found.values() for refusal in each.refusals)
        whole = Look("sandbox", False, "none of any kind can be started", " Or: ".join(remedies))
    looks = [look for each in found.values() for look in _kind(each)]
    return [whole, *looks, _other_tier(found)]


def _probe(name: str, deadline_sec: float) -> Availability:
    kind = sandbox_kind(name)
    try:
        return kind.probe(seal_probe(deadline_sec))
    except Refusal as refusal:
        return Availability(name, False, Tier.ORDINARY, _NOTHING, (refusal,))


def _kind(found: Availability) -> list[Look]:
    facts = {"tier": found.tier.value, "notes": list(found.notes), **found.facts}
    if not found.available:
        records = [refusal.as_record() for refusal in found.refusals]
        seen = "; ".join(dict.fromkeys(_said(refusal) for refusal in found.refusals))
        remedy = " ".join(dict.fromkeys(_remedy(refusal, found.kind) for refusal in found.refusals))
        return [Look(found.kind, None, seen, remedy, {**facts, "refusals": records})]
    looks = [*_limits(found), *_able(found)]
    # why a limit or a network is missing stands with it
    notes = [note for note in dict.fromkeys(found.notes) if not any(_why(note) in look.seen for look in looks)]
    seen = "; ".join([f"{found.tier.value} tier", *_about(found), *notes])
    return [Look(found.kind, True, seen, None, facts), *looks]


def _about(found: Availability) -> list[str]:
    facts = found.facts
    about = [f"engine {facts['engine_version']}, API {facts['api']}"] if facts.get("engine_version") else []
    if facts.get("endpoint"):
        about.append(f"at {facts['endpoint']} ({facts['named_by']})")
    if facts.get("storage_driver"):
        about.append(f"{facts['storage_driver']}, control groups v{facts['cgroup_version']}, {facts['platform']}")
    if facts.get("bwrap_version"):
        about.append(f"bwrap {facts['bwrap_version']}")
    return about


def _limits(found: Availability) -> list[Look]:
    """What is held, in one look, and one for each that is not."""
    groups, missing = found.facts.get("groups") or {}, found.facts.get("groups_missing") or {}
    lacks, watched = found.facts.get("lacks") or {}, found.facts.get("watched") or {}
    held: dict[str, list[str]] = {}
    looks = []
    for name, controller in _LIMITS.items():
        if name not in found.capabilities.limits and controller not in groups:
            why = missing.get(controller) or lacks.get(name) or "no means for it here"
            looks.append(Look(f"{found.kind} {name}", None, f"no limit can be held: {why}", _add_limit(found.kind)))
        elif name in watched:
            held.setdefault("a watcher of proctor's", []).append(name)
        elif found.kind != SandboxChoice.NAMESPACE:
            held.setdefault("the engine", []).append(name)
        elif controller in groups:
            held.setdefault(f"control groups {groups[controller]}", []).append(name)
        else:
            held.setdefault("proctor itself: a watcher, and limits of processes", []).append(name)
    said = "; ".join(f"{', '.join(names)} (held by {by})" for by, names in held.items())
    return [Look(f"{found.kind} limits", bool(held) or None, said or "none"), *looks]


def _add_limit(kind: str) -> str:
    if kind == SandboxChoice.DOCKER:
        return (
            "Give the engine a data folder on xfs that is mounted with `pquota`, or use the namespace sandbox for it."
        )
    return "Run as root, where the control groups of this machine can be written."


def _able(found: Availability) -> list[Look]:
    able = found.capabilities
    networks = ", ".join(sorted(network.value for network in able.networks)) or "none"
    fix = None
    if not able.gateway:
        why = (found.facts.get("lacks") or {}).get("gateway")
        networks += "; no gateway in them" + (f": {why}" if why else "")
        fix = "Run as root, with an engine on this machine: agents inside that call a model need it."
    looks = [Look(f"{found.kind} networks", None if fix else True, networks, fix)]
    if not able.many_users:
        fix = "Run as root for tasks that need several users."
        looks.append(Look(f"{found.kind} users", None, "one user inside", fix))
    else:
        looks.append(Look(f"{found.kind} users", True, "several users inside"))
    files = found.facts.get("files")
    if files is not None:
        fix = "Set TMPDIR, and PROCTOR_RUNS, to folders on ext4, xfs or tmpfs." if files != "overlay" else None
        looks.append(Look(f"{found.kind} files", True if fix is None else None, _FILES[files], fix))
    images = "made from images, and built" if able.builds_images else "made from the host's /usr or a root folder"
    looks.append(Look(f"{found.kind} images", True, f"worlds are {images}"))
    return looks


def _other_tier(found: Mapping[str, Availability]) -> Look:
    """What the other tier has: tried where that needs no more than a process, told where it does."""
    held = holdable(frozenset())
    if os.geteuid() != 0:
        more = ", ".join(sorted(holdable(frozenset({"cpu"})) - held))
        return Look("as root", None, f"limits on {more}, several users, a gateway inside on docker", _ADD_ROOT)
    may, fix = _may_make_namespaces(), None
    if may is None:
        namespace = "whether it can make user namespaces was not tried: there is no unshare"
    elif may:
        namespace = f"namespace worlds with one user inside, limits on {', '.join(sorted(held))}, every network"
    else:
        namespace = "no namespace worlds: user namespaces are for root alone here"
        settings = settings_to_change()
        fix = (
            f"As root: sysctl -w {' '.join(settings)}."
            if settings
            else "In a container: start it with unshare allowed."
        )
    docker = found[SandboxChoice.DOCKER].available
    engine = "; docker without a gateway inside, where the user may use the engine's socket" if docker else ""
    return Look("as an ordinary user", may or None, namespace + engine, fix, {"user_namespaces": may})


def _may_make_namespaces() -> bool | None:
    program = shutil.which("unshare")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "--user", "--map-root-user", "--mount", "true"],
            user=_NOBODY,
            group=_NOBODY,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            timeout=_TRY_SEC,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.returncode == 0


def _said(refusal: Refusal) -> str:
    tried = refusal.observed
    if refusal.reason is Reason.DOCKER_UNAVAILABLE and isinstance(tried, Mapping):
        # by endpoint
        return f"{refusal}: {'; '.join(f'{endpoint}: {why}' for endpoint, why in tried.items())}"
    return str(refusal)


def _remedy(refusal: Refusal, kind: str) -> str:
    if kind == SandboxChoice.DOCKER:
        return _JOIN if _has_closed_socket(refusal) else _ADD_DOCKER
    return _ELSEWHERE if refusal.remedy in _TO_DOCTOR else refusal.remedy


def _has_closed_socket(refusal: Refusal) -> bool:
    """Whether there is an engine's socket that this user may not use."""
    tried = refusal.observed if isinstance(refusal.observed, Mapping) else {}
    paths = [Path(str(endpoint).removeprefix("unix://")) for endpoint in tried]
    return any(path.is_socket() and not os.access(path, os.W_OK) for path in paths)


def _why(note: str) -> str:
    """A note without what it is about: each limit and network says that itself."""
    return note.partition(": ")[2] or note
