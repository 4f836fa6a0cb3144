"""The words given to bwrap, from a frozen description of the world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from proctor.sandbox.namespace.bundles import EMPTY, FOLDER
from proctor.sandbox.namespace.launcher.world import INFO_FD

HOSTNAME = "sandbox"
# Files of the kernel that tell of the host or act on it, and that an id mapped to the host's root could open.
_MASKED_FILES = (
    "/proc/cmdline",
    "/proc/iomem",
    "/proc/ioports",
    "/proc/kcore",
    "/proc/key-users",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/latency_stats",
    "/proc/pagetypeinfo",
    "/proc/sched_debug",
    "/proc/slabinfo",
    "/proc/sysrq-trigger",
    "/proc/timer_list",
    "/proc/vmallocinfo",
)
# Our root is the host's root to these, and bwrap covers only what it finds writable itself.
_READ_ONLY = ("/proc/sys", "/proc/pressure")
_MASKED_FOLDERS = ("/proc/acpi", "/proc/asound", "/proc/scsi", "/proc/driver", "/proc/fs")


@dataclass(frozen=True)
class Mount:
    """One top folder of the world: overlay of `lowers` (lowest first), or a writable copy where `lowers` is empty."""

    name: str
    at: str
    lowers: tuple[str, ...]


def words(
    mounts: Sequence[Mount], *, base: str, share_net: bool, shm_bytes: int, bundles: Sequence[str] = ()
) -> list[str]:
    """All options of bwrap. The world's folder lies at `base/x`, and in it what is seen at each of `bundles`."""
    said = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    if not share_net:
        said.append("--unshare-net")
    said += ["--die-with-parent", "--as-pid-1", "--new-session", "--hostname", HOSTNAME, "--clearenv"]
    said += ["--info-fd", INFO_FD]
    for mount in mounts:
        upper, work = f"{base}/x/u/{mount.name}", f"{base}/x/w/{mount.name}"
        if mount.lowers:
            for lower in mount.lowers:
                said += ["--overlay-src", lower]
            said += ["--overlay", upper, work, mount.at]
        else:
            said += ["--bind", upper, mount.at]
    overlay = any(mount.lowers for mount in mounts)
    for index, target in enumerate(bundles):
        source = f"{base}/x/{FOLDER}/{index}"
        if overlay:
            # the kernel wants two layers where none is written to
            said += ["--overlay-src", f"{base}/x/{FOLDER}/{EMPTY}", "--overlay-src", source, "--ro-overlay", target]
        else:
            said += ["--ro-bind", source, target]
    said += ["--dev", "/dev", "--size", str(shm_bytes), "--perms", "1777", "--tmpfs", "/dev/shm"]
    said += ["--remount-ro", "/dev", "--proc", "/proc"]
    for path in _READ_ONLY:
        if Path(path).is_dir():
            said += ["--ro-bind", path, path]
    for path in _MASKED_FILES:
        if Path(path).exists():
            said += ["--ro-bind", "/dev/null", path]
    for path in _MASKED_FOLDERS:
        if Path(path).is_dir():
            said += ["--perms", "0555", "--tmpfs", path, "--remount-ro", path]
    # The holder keeps every power over the world: what has fewer can then neither trace nor look into it.
    return [*said, "--cap-add", "ALL", "--argv0", "init"]


def covered(*needed: Path) -> str:
    """A folder of the host that may be covered while a world starts: it holds none of the `needed` paths.

    Raises:
        FileNotFoundError: there is none, which no usual root lacks.
    """
    for place in ("/mnt", "/media", "/srv", "/opt", "/home", "/tmp"):
        path = Path(place)
        if path.is_dir() and not path.is_symlink() and not any(p.is_relative_to(path) for p in needed):
            return place
    raise FileNotFoundError("no folder of the host may be covered: create /mnt")
