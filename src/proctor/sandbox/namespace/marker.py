"""Whose a world's folder is, so that what a dead run left is found and a live run's is never touched."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from proctor.sandbox.namespace import cgroups
from proctor.sandbox.namespace.launcher import tree

_NAME = "marker.json"
_DEPTH = 3
_GROUP_SEC = 5.0


def write(folder: Path, label: str, groups: Sequence[Path]) -> None:
    """Say in `folder` that this process made it, and which groups belong to it. Raises OSError."""
    said = {
        "label": label,
        "host": socket.gethostname(),
        "boot": _boot(),
        "pid": os.getpid(),
        "started": _started(os.getpid()),
        "groups": [str(group) for group in groups],
    }
    _put(folder, said)


def note_init(folder: Path, pid: int) -> None:
    """Say in the marker of a world which process is its PID 1. Raises OSError."""
    path = folder / _NAME
    said = json.loads(path.read_text(encoding="utf-8"))
    _put(folder, {**said, "init": pid, "init_started": _started(pid)})


def _put(folder: Path, said: dict[str, Any]) -> None:
    # whole or not at all: the groups that a half-written marker named would never be found again
    draft = folder / f".{_NAME}"
    draft.write_text(json.dumps(said), encoding="utf-8")
    draft.replace(folder / _NAME)


def live_init(scratch: Path) -> int | None:
    """PID 1 of a world that runs now below `scratch`, as the host counts, or None."""
    for _, said in _markers(scratch, _DEPTH):
        pid = said.get("init")
        if type(pid) is int and said.get("boot") == _boot() and said.get("init_started") == _started(pid) is not None:
            return pid
    return None


def keep(folder: Path) -> None:
    """Take a world's folder out of what `prune` removes: somebody asked to keep it."""
    (folder / _NAME).unlink(missing_ok=True)


def prune(scratch_root: Path) -> list[str]:
    """Remove the folders and groups of dead runs below `scratch_root`; the paths that were removed."""
    removed: list[str] = []
    for home, said in _markers(scratch_root, _DEPTH):
        if _may_live(said):
            continue
        groups = tuple(Path(group) for group in said.get("groups", []))
        removed += [str(group) for group in groups if group.is_dir() and _end_group(group)]
        tree.remove(home)
        removed.append(str(home))
    return removed


def _markers(folder: Path, depth: int) -> Iterator[tuple[Path, dict[str, Any]]]:
    if not folder.is_dir() or folder.is_symlink():
        return
    marker = folder / _NAME
    if marker.is_file() and not marker.is_symlink():
        try:
            said = json.loads(marker.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        if isinstance(said, dict) and {"host", "boot", "pid", "started", "label"} <= said.keys():
            yield folder, said
        return
    if depth:
        for child in sorted(folder.iterdir()):
            yield from _markers(child, depth - 1)


def _may_live(said: dict[str, Any]) -> bool:
    """Whether the process that wrote a marker may still run; another host's always may."""
    if said["host"] != socket.gethostname():
        return True
    return bool(said["boot"] == _boot() and said["started"] == _started(said["pid"]))


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _started(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when it does not run."""
    try:
        data = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    return int(data.rpartition(b")")[2].split()[19])


def _end_group(group: Path) -> bool:
    """Kill what is left in a group of a dead run and remove it; whether it is gone."""
    deadline = time.monotonic() + _GROUP_SEC
    while time.monotonic() < deadline:
        try:
            for pid in (group / "cgroup.procs").read_text(encoding="ascii").split():
                os.kill(int(pid), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            pass
        if cgroups.remove((group,)):
            return True
        time.sleep(0.01)
    return False
