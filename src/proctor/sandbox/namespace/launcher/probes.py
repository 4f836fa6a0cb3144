"""A real try of user namespaces: a child makes one, is mapped, and mounts in it."""

from __future__ import annotations

import os
from pathlib import Path

from proctor.sandbox.linux import syscalls
from proctor.sandbox.namespace.launcher import wire


def user_namespaces(*, many_users: bool) -> wire.Message:
    """`{"stage": None}` where it works; else the stage that failed ("unshare", "map", "mount") and its errno."""
    result_r, result_w = os.pipe()
    gate_r, gate_w = os.pipe()
    child = os.fork()
    if child == 0:
        os._exit(_try_inside(result_w, gate_r))
    os.close(result_w)
    try:
        first = os.read(result_r, 64)
        if first == b"made":
            map_ids(child, os.geteuid(), os.getegid(), many_users=many_users)
            os.write(gate_w, b"g")
            first = os.read(result_r, 64)
    except OSError as fault:
        return {"stage": "map", "errno": fault.errno}
    finally:
        os.close(gate_w)
        os.waitpid(child, 0)
    if first == b"fine":
        return {"stage": None, "errno": 0}
    stage, _, number = first.decode().partition(" ")
    return {"stage": stage or "unshare", "errno": int(number or 0)}


def _try_inside(result: int, gate: int) -> int:
    stage = "unshare"
    try:
        syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS)
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
        os.write(result, b"made")
        os.read(gate, 1)
        stage = "mount"
        syscalls.mount(None, "/", syscalls.MS_REC | syscalls.MS_PRIVATE)
        os.write(result, b"fine")
    except OSError as fault:
        os.write(result, f"{stage} {fault.errno}".encode())
    return 0


def map_ids(pid: int, uid: int, gid: int, *, many_users: bool) -> None:
    """Map 65,536 ids one to one, or only the given ones, which are our own, to root. Raises OSError."""
    if many_users:
        lines = {"uid_map": "0 0 65536", "gid_map": "0 0 65536"}
    else:
        lines = {"setgroups": "deny", "uid_map": f"0 {uid} 1", "gid_map": f"0 {gid} 1"}
    for name, line in lines.items():
        Path(f"/proc/{pid}/{name}").write_text(line, encoding="ascii")
