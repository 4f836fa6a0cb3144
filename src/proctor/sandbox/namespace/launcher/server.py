"""The launcher: a small process beside the runner that starts worlds and has the runner's death end them.

It is a process of its own because entering namespaces and forking need a single thread, and because its command
line, which forked children show until they exec, can be blanked.
"""

from __future__ import annotations

import socket
import sys

from proctor.sandbox.namespace.launcher import linux, probes, wire, world


def main(fd: int) -> None:
    """Serve requests that arrive at the socket `fd` until the runner is gone."""
    linux.blank_own_traces()
    with socket.socket(fileno=fd) as sock:
        wire.serve(sock, _handle)


def _handle(request: wire.Message, peer: socket.socket) -> None:
    if request["op"] == "start":
        world.keep(request, peer)
    else:
        wire.send(peer, probes.user_namespaces(many_users=request["many_users"]))


if __name__ == "__main__":
    main(int(sys.argv[1]))
