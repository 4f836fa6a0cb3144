"""Looking at what a world uses, where no controller of the kernel holds a limit."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from proctor.sandbox.linux import tree

_PAGE = os.sysconf("SC_PAGE_SIZE")


def processes() -> list[int]:
    """The processes inside but PID 1, by their numbers inside; for a process that entered the mount namespace."""
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal() and path.name != "1"]


def memory_bytes() -> int:
    """Memory of all processes inside: private pages of each, as /proc tells; shared pages are left out."""
    total = 0
    for pid in processes():
        try:
            fields = Path(f"/proc/{pid}/statm").read_bytes().split()
            total += (int(fields[1]) - int(fields[2])) * _PAGE
        except (OSError, IndexError):
            continue  # it ended meanwhile
    return total + _tmpfs_bytes("/dev/shm")


def proportional_bytes() -> int:
    """The same with shared pages divided among their users: exact, but slow, so asked for only near a limit."""
    total = 0
    for pid in processes():
        try:
            with Path(f"/proc/{pid}/smaps_rollup").open("rb") as file:
                total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith(b"Pss:"))
        except (OSError, IndexError):
            continue
    return total + _tmpfs_bytes("/dev/shm")


def _tmpfs_bytes(path: str) -> int:
    try:
        found = os.statvfs(path)
    except OSError:
        return 0
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def tree_bytes(top: int) -> int:
    """Disk space that the folder behind the descriptor `top` takes, a file with several names counted once."""
    total = 0
    seen: set[tuple[int, int]] = set()
    for _, _, info in tree.walk(top):
        if info.st_nlink > 1 and not stat.S_ISDIR(info.st_mode):
            if (info.st_dev, info.st_ino) in seen:
                continue
            seen.add((info.st_dev, info.st_ino))
        total += info.st_blocks * 512
    return total


class Watch:
    """What is over its limit, looked at as often as the looking's own cost allows."""

    def __init__(self, memory: int | None, storage: int | None, pids: int | None, uppers: tuple[int, ...]) -> None:
        self._memory, self._storage, self._pids, self._uppers = memory, storage, pids, uppers
        self._next_walk = self._soonest_walk = 0.0
        self._free_at_walk = 0
        self._used = 0

    @property
    def interval_sec(self) -> float | None:
        """How often to look; None for never."""
        return None if self._memory is self._storage is self._pids is None else 0.05

    def over(self) -> str | None:
        """The name of a limit that is exceeded now, or None."""
        if self._pids is not None and len(processes()) > self._pids:
            return "pids"
        if self._memory is not None and memory_bytes() > self._memory and proportional_bytes() > self._memory:
            return "memory"
        if self._storage is not None and self._walked() > self._storage:
            return "storage"
        return None

    def _walked(self) -> int:
        """Bytes in the uppers: walked anew when due, or when the file system lost enough space to matter."""
        now = time.monotonic()
        found = os.fstatvfs(self._uppers[0])
        free = found.f_bavail * found.f_frsize
        lost = self._free_at_walk - free
        hurry = lost > ((self._storage or 0) - self._used) // 2 and now >= self._soonest_walk
        if hurry or now >= self._next_walk:
            self._used = sum(tree_bytes(top) for top in self._uppers)
            self._free_at_walk = free
            ended = time.monotonic()
            self._soonest_walk = ended + 2 * (ended - now)
            self._next_walk = ended + max(0.2, 20 * (ended - now))
        return self._used
