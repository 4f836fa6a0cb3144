"""Whose a world's folder is, so that what a dead run left is found and a live run's is never touched."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from proctor.sandbox import processes
from proctor.sandbox.base import MARKER
from proctor.sandbox.linux import tree
from proctor.sandbox.namespace import cgroups

_NAME = MARKER
_DEPTH = 3
_GROUP_SEC = 5.0


def write(folder: Path, label: str, groups: Sequence[Path]) -> None:
    """Say in `folder` that this process made it, and which groups belong to it. Raises OSError."""
    said = {
        "label": label,
        "host": socket.gethostname(),
        "boot": processes.boot(),
        "pid": os.getpid(),
        "started": processes.started(os.getpid()),
        "groups": [str(group) for group in groups],
    }
    _put(folder, said)


def note_init(folder: Path, pid: int) -> None:
    """Say in the marker of a world which process is its PID 1. Raises OSError."""
    path = folder / _NAME
    said = json.loads(path.read_text(encoding="utf-8"))
    _put(folder, {**said, "init": pid, "init_started": processes.started(pid)})


def _put(folder: Path, said: dict[str, Any]) -> None:
    # whole or not at all: the groups that a half-written marker named would never be found again
    draft = folder / f".{_NAME}"
    draft.write_text(json.dumps(said), encoding="utf-8")
    draft.replace(folder / _NAME)


def live_init(scratch: Path) -> int | None:
    """PID 1 of a world that runs now below `scratch`, as the host counts, or None."""
    for _, said in _markers(scratch, _DEPTH):
        if said["boot"] == processes.boot() and _runs(said.get("init"), said.get("init_started"), 0):
            return int(said["init"])
    return None


def keep(folder: Path) -> None:
    """Take a world's folder out of what `prune` removes: somebody asked to keep it."""
    (folder / _NAME).unlink(missing_ok=True)


def prune(scratch_root: Path, patience_sec: float = 0.0) -> list[str]:
    """Remove what dead runs left below `scratch_root`: processes, groups and folders; the paths that were removed.

    For processes that seem to live, one may wait up to `patience_sec` altogether. What cannot be removed stays with
    its marker, for the next time.
    """
    removed: list[str] = []
    deadline = time.monotonic() + patience_sec
    for home, said in _markers(scratch_root, _DEPTH):
        if not _may_live(said, deadline):
            removed += _remove(home, said)
    return removed


def _remove(home: Path, said: dict[str, Any]) -> list[str]:
    if said["boot"] == processes.boot() and not _end_init(said.get("init"), said.get("init_started")):
        return []
    groups = [path for path in map(Path, said.get("groups", [])) if path.is_dir()]
    removed = [str(group) for group in groups if _end_group(group)]
    if len(removed) < len(groups):
        return removed
    try:
        # the marker last: without it nobody would come back for the rest
        for child in home.iterdir():
            if child.name != _NAME:
                tree.remove(child)
        tree.remove(home)
    except OSError:
        return removed
    return [*removed, str(home)]


def _markers(folder: Path, depth: int) -> Iterator[tuple[Path, dict[str, Any]]]:
    if not folder.is_dir() or folder.is_symlink():
        return
    marker = folder / _NAME
    if marker.is_file() and not marker.is_symlink():
        try:
            said = json.loads(marker.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return
        if isinstance(said, dict) and {"host", "boot", "pid", "started", "label"} <= said.keys():
            yield folder, said
        return
    if depth:
        for child in sorted(folder.iterdir()):
            yield from _markers(child, depth - 1)


def _may_live(said: dict[str, Any], deadline: float) -> bool:
    """Whether the process that wrote a marker runs, and still does at the deadline; another host's always may."""
    if said["host"] != socket.gethostname():
        return True
    patience = 0.0 if said["pid"] == os.getpid() else max(0.0, deadline - time.monotonic())
    return said["boot"] == processes.boot() and _runs(said["pid"], said["started"], patience)


def _runs(pid: Any, started: Any, patience_sec: float) -> bool:
    """Whether the process that started then runs for longer than `patience_sec`.

    One that is dead and not yet waited for by its parent runs no more.
    """
    opened = _opened(pid, started)
    if opened is None:
        return False
    try:
        return not _is_over(opened, patience_sec)
    finally:
        os.close(opened)


def _opened(pid: Any, started: Any) -> int | None:
    """A pidfd of the process that started then, or None where it is gone."""
    if type(pid) is not int or pid <= 0:
        return None
    try:
        opened = os.pidfd_open(pid)
    except OSError:
        return None
    if processes.started(pid) != started or started is None:
        os.close(opened)
        return None
    return opened


def _is_over(pidfd: int, patience_sec: float) -> bool:
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(patience_sec * 1000))


def _end_init(pid: Any, started: Any) -> bool:
    """Kill PID 1 of a world, and all that is in it; whether it is gone."""
    opened = _opened(pid, started)
    if opened is None:
        return True
    try:
        signal.pidfd_send_signal(opened, signal.SIGKILL)
        return _is_over(opened, _GROUP_SEC)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    finally:
        os.close(opened)


def _members(group: Path) -> list[int]:
    """The processes of a group. The kernel lists one that just ended as 0, and a signal to 0 goes to our own group."""
    try:
        text = (group / "cgroup.procs").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(pid) for pid in text.split() if int(pid) > 0]


def _end_group(group: Path) -> bool:
    """Kill what is left in a group of a dead run and remove it; whether it is gone."""
    deadline = time.monotonic() + _GROUP_SEC
    while time.monotonic() < deadline:
        for pid in _members(group):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            if cgroups.remove((group,)):
                return True
        except OSError:
            return False
        time.sleep(0.01)
    return False
