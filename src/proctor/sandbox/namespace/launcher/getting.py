"""Files out of a world: regular files only, within caps."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.sandbox.linux import tree
from proctor.sandbox.namespace.launcher import wire
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
# beyond it the number of what is left out is a lower bound
_MOST_COUNTED = 500_000


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
        stopped = _send_path(sock, path, budget, kernel)
        if stopped is not None:
            rows = _count_rows(request["paths"], kernel)
            more = f"{'at least ' if rows == _MOST_COUNTED else ''}{max(1, rows - request['cap_files']):,} more"
            wire.send(sock, _skip(stopped, f"cap of files: {more} left out"))
            break
    wire.send(sock, {"kind": "end"})


def _send_path(sock: socket.socket, top: str, budget: _Budget, kernel: set[int]) -> str | None:
    """One wanted path with all below it; where that stopped when the number of files was used up, else None."""
    pending: list[tuple[str, int]] = [(top, 0)]
    while pending:
        path, depth = pending.pop()
        if budget.files <= 0:
            return path
        skipped, below, info = _look(path, depth, kernel, budget.files)
        if info is not None:
            skipped = _try_send(sock, path, info, budget)
        pending += [(name, depth + 1) for name in below]
        if skipped:
            budget.files -= 1
            wire.send(sock, _skip(path, skipped))
    return None


def _count_rows(tops: list[str], kernel: set[int]) -> int:
    """How many rows all wanted paths would give without a cap, counted up to a bound."""
    pending = [(top, 0) for top in tops]
    rows = 0
    while pending and rows < _MOST_COUNTED:
        path, depth = pending.pop()
        skipped, below, info = _look(path, depth, kernel, _MOST_COUNTED - rows)
        pending += [(name, depth + 1) for name in below]
        rows += skipped is not None or info is not None
    return rows


def _look(path: str, depth: int, kernel: set[int], most: int) -> tuple[str | None, list[str], os.stat_result | None]:
    """Why a path is skipped, or what is below it, or that it is a file: one of the three."""
    try:
        return _looked(path, depth, kernel, most)
    except FileNotFoundError:
        return "not there", [], None
    except OSError as fault:
        return os.strerror(fault.errno or 0), [], None


def _looked(path: str, depth: int, kernel: set[int], most: int) -> tuple[str | None, list[str], os.stat_result | None]:
    try:
        if len(path.encode()) > _PATH_CAP:
            return "path too long", [], None
    except UnicodeEncodeError:
        # evidence names files in JSON, which cannot hold this name
        return "name is no UTF-8", [], None
    info = os.lstat(path)
    if info.st_dev in kernel:
        return "kernel file", [], None
    if stat.S_ISLNK(info.st_mode):
        return "link", [], None
    if stat.S_ISDIR(info.st_mode):
        if depth >= _DEPTH_CAP:
            return "too deep", [], None
        below = list(_listed(path, most))
        # A wanted folder without content is brought out whole by bringing nothing.
        return ("empty folder" if depth and not below else None), below, None
    if not stat.S_ISREG(info.st_mode):
        return "special file", [], None
    return None, [], info


def _try_send(sock: socket.socket, path: str, info: os.stat_result, budget: _Budget) -> str | None:
    try:
        return _send_file(sock, path, info, budget)
    except FileNotFoundError:
        return "not there"
    except OSError as fault:
        return os.strerror(fault.errno or 0)


def _send_file(sock: socket.socket, path: str, info: os.stat_result, budget: _Budget) -> str | None:
    """Send one file; why it was skipped, else None."""
    if info.st_size > budget.size:
        return "cap of bytes"
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        opened = os.fstat(fd)
        if (opened.st_dev, opened.st_ino) != (info.st_dev, info.st_ino):
            return "changed meanwhile"
        budget.files -= 1
        wire.send(sock, {"kind": "file", "path": path, "perm": stat.S_IMODE(info.st_mode) & 0o777})
        left = min(info.st_size, budget.size)
        while left > 0 and (data := os.read(fd, min(left, PIECE))):
            wire.send(sock, {"kind": "data", "data": data})
            left -= len(data)
            budget.size -= len(data)
        wire.send(sock, {"kind": "data", "data": b""})
        return None
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
