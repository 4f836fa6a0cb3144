"""How the runner and the launcher talk: one socket a request, messages in frames each way.

A frame is two lengths, JSON, and bytes as they are: those that the message has as `data`. Names that are no UTF-8
travel as escaped lone surrogates. The server socket carries single bytes, each with the socket of one request attached.
"""

from __future__ import annotations

import array
import json
import os
import select
import signal
import socket
import struct
from collections.abc import Callable
from typing import Any

from proctor.sandbox.linux import syscalls

Message = dict[str, Any]
HEADER = struct.Struct("!II")
MOST_BYTES = 1 << 30
# what `said` leaves of a text
MOST_SAID = 2_000
_GONE = (BrokenPipeError, ConnectionResetError)


class Malformed(Exception):
    """What came is no frame, or a longer one than may come."""


def pack(message: Message) -> bytes:
    """A message as it travels. `data`, where it has that, is bytes; all else is what JSON carries."""
    data: bytes = message.get("data", b"")
    text = json.dumps(message | {"data": None} if "data" in message else message).encode("ascii")
    return HEADER.pack(len(text), len(data)) + text + data


def sizes(head: bytes, most: int) -> tuple[int, int]:
    """How many bytes of JSON and of data follow a header. Raises Malformed when they are more than `most`."""
    text, data = HEADER.unpack(head)
    if text + data > most:
        raise Malformed(f"a frame of {text + data} bytes, at most {most} may come")
    return text, data


def unpack(text: bytes, data: bytes) -> Message:
    """The message of a frame. Raises Malformed."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise Malformed("a frame without JSON") from fault
    if type(message) is not dict or (data and "data" not in message) or message.get("data") is not None:
        raise Malformed("a frame without a message")
    return message | {"data": data} if "data" in message else message


def said(fault: BaseException) -> str:
    """The text of a fault, bounded, and encodable whatever names it has in it."""
    return str(fault).encode("utf-8", "backslashreplace").decode("utf-8")[:MOST_SAID]


def receive(sock: socket.socket, most: int = MOST_BYTES) -> Message | None:
    """One message from a blocking socket, or None when the peer is gone. Raises Malformed."""
    head = _exactly(sock, HEADER.size)
    if head is None:
        return None
    text_size, data_size = sizes(head, most)
    text = _exactly(sock, text_size)
    data = _exactly(sock, data_size) if text is not None else None
    return unpack(text, data) if text is not None and data is not None else None


def send(sock: socket.socket, message: Message) -> None:
    """Send one message; a peer that is gone is no error, for nobody is left to tell."""
    try:
        sock.sendall(pack(message))
    except _GONE:
        pass


def attach(sock: socket.socket, fd: int) -> None:
    """Send a descriptor with one byte, after all that was sent before; a peer that is gone is no error."""
    try:
        socket.send_fds(sock, [b"s"], [fd])
    except _GONE:
        pass


def _exactly(sock: socket.socket, size: int) -> bytes | None:
    pieces: list[bytes] = []
    while size:
        try:
            piece = sock.recv(min(size, 1 << 20))
        except _GONE:
            return None
        if not piece:
            return None
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def serve(sock: socket.socket, handle: Callable[[Message, socket.socket], None], until: int | None = None) -> None:
    """Fork a child for each request until the peer is gone or the descriptor `until` is readable.

    A fault of ours in a child is answered as `{"broke": …}`, for nobody reads what a launcher prints.
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
        try:
            fds = taken(sock)
        except _GONE:
            return
        if fds is None:
            return
        for fd in fds:
            _fork(sock, fd, handle)
            os.close(fd)


def taken(sock: socket.socket) -> list[int] | None:
    """The descriptors that came with one byte, or None at the end. Raises OSError."""
    numbers = array.array("i")
    data, attached, _, _ = sock.recvmsg(1, socket.CMSG_SPACE(numbers.itemsize), socket.MSG_CMSG_CLOEXEC)
    for level, kind, body in attached:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            numbers.frombytes(body[: len(body) - len(body) % numbers.itemsize])
    return numbers.tolist() if data else None


def _fork(sock: socket.socket, fd: int, handle: Callable[[Message, socket.socket], None]) -> None:
    parent = os.getpid()
    try:
        child = os.fork()
    except OSError:
        return  # no room for another process: the peer sees its socket end
    if child == 0:
        try:
            syscalls.die_with_parent(parent)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            sock.close()
            with socket.socket(fileno=fd) as peer:
                _answer(peer, handle)
        finally:
            os._exit(0)


def _answer(peer: socket.socket, handle: Callable[[Message, socket.socket], None]) -> None:
    try:
        message = receive(peer)
        if message is not None:
            handle(message, peer)
    except Exception as fault:
        trace = fault.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = f"{trace.tb_frame.f_code.co_name}, line {trace.tb_lineno}" if trace else "nowhere"
        send(peer, {"broke": f"{type(fault).__name__} in {where}"})
