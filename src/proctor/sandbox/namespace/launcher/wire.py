"""How the runner and the launcher talk: one socket a request, one framed value each way.

Both ends run the same interpreter, so values travel as marshal: it carries bytes and undecodable names as they are
and needs no import. The server socket carries single bytes, each with the socket of one request attached.
"""

from __future__ import annotations

import marshal
import os
import select
import signal
import socket
import struct
from collections.abc import Callable
from typing import Any

from proctor.sandbox.namespace.launcher import linux

Message = dict[str, Any]
HEADER = struct.Struct("!Q")


def pack(message: Message) -> bytes:
    """A message as it travels: 8 bytes of length, then the value."""
    body = marshal.dumps(message)
    return HEADER.pack(len(body)) + body


def unpack(body: bytes) -> Message:
    """The value of a frame's body."""
    message: Message = marshal.loads(body)
    return message


def receive(sock: socket.socket) -> Message | None:
    """One message from a blocking socket, or None when the peer is gone."""
    head = _exactly(sock, HEADER.size)
    body = _exactly(sock, HEADER.unpack(head)[0]) if head is not None else None
    return unpack(body) if body is not None else None


def send(sock: socket.socket, message: Message) -> None:
    """Send one message; a peer that is gone is no error, for nobody is left to tell."""
    try:
        sock.sendall(pack(message))
    except (BrokenPipeError, ConnectionResetError):
        pass


def _exactly(sock: socket.socket, size: int) -> bytes | None:
    pieces: list[bytes] = []
    while size:
        piece = sock.recv(min(size, 1 << 20))
        if not piece:
            return None
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def serve(sock: socket.socket, handle: Callable[[Message, socket.socket], None], until: int | None = None) -> None:
    """Fork a child for each request until the peer is gone or the descriptor `until` is readable.

    A fault of a child ends that child with a traceback; its peer sees the socket end without an answer.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    poller = select.poll()
    poller.register(sock, select.POLLIN)
    if until is not None:
        poller.register(until, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poller.poll()}
        if until is not None and until in ready:
            return
        data, fds, _, _ = socket.recv_fds(sock, 1, 1)
        if not data:
            return
        parent = os.getpid()
        if os.fork() == 0:
            linux.die_with_parent(parent)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            sock.close()
            with socket.socket(fileno=fds[0]) as peer:
                message = receive(peer)
                if message is not None:
                    handle(message, peer)
            os._exit(0)
        os.close(fds[0])
