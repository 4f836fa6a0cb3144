"""What engine answers here, and what it can do: found by asking it, without making anything."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.sandboxes import SandboxChoice
from proctor.sandbox.base import Availability, Capabilities, Tier
from proctor.sandbox.docker.config import NETWORKS
from proctor.sandbox.docker.endpoint import find
from proctor.sandbox.docker.engine import Engine, EngineError, Where, now, unavailable

KIND = SandboxChoice.DOCKER.value
# the oldest whose `stats` answers at once, which Docker 20.10 speaks
_API = (1, 41)
_QUOTAS = ("btrfs", "zfs", "devicemapper", "windowsfilter")


@dataclass(frozen=True)
class Found:
    """An engine that answers: `version` and `info` are what it says of itself."""

    where: Where
    named_by: str
    version: Mapping[str, Any]
    info: Mapping[str, Any]

    @property
    def local(self) -> bool:
        """Whether it runs on this machine: same name, same kernel."""
        same = (socket.gethostname(), platform.release()) == (self.info.get("Name"), self.info.get("KernelVersion"))
        return same and self.where.endpoint.startswith("unix://")

    @property
    def enterable(self) -> bool:
        """Whether the networks of its containers can be entered from here."""
        return self.local and os.geteuid() == 0

    @property
    def storage_why_not(self) -> str | None:
        """Why the engine cannot hold what a container writes to a size, or None."""
        driver = self.info.get("Driver")
        if driver in _QUOTAS:
            return None
        below = dict(self.info.get("DriverStatus") or ()).get("Backing Filesystem")
        if (
            driver == "overlay2"
            and below == "xfs"
            and self.local
            and _has_project_quotas(self.info.get("DockerRootDir"))
        ):
            return None
        return f"the engine's storage driver {driver} on {below} has no quotas"

    @property
    def storage_is_watched(self) -> bool:
        """Whether what a container wrote can be looked at from here, where the engine holds no limit."""
        return self.storage_why_not is not None and self.enterable and self.info.get("Driver") == "overlay2"

    @property
    def limits(self) -> frozenset[str]:
        """Names of the limits that it holds."""
        named = {"cpus": "CpuCfsQuota", "memory": "MemoryLimit", "pids": "PidsLimit"}
        held = {name for name, key in named.items() if self.info.get(key)}
        storage = self.storage_why_not is None or self.storage_is_watched
        return frozenset(held | ({"storage"} if storage else set()))

    def facts(self) -> dict[str, Any]:
        """For the record."""
        info = self.info
        return {
            "endpoint": self.where.endpoint,
            "named_by": self.named_by,
            "engine_version": self.version.get("Version"),
            "api": self.where.api,
            "platform": f"{self.version.get('Os')}/{self.version.get('Arch')}",
            "storage_driver": info.get("Driver"),
            "cgroup_version": info.get("CgroupVersion"),
            "security": sorted(str(option) for option in info.get("SecurityOptions") or ()),
            "local": self.local,
            "lacks": self._lacks(),
            "watched": {"storage": self.storage_why_not} if self.storage_is_watched else {},
        }

    def availability(self) -> Availability:
        """The same, as every kind says it."""
        capabilities = Capabilities(
            networks=NETWORKS,
            many_users=True,
            freeze=True,
            capture=True,
            builds_images=True,
            limits=self.limits,
            gateway=self.enterable,
        )
        return Availability(KIND, True, Tier.PRIVILEGED, capabilities, (), tuple(self._notes()), self.facts())

    def _lacks(self) -> dict[str, str]:
        """Why it has no gateway inside, and no limit of a name."""
        lacks = dict.fromkeys(sorted({"cpus", "memory", "pids"} - self.limits), "the engine's kernel lacks it")
        if self.storage_why_not is not None and not self.storage_is_watched:
            lacks["storage"] = self.storage_why_not
        if not self.enterable:
            why = "we are not root" if self.local else "the engine is not on this machine"
            lacks["gateway"] = f"{why}, so networks of containers cannot be entered"
        return lacks

    def _notes(self) -> list[str]:
        lacks = self._lacks()
        notes = [f"no gateway inside: {lacks.pop('gateway')}"] if "gateway" in lacks else []
        if self.storage_is_watched:
            notes.append(f"storage is limited by a watcher: {self.storage_why_not}")
        return [*notes, *(f"no limit on {name}: {why}" for name, why in lacks.items())]


def none(refusal: Refusal) -> Availability:
    """What can be had where no engine is."""
    nothing = Capabilities(
        networks=frozenset(),
        many_users=False,
        freeze=False,
        capture=False,
        builds_images=False,
        limits=frozenset(),
        gateway=False,
    )
    return Availability(KIND, False, Tier.ORDINARY, nothing, (refusal,), (), {})


def look(deadline_sec: float) -> Found:
    """Find the engine that is meant here, and ask it. Raises Refusal (DOCKER_UNAVAILABLE)."""
    found = find(os.environ, deadline_sec)
    if found.endpoint is None or found.named_by is None:
        raise Refusal(Reason.DOCKER_UNAVAILABLE, "no Docker engine answers", observed=dict(found.tried))
    try:
        version, info = now(_ask(found.endpoint, deadline_sec))
    except EngineError as fault:
        raise unavailable(fault) from fault
    newest, oldest = _numbers(version.get("ApiVersion")), _numbers(version.get("MinAPIVersion"))
    if newest < _API:
        raise Refusal(
            Reason.DOCKER_UNAVAILABLE,
            "the Docker engine is too old",
            observed=version.get("ApiVersion"),
            required=f"API {_API[0]}.{_API[1]} or newer",
        )
    if info.get("OSType") != "linux":
        raise Refusal(
            Reason.DOCKER_UNAVAILABLE, "the Docker engine's containers are not Linux", observed=info.get("OSType")
        )
    api = max(_API, oldest)
    return Found(Where(found.endpoint, f"{api[0]}.{api[1]}"), found.named_by, version, info)


async def _ask(endpoint: str, deadline_sec: float) -> tuple[dict[str, Any], dict[str, Any]]:
    async with Engine(Where(endpoint, None)) as engine:
        version = await engine.call("GET", "version", deadline_sec=deadline_sec)
        info = await engine.call("GET", "info", deadline_sec=deadline_sec)
    if not isinstance(version, dict) or not isinstance(info, dict):
        raise EngineError(None, f"what answers at {endpoint} is no Docker engine")
    return version, info


def _numbers(version: object) -> tuple[int, int]:
    major, _, minor = str(version or "0.0").partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else (0, 0)


def _has_project_quotas(root: object) -> bool:
    """Whether the engine's folder lies on a file system that is mounted with quotas for folders."""
    best: tuple[int, str] = (-1, "")
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    for line in lines:
        _, point, _, options, *_ = line.split(" ")
        if Path(str(root)).is_relative_to(point):
            best = max(best, (len(point), options))
    return bool({"prjquota", "pquota"} & set(best[1].split(",")))
