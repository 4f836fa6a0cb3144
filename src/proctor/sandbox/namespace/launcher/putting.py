"""Files into a world."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor.sandbox.linux import tree
from proctor.sandbox.namespace.launcher import confine, wire
from proctor.sandbox.namespace.launcher.copying import (
    MOST_BYTES,
    PIECE,
    SILENT_END,
    Unreadable,
    Unsafe,
    between,
    check_peer,
    fill,
    refusal,
)

if TYPE_CHECKING:
    from proctor.sandbox.namespace.launcher.world import World


def put(request: wire.Message, peer: socket.socket, world: World) -> None:
    """Bring in the `items` of the request, each with `target`, `source`, `content`, `mode`, `owner`, `fresh`.

    `content` is where in the request's data it begins and ends, or None.

    Answers `{"done": True}`, or as `between` says.
    """

    def send_items(sock: socket.socket) -> wire.Message:
        for item in request["items"]:
            try:
                _send_item(sock, item, request["data"], peer)
            except OSError as fault:
                raise Unreadable(str(fault)) from None
        wire.send(sock, {"kind": "end"})
        end = wire.receive(sock, MOST_BYTES)
        return SILENT_END if end is None else refusal(end) or {"done": True}

    between(peer, world, send_items, _receive_items)


# --- the host's side


def _send_item(sock: socket.socket, item: dict[str, Any], contents: bytes, peer: socket.socket) -> None:
    base = {"kind": "item", "target": item["target"], "mode": item["mode"], "owner": item["owner"]} | {
        "fresh": item["fresh"]
    }
    if item["content"] is not None:
        wire.send(sock, base | {"type": "file", "perm": 0o644, "mtime": None})
        first, end = item["content"]
        for start in range(first, end, PIECE):
            wire.send(sock, {"kind": "data", "data": contents[start : min(start + PIECE, end)]})
        wire.send(sock, {"kind": "data", "data": b""})
    elif item["source"] is None:
        wire.send(sock, base | {"type": "dir", "perm": 0o755, "mtime": None})
    else:
        _send_tree(sock, item["source"], base, peer)


def _send_tree(sock: socket.socket, source: str, base: dict[str, Any], peer: socket.socket) -> None:
    pending = [("", source)]
    while pending:
        check_peer(peer)
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
        while data := os.read(fd, PIECE):
            wire.send(sock, {"kind": "data", "data": data})
        wire.send(sock, {"kind": "data", "data": b""})
    finally:
        os.close(fd)


# --- the world's side


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
            if head["fresh"]:
                if Path(target).is_dir() and os.path.ismount(target):
                    raise Unsafe(f"{target} inside is mounted and cannot be replaced")
                tree.remove(Path(target))
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
    there = tree.lstat(path)
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
        fill(fd, sock)
        if owner != (0, 0):
            os.fchown(fd, *owner)
        os.fchmod(fd, head["perm"])
    finally:
        os.close(fd)
    return True


def _give(path: str, owner: tuple[int, int]) -> None:
    if owner != (0, 0):
        os.chown(path, *owner, follow_symlinks=False)
