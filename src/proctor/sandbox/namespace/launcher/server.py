"""The launcher: a small process beside the runner that starts worlds and has the runner's death end them.

It is a process of its own because entering namespaces and forking need a single thread, and because its command
line, which forked children show until they exec, can be blanked.
"""

from __future__ import annotations

import os
import socket
import sys

from proctor.sandbox.linux import syscalls
from proctor.sandbox.namespace.launcher import memory, probes, wire, world


def main(fd: int, point: str | None = None, size: str = "0", users: str = "one") -> None:
    """Serve requests that arrive at the socket `fd` until the runner is gone.

    With `point`, `size` bytes of memory are mounted there first, for this process only; `users`: "one" or "many".
    """
    os.set_inheritable(fd, False)
    syscalls.blank_own_traces()
    mounted: wire.Message = {"pid": os.getpid(), "errno": 0, "text": ""}
    if point is not None:
        try:
            memory.mount_own(point, int(size), many_users=users == "many")
        except OSError as fault:
            mounted |= {"errno": fault.errno or 0, "text": wire.said(fault)}

    def handle(request: wire.Message, peer: socket.socket) -> None:
        match request["op"]:
            case "start":
                world.keep(request, peer)
            case "probe":
                wire.send(peer, probes.user_namespaces(many_users=request["many_users"]))
            case "mounted":
                wire.send(peer, mounted)

    with socket.socket(fileno=fd) as sock:
        wire.serve(sock, handle)


if __name__ == "__main__":
    main(int(sys.argv[1]))
