"""Files into a world and out of it: one process stays on the host, its child works inside, a socket between them.

Neither ever holds both sides, so no link, mount or race inside can make it touch a path of the host.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.sandbox.namespace.launcher import confine, wire

if TYPE_CHECKING:
    from proctor.sandbox.namespace.launcher.world import World

_PIECE = 1 << 18
_DEPTH_CAP = 128


class Unsafe(Exception):
    """A path that cannot be taken; the text says why."""


class _HungUp(Exception):
    pass


def put(request: wire.Message, peer: socket.socket, world: World) -> None:
    """Bring in the `items` of the request, each with `target`, `source`, `content`, `mode`, `owner`.

    Answers `{"kind": "end"}`, with `unsafe`, `no_user` or `fault` and `errno` where it failed.
    """

    def send_items(sock: socket.socket) -> wire.Message:
        for item in request["items"]:
            _send_item(sock, item, peer)
        wire.send(sock, {"kind": "end"})
        return wire.receive(sock) or {"fault": "the copy inside ended", "errno": 0}

    _between(peer, world, send_items, _receive_items)


def get(request: wire.Message, peer: socket.socket, world: World) -> None:
    """Bring `paths` out below the host folder `into`, at most `cap_bytes` and `cap_files` altogether.

    Answers `{"fetched": [(path, size, skipped)]}` or `{"fault": text, "errno": …}`.
    """
    _between(
        peer,
        world,
        lambda sock: _receive_files(sock, request["into"], peer),
        lambda sock: _send_files(sock, request),
    )


def _between(
    peer: socket.socket,
    world: World,
    outside: Callable[[socket.socket], wire.Message],
    inside: Callable[[socket.socket], None],
) -> None:
    """Answer `peer` with what `outside` returns while a child does `inside`; the child is gone afterwards."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        _work_inside(theirs, world, inside)
        os._exit(0)
    theirs.close()
    try:
        answer = outside(ours)
    except Unsafe as fault:
        answer = {"unsafe": str(fault)}
    except _HungUp:
        answer = {}
    except OSError as fault:
        answer = {"fault": str(fault), "errno": fault.errno}
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    wire.send(peer, answer)


def _check_peer(peer: socket.socket) -> None:
    """Raises _HungUp when nobody waits for the answer any more."""
    if select.select([peer], [], [], 0)[0]:
        raise _HungUp


def _work_inside(sock: socket.socket, world: World, work: Callable[[socket.socket], None]) -> None:
    try:
        world.enter(processes=False)
        work(sock)
    except Unsafe as fault:
        wire.send(sock, {"kind": "end", "unsafe": str(fault)})
    except confine.StartError as fault:
        wire.send(sock, {"kind": "end", "no_user": str(fault)})
    except OSError as fault:
        wire.send(sock, {"kind": "end", "fault": str(fault), "errno": fault.errno})


# --- in: the host's side


def _send_item(sock: socket.socket, item: dict[str, Any], peer: socket.socket) -> None:
    base = {"kind": "item", "target": item["target"], "mode": item["mode"], "owner": item["owner"]}
    if item["content"] is not None:
        wire.send(sock, base | {"type": "file", "perm": 0o644, "mtime": None})
        for start in range(0, len(item["content"]), _PIECE):
            wire.send(sock, {"kind": "data", "data": item["content"][start : start + _PIECE]})
        wire.send(sock, {"kind": "data", "data": b""})
    elif item["source"] is None:
        wire.send(sock, base | {"type": "dir", "perm": 0o755, "mtime": None})
    else:
        _send_tree(sock, item["source"], base, peer)


def _send_tree(sock: socket.socket, source: str, base: dict[str, Any], peer: socket.socket) -> None:
    pending = [("", source)]
    while pending:
        _check_peer(peer)
        inner, path = pending.pop()
        info = os.lstat(path)
        head = base if not inner else {"kind": "below", "inner": inner}
        head = head | {"perm": stat.S_IMODE(info.st_mode) & 0o777, "mtime": info.st_mtime_ns}
        if stat.S_ISLNK(info.st_mode):
            wire.send(sock, head | {"type": "link", "to": str(Path(path).readlink())})
        elif stat.S_ISDIR(info.st_mode):
            wire.send(sock, head | {"type": "dir"})
            names = sorted((child.name for child in Path(path).iterdir()), reverse=True)
            pending += [(f"{inner}/{name}" if inner else name, f"{path}/{name}") for name in names]
        elif stat.S_ISREG(info.st_mode):
            _send_file(sock, path, head | {"type": "file"})
        else:
            raise Unsafe(f"{path} is neither file, folder nor link")


def _send_file(sock: socket.socket, path: str, head: dict[str, Any]) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        wire.send(sock, head)
        while data := os.read(fd, _PIECE):
            wire.send(sock, {"kind": "data", "data": data})
        wire.send(sock, {"kind": "data", "data": b""})
    finally:
        os.close(fd)


# --- in: the world's side


def _receive_items(sock: socket.socket) -> None:
    os.umask(0)
    target, owner = "", (0, 0)
    dated: list[tuple[str, int]] = []
    while True:
        head = wire.receive(sock)
        if head is None:
            return
        if head["kind"] != "below":
            for path, mtime in reversed(dated):  # a folder's time is set when nothing more is put in it
                os.utime(path, ns=(mtime, mtime), follow_symlinks=False)
            dated = []
        if head["kind"] == "end":
            wire.send(sock, {"kind": "end"})
            return
        if head["kind"] == "item":
            target, mode = head["target"], head["mode"]
            user = confine.find_user(head["owner"])
            owner = (user.uid, user.gid)
            _make_parents(target)
            made = _place(sock, target, head, owner)
            if mode is not None and head["type"] != "link":
                Path(target).chmod(mode)
            if head["owner"] is not None and not made:
                os.chown(target, *owner, follow_symlinks=False)
            path = target
        else:
            path = f"{target}/{head['inner']}"
            made = _place(sock, path, head, owner)
        if made and head["mtime"] is not None:
            dated.append((path, head["mtime"]))


def _make_parents(target: str) -> None:
    """Folders on the way to `target`. Links inside are followed on the way, for they lead no further than inside."""
    at = ""
    for name in target.strip("/").split("/")[:-1]:
        at += f"/{name}"
        try:
            Path(at).mkdir(0o755)
        except FileExistsError:
            if not Path(at).is_dir():
                raise Unsafe(f"{at} inside is no folder") from None


def _place(sock: socket.socket, path: str, head: wire.Message, owner: tuple[int, int]) -> bool:
    """Make one entry; False for a folder that was there, which keeps its mode, owner and time."""
    there = _lstat(path)
    if head["type"] == "dir":
        if there is not None and stat.S_ISDIR(there.st_mode):
            return False
        if there is not None:
            Path(path).unlink()
        Path(path).mkdir(0o700)
        Path(path).chmod(head["perm"])
        _give(path, owner)
        return True
    if there is not None:
        if stat.S_ISDIR(there.st_mode):
            raise Unsafe(f"{path} inside is a folder")
        Path(path).unlink()
    if head["type"] == "link":
        Path(path).symlink_to(head["to"])
        _give(path, owner)
        return True
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _fill(fd, sock)
        if owner != (0, 0):
            os.fchown(fd, *owner)
        os.fchmod(fd, head["perm"])
    finally:
        os.close(fd)
    return True


def _give(path: str, owner: tuple[int, int]) -> None:
    if owner != (0, 0):
        os.chown(path, *owner, follow_symlinks=False)


def _fill(fd: int, sock: socket.socket) -> int:
    """Write data messages up to the empty one; blocks of zeros become holes. Returns the size."""
    size = 0
    while (message := wire.receive(sock)) is not None and message["data"]:
        data = message["data"]
        if data.count(0) == len(data):
            os.lseek(fd, len(data), os.SEEK_CUR)
        else:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
        size += len(data)
    os.ftruncate(fd, size)
    return size


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


# --- out: the world's side


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
    info = os.lstat(path)
    if info.st_dev in kernel:
        return "kernel file", []
    if stat.S_ISLNK(info.st_mode):
        return "link", []
    if stat.S_ISDIR(info.st_mode):
        if depth >= _DEPTH_CAP:
            return "too deep", []
        return None, list(_listed(path, budget.files))
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
        while left > 0 and (data := os.read(fd, min(left, _PIECE))):
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


# --- out: the host's side


def _receive_files(sock: socket.socket, into: str, peer: socket.socket) -> wire.Message:
    fetched: list[tuple[str, int, str | None]] = []
    while True:
        _check_peer(peer)
        message = wire.receive(sock)
        if message is None:
            return {"fault": "the copy inside ended", "errno": 0}
        match message["kind"]:
            case "end":
                return message if "fault" in message else {"fetched": fetched}
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
    if _lstat(path) is not None:
        Path(path).unlink()
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        size = _fill(fd, sock)
        os.fchmod(fd, message["perm"] | 0o600)
    finally:
        os.close(fd)
    return size
