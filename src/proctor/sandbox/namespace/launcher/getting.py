"""Files out of a world: regular files only, within caps."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.sandbox.namespace.launcher import tree, wire
from proctor.sandbox.namespace.launcher.copying import (
    MOST_BYTES,
    PIECE,
    SILENT_END,
    between,
    check_peer,
    fill,
    refusal,
)

if TYPE_CHECKING:
    from proctor.sandbox.namespace.launcher.world import World


_DEPTH_CAP = 128
# the host's own folder comes before it, and a path has 4,096 bytes
_PATH_CAP = 2_048


def get(request: wire.Message, peer: socket.socket, world: World) -> None:
    """Bring `paths` out below the host folder `into`, at most `cap_bytes` and `cap_files` altogether.

    Answers `{"fetched": [(path, size, skipped)]}`, or as `between` says.
    """
    between(
        peer,
        world,
        lambda sock: _receive_files(sock, request["into"], peer),
        lambda sock: _send_files(sock, request),
    )


# --- the world's side


class _Budget:
    def __init__(self, files: int, size: int) -> None:
        self.files, self.size = files, size


def _send_files(sock: socket.socket, request: wire.Message) -> None:
    budget = _Budget(request["cap_files"], request["cap_bytes"])
    kernel = {os.lstat("/proc").st_dev}
    for path in request["paths"]:
        if not _send_path(sock, path, budget, kernel):
            break
    wire.send(sock, {"kind": "end"})


def _send_path(sock: socket.socket, top: str, budget: _Budget, kernel: set[int]) -> bool:
    """One wanted path with all below it; False when the number of files is used up."""
    pending: list[tuple[str, int]] = [(top, 0)]
    while pending:
        path, depth = pending.pop()
        if budget.files <= 0:
            wire.send(sock, _skip(path, "cap of files"))
            return False
        try:
            skipped, below = _send_one(sock, path, depth, budget, kernel)
        except FileNotFoundError:
            skipped, below = "not there", []
        except OSError as fault:
            skipped, below = os.strerror(fault.errno or 0), []
        pending += [(name, depth + 1) for name in below]
        if skipped:
            budget.files -= 1
            wire.send(sock, _skip(path, skipped))
    return True


def _send_one(
    sock: socket.socket, path: str, depth: int, budget: _Budget, kernel: set[int]
) -> tuple[str | None, list[str]]:
    """Send one file, or list one folder: why it was skipped, and what is below it."""
    try:
        if len(path.encode()) > _PATH_CAP:
            return "path too long", []
    except UnicodeEncodeError:
        # evidence names files in JSON, which cannot hold this name
        return "name is no UTF-8", []
    info = os.lstat(path)
    if info.st_dev in kernel:
        return "kernel file", []
    if stat.S_ISLNK(info.st_mode):
        return "link", []
    if stat.S_ISDIR(info.st_mode):
        if depth >= _DEPTH_CAP:
            return "too deep", []
        below = list(_listed(path, budget.files))
        # A wanted folder without content is brought out whole by bringing nothing.
        return ("empty folder" if depth and not below else None), below
    if not stat.S_ISREG(info.st_mode):
        return "special file", []
    if info.st_size > budget.size:
        return "cap of bytes", []
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        opened = os.fstat(fd)
        if (opened.st_dev, opened.st_ino) != (info.st_dev, info.st_ino):
            return "changed meanwhile", []
        budget.files -= 1
        wire.send(sock, {"kind": "file", "path": path, "perm": stat.S_IMODE(info.st_mode) & 0o777})
        left = min(info.st_size, budget.size)
        while left > 0 and (data := os.read(fd, min(left, PIECE))):
            wire.send(sock, {"kind": "data", "data": data})
            left -= len(data)
            budget.size -= len(data)
        wire.send(sock, {"kind": "data", "data": b""})
        return None, []
    finally:
        os.close(fd)


def _listed(path: str, most: int) -> Iterator[str]:
    """Paths in a folder in reverse order, not many more than can be sent: a folder may hold millions."""
    names: list[str] = []
    with os.scandir(path) as entries:
        for entry in entries:
            names.append(entry.name)
            if len(names) > most:
                break
    for name in sorted(names, reverse=True):
        yield f"{path.rstrip('/')}/{name}"


def _skip(path: str, why: str) -> wire.Message:
    return {"kind": "skip", "path": path, "why": why}


# --- the host's side


def _receive_files(sock: socket.socket, into: str, peer: socket.socket) -> wire.Message:
    fetched: list[tuple[str, int, str | None]] = []
    while True:
        check_peer(peer)
        message = wire.receive(sock, MOST_BYTES)
        if message is None:
            return SILENT_END
        match message["kind"]:
            case "end":
                return refusal(message) or {"fetched": fetched}
            case "skip":
                fetched.append((message["path"], 0, message["why"]))
            case "file":
                fetched.append((message["path"], _store(sock, into, message), None))


def _store(sock: socket.socket, into: str, message: wire.Message) -> int:
    names = [name for name in message["path"].split("/") if name]
    if any(name in (".", "..") for name in names):
        raise OSError(0, f"{message['path']} is no plain path")
    folder = into
    for name in names[:-1]:
        folder += f"/{name}"
        try:
            Path(folder).mkdir(0o755)
        except FileExistsError:
            pass
    path = f"{folder}/{names[-1]}"
    if tree.lstat(path) is not None:
        Path(path).unlink()
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        size = fill(fd, sock)
        os.fchmod(fd, message["perm"] | 0o600)
    finally:
        os.close(fd)
    return size
