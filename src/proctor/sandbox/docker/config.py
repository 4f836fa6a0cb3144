"""What the engine is asked to make, and whether it made that: decided here, without touching anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proctor.core.network import Network
from proctor.sandbox.base import Bundle, ImageFacts, LimitInForce, Limits, SandboxSpec
from proctor.sandbox.docker.keeper import SCRIPT
from proctor.sandbox.rules import DEFAULT_PIDS
from proctor.sandbox.seccomp_profile import profile

HOSTNAME = "sandbox"
# What root inside keeps: the powers over users and files of the sandbox that package managers and `su` need, and none
# over mounts, other processes, networks or the kernel.
CAPABILITIES = (
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
)
# the engine's own filter lets through sockets to the machine below, io_uring and clocks
_SECURITY = ("no-new-privileges", f"seccomp={profile()}")
_MODES = {Network.NONE: "none", Network.GATEWAY_ONLY: "none", Network.PUBLIC: "bridge"}
NETWORKS = frozenset(_MODES)


@dataclass(frozen=True)
class Wanted:
    """One container: from which image, with which labels; `volumes` are folders that begin empty, to be filled."""

    image: str
    spec: SandboxSpec
    facts: ImageFacts
    labels: Mapping[str, str]
    volumes: tuple[str, ...] = ()
    storage: bool = False

    @property
    def all_volumes(self) -> tuple[str, ...]:
        """Every folder whose files a commit leaves out: the image's, and those that a fork fills again."""
        return tuple(sorted({*self.facts.volumes, *self.volumes}))

    def request(self) -> dict[str, Any]:
        """The body of the engine's `containers/create`."""
        return {
            "Image": self.image,
            "Hostname": HOSTNAME,
            # the image's own user would keep the world; named only where there is one, for the engine looks names up
            # in tables that an agent may have replaced
            "User": "0" if self.facts.user else "",
            "WorkingDir": "/",
            "Entrypoint": ["sh", "-c", SCRIPT],
            "Cmd": [],
            "OpenStdin": True,
            "StdinOnce": True,
            "AttachStdin": True,
            "AttachStdout": True,
            "Tty": False,
            "Healthcheck": {"Test": ["NONE"]},
            "Labels": dict(self.labels),
            "HostConfig": self._host(),
        }

    def _host(self) -> dict[str, Any]:
        spec, limits = self.spec, self.spec.limits
        asked: dict[str, Any] = {
            "NetworkMode": _MODES[spec.network],
            "AutoRemove": True,
            "Init": False,
            "IpcMode": "private",
            "LogConfig": {"Type": "none"},
            "CapDrop": ["ALL"],
            "CapAdd": list(CAPABILITIES),
            "SecurityOpt": list(_SECURITY),
            "ShmSize": spec.tmp_bytes,
            "PidsLimit": limits.pids if limits.pids is not None else DEFAULT_PIDS,
            # 1 and not 0: the kernel then skips a core_pattern that pipes to a program of the host
            "Ulimits": [{"Name": "core", "Soft": 1, "Hard": 1}],
            "Mounts": [*map(_bind, spec.bundles), *map(_volume, self.volumes)],
        }
        if limits.memory_bytes is not None:
            # equal, so that there is no swap beside it
            asked |= {"Memory": limits.memory_bytes, "MemorySwap": limits.memory_bytes}
        if limits.cpus is not None:
            asked["NanoCpus"] = round(limits.cpus * 1e9)
        if self.storage and limits.storage_bytes is not None:
            asked["StorageOpt"] = {"size": str(limits.storage_bytes)}
        if spec.network is not Network.PUBLIC:
            # else the host's own servers are named inside
            asked |= {"Dns": ["127.0.0.1"], "DnsSearch": ["."]}
        return asked

    def differences(self, seen: Mapping[str, Any]) -> list[str]:
        """In what a container, as the engine describes it, is not what was asked for. Limits are told apart."""
        config, host = seen["Config"], seen["HostConfig"]
        asked = self._host()
        pairs = {
            "image": (self.image, seen["Image"]),
            "user": ("0" if self.facts.user else "", config["User"]),
            "network": (asked["NetworkMode"], host["NetworkMode"]),
            "privileged": (False, host["Privileged"]),
            "capabilities added": (set(CAPABILITIES), {_bare(name) for name in host["CapAdd"] or ()}),
            "capabilities dropped": ({"ALL"}, {_bare(name) for name in host["CapDrop"] or ()}),
            "security": (set(_SECURITY), set(host["SecurityOpt"] or ())),
            "process namespace": ("", host["PidMode"]),
            "users namespace": ("", host["UsernsMode"]),
            "devices": ([], host["Devices"] or []),
            "host folders": ([], host["Binds"] or []),
            "mounts": (self._mounts(), {(m["Type"], m["Destination"], bool(m["RW"])) for m in seen["Mounts"]}),
        }
        return [f"{name}: {_plain(got)} and not {_plain(want)}" for name, (want, got) in pairs.items() if want != got]

    def _mounts(self) -> set[tuple[str, str, bool]]:
        bundles = {("bind", bundle.target, False) for bundle in self.spec.bundles}
        return bundles | {("volume", path, True) for path in self.all_volumes}


def limits_in_force(
    wanted: Limits, seen: Mapping[str, Any], storage_why_not: str | None, watched: str | None = None
) -> tuple[LimitInForce, ...]:
    """One entry for each limit, from a container's `HostConfig` as the engine says it.

    `watched` is how storage is limited where the engine holds no limit.
    """
    cpus = seen["NanoCpus"] / 1e9 if seen.get("NanoCpus") else None
    size = (seen.get("StorageOpt") or {}).get("size")
    storage = int(size) if size else wanted.storage_bytes if watched is not None else None
    entries = []
    for name, asked, enforced, how, why_not in (
        ("cpus", wanted.cpus, cpus, "control group (cpu), by the engine", None),
        ("memory", wanted.memory_bytes, seen.get("Memory") or None, "control group (memory), by the engine", None),
        ("storage", wanted.storage_bytes, storage, watched or "a quota, by the engine", storage_why_not),
        ("pids", wanted.pids, seen.get("PidsLimit") or None, "control group (pids), by the engine", None),
    ):
        if enforced is not None:
            entries.append(LimitInForce(name, asked, enforced, how, None))
        else:
            why = "not asked for" if asked is None else why_not or "the engine does not hold it here"
            entries.append(LimitInForce(name, asked, None, None, why))
    return tuple(entries)


def _bind(bundle: Bundle) -> dict[str, Any]:
    return {
        "Type": "bind",
        "Source": str(bundle.source),
        "Target": bundle.target,
        "ReadOnly": True,
        "BindOptions": {"Propagation": "rprivate"},
    }


def _volume(path: str) -> dict[str, Any]:
    return {"Type": "volume", "Target": path, "VolumeOptions": {"NoCopy": True}}


def _bare(capability: str) -> str:
    return capability.removeprefix("CAP_")


def _plain(value: Any) -> str:
    return repr(sorted(value) if isinstance(value, set) else value)
