"""A listening socket inside a world's network for the host: what connects to it in there is accepted outside."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

from proctor.sandbox.linux import syscalls
from proctor.sandbox.namespace.launcher import wire

if TYPE_CHECKING:
    from proctor.sandbox.namespace.launcher.world import World

ADDRESS = "127.0.0.1"
_BACKLOG = 1024


def listen(request: wire.Message, peer: socket.socket, world: World) -> None:
    """Listen on the `port` of the request, or on a free one where that is taken.

    Answers `{"port": …}` and then one byte with the socket attached, or `refused`: `fault`. Only the world's user and
    network namespaces are entered: no program inside sees this process.
    """
    try:
        syscalls.setns(world.pidfd, syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNET)
        sock = _bound(request["port"])
    except OSError as fault:
        wire.send(peer, {"refused": "fault", "text": wire.said(fault), "errno": fault.errno or 0})
        return
    wire.send(peer, {"port": sock.getsockname()[1]})
    wire.attach(peer, sock.fileno())


def _bound(port: int) -> socket.socket:
    try:
        return socket.create_server((ADDRESS, port), backlog=_BACKLOG)
    except OSError as fault:
        if fault.errno != errno.EADDRINUSE:
            raise
        return socket.create_server((ADDRESS, 0), backlog=_BACKLOG)
