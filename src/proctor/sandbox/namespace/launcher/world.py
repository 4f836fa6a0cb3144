"""Starting a world and keeping it: bwrap in namespaces of our own, a keeper that serves requests for it.

The user namespace is made here and not by bwrap, so that both tiers differ in the id map only, and so that layers can
be bound at short neutral places first: what the mount table inside shows are those, and the 4,096 bytes that mount
options hold never depend on where a user keeps runs.
"""

from __future__ import annotations

import errno
import json
import os
import re
import select
import signal
import socket
import time
from pathlib import Path
from typing import Any, NamedTuple

from proctor.sandbox.linux import syscalls
from proctor.sandbox.namespace.launcher import getting, listening, probes, putting, run, wire

INFO_FD = "@INFO@"
NAMESPACES = (
    syscalls.CLONE_NEWUSER
    | syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWPID
    | syscalls.CLONE_NEWNET
    | syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWCGROUP
)

_SETUP_SEC = 20.0
_OWN_PID_MAX = (6, 14)  # the first kernel in which each process namespace has its own
_SPARE_NUMBERS = 302  # the kernel gives the first 300 only once


class World(NamedTuple):
    """What requests for one world need: the pidfd of its PID 1, its namespaces, its upper folders."""

    pidfd: int
    namespaces: int
    many_users: bool
    uppers: tuple[int, ...]

    def enter(self, *, processes: bool) -> None:
        """Move this process in; with `processes`, its children are born in there. Raises OSError."""
        kinds = self.namespaces if processes else syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS
        syscalls.setns(self.pidfd, kinds)
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
        os.chdir("/")
        syscalls.seal_imports()


def keep(request: dict[str, Any], peer: socket.socket) -> None:
    """Start the world of `request`, answer, serve it until the peer hangs up or it ends; then nothing of it is left.

    The request: `bwrap` (path), `args` (of bwrap, with `INFO_FD` among them), `holder` (path), `base` (a folder that
    may be covered), `points` (a folder with `x` and `l/<index>` in it, bound at `base`), `home` (bound at `base/x`),
    `layers` (each bound at `base/l/<index>`), `bundles` (each bound at `home/b/<index>`), `many_users`, `share_net`,
    `pids` (or None), `uppers` (paths). The answer: `{"pid": …}`, or `{"failed": stage, "errno": …, "text": …}`.
    """
    try:
        bwrap, pid, _hold = _start(request)
        pidfd = os.pidfd_open(pid)
        if request["pids"] is not None:
            _bound_processes(pidfd, request["pids"])
        uppers = tuple(os.open(path, os.O_PATH | os.O_DIRECTORY) for path in request["uppers"])
    except _Failed as failed:
        wire.send(peer, {"failed": failed.stage, "errno": failed.number, "text": failed.text})
        return
    except OSError as fault:  # what has started ends with this process
        wire.send(peer, {"failed": "keeper", "errno": fault.errno or 0, "text": wire.said(fault)})
        return
    kinds = NAMESPACES & ~syscalls.CLONE_NEWNET if request["share_net"] else NAMESPACES
    world = World(pidfd, kinds, request["many_users"], uppers)
    wire.send(peer, {"pid": pid})
    wire.serve(peer, lambda message, socket_: _handle(message, socket_, world), until=pidfd)
    _end(bwrap)
    _wait_gone(pidfd)


def _handle(message: wire.Message, peer: socket.socket, world: World) -> None:
    match message["op"]:
        case "exec":
            run.supervise(message, peer, world)
        case "signal":
            run.signal_all(message, peer, world)
        case "put":
            putting.put(message, peer, world)
        case "get":
            getting.get(message, peer, world)
        case "listen":
            listening.listen(message, peer, world)


class _Failed(Exception):
    def __init__(self, stage: str, number: int, text: str) -> None:
        super().__init__(text)
        self.stage, self.number, self.text = stage, number, text


def _start(request: dict[str, Any]) -> tuple[int, int, int]:
    """A pidfd of bwrap, the pid of PID 1 and the descriptor that keeps it alive, once the world is set up."""
    hold_r, hold_w = os.pipe()
    made_r, made_w = os.pipe()
    gate_r, gate_w = os.pipe()
    info_r, info_w = os.pipe()
    ready_r, ready_w = os.pipe()
    words = os.memfd_create("words")
    keeper = os.getpid()
    bwrap = os.fork()
    if bwrap == 0:
        # an end that is ours to read must not be held open by ourselves, when the keeper is killed
        for fd in (hold_w, made_r, gate_w, info_r, ready_r):
            os.close(fd)
        _become_bwrap(keeper, request, made_w, gate_r, info_w, (hold_r, ready_w, words))
    bwrap_fd = os.pidfd_open(bwrap)
    for fd in (made_w, gate_r, info_w, ready_w, hold_r):
        os.close(fd)
    try:
        made = os.read(made_r, 4096)
        if made != b"made":
            raise _failure(made, "unshare")
        try:
            probes.map_ids(bwrap, os.geteuid(), os.getegid(), many_users=request["many_users"])
        except OSError as fault:
            raise _Failed("map", fault.errno or 0, wire.said(fault)) from None
        os.write(gate_w, b"g")
        info = _read_until(info_r, b"}")
        ready = _read_until(ready_r, b"\x01")
        if not ready:
            os.lseek(words, 0, os.SEEK_SET)
            said = os.read(words, 4096).decode("utf-8", "replace").strip()
            raise _failure(os.read(made_r, 4096), "bwrap", said)
        return bwrap_fd, int(json.loads(info)["child-pid"]), hold_w
    except _Failed:
        _end(bwrap_fd)
        raise
    finally:
        for fd in (made_r, gate_w, info_r, ready_r, words):
            os.close(fd)


def _failure(said: bytes, stage: str, text: str = "") -> _Failed:
    if said:
        stage, number, text = said.decode("utf-8", "replace").split("\0")
        return _Failed(stage, int(number), text)
    return _Failed(stage, 0, text)


def _read_until(fd: int, end: bytes) -> bytes:
    """What comes from `fd` up to `end`; empty when it closes or stays silent for too long before."""
    data = b""
    deadline = time.monotonic() + _SETUP_SEC
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    while end not in data:
        if not poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return b""
        piece = os.read(fd, 4096)
        if not piece:
            return b""
        data += piece
    return data


def _become_bwrap(
    keeper: int, request: dict[str, Any], made: int, gate: int, info: int, standard: tuple[int, int, int]
) -> None:
    stage = "unshare"
    try:
        syscalls.die_with_parent(keeper)
        bwrap = os.open(request["bwrap"], os.O_RDONLY)
        holder = os.open(request["holder"], os.O_RDONLY)
        syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS)
        # Without this the maps of the new namespace belong to root, and an ordinary user's keeper cannot write them.
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
        syscalls.die_with_parent(keeper)  # once more: the kernel forgets it where credentials change
        os.write(made, b"made")
        if os.read(gate, 1) != b"g":
            os._exit(1)
        stage = "layers"
        _forbid_more_namespaces()
        _bind_layers(request["base"], request["points"], request["home"], request["layers"], request["bundles"])
        stage = "bwrap"
        args = os.memfd_create("args")
        listed = [word.replace(INFO_FD, str(info)) for word in request["args"]]
        os.write(args, b"".join(os.fsencode(word) + b"\0" for word in listed))
        os.lseek(args, 0, os.SEEK_SET)
        for number, fd in enumerate(standard):
            os.dup2(fd, number)
        for fd in (holder, info, args):
            os.set_inheritable(fd, True)
        os.execve(bwrap, ["bwrap", "--args", str(args), "--", f"/proc/self/fd/{holder}"], {})
    except OSError as fault:
        os.write(made, f"{stage}\0{fault.errno}\0{fault}".encode("utf-8", "replace"))
    os._exit(1)


def _forbid_more_namespaces() -> None:
    try:
        Path("/proc/sys/user/max_user_namespaces").write_text("0", encoding="ascii")
    except OSError:
        pass  # a read-only /proc/sys, as in containers: the system call filter forbids them as well


def _bind_layers(base: str, points: str, home: str, layers: list[str], bundles: list[str]) -> None:
    syscalls.mount(None, "/", syscalls.MS_REC | syscalls.MS_PRIVATE)
    for index, layer in enumerate(layers):
        syscalls.mount(layer, f"{points}/l/{index}", syscalls.MS_BIND | syscalls.MS_REC)
    for index, bundle in enumerate(bundles):
        syscalls.mount(bundle, f"{home}/b/{index}", syscalls.MS_BIND | syscalls.MS_REC)
    syscalls.mount(home, f"{points}/x", syscalls.MS_BIND | syscalls.MS_REC)
    syscalls.mount(points, base, syscalls.MS_BIND | syscalls.MS_REC)


def _bound_processes(pidfd: int, most: int) -> None:
    """Have the kernel give no more than about `most` process numbers in the world, where it can. Raises OSError."""
    if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < _OWN_PID_MAX:
        return  # one value for the whole machine
    child = os.fork()
    if child == 0:
        code = 1
        try:
            syscalls.setns(pidfd, syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWPID)
            inner = os.fork()  # only what is born after it is in there
            if inner == 0:
                Path("/proc/sys/kernel/pid_max").write_text(str(most + _SPARE_NUMBERS), encoding="ascii")
                os._exit(0)
            code = os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1])
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1] != 0:
        raise OSError(errno.EPERM, "the number of processes could not be bounded")


def _end(pidfd: int) -> None:
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        return
    _wait_gone(pidfd)


def _wait_gone(pidfd: int) -> None:
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    poller.poll(_SETUP_SEC * 1000)
