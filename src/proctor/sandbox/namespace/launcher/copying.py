"""Between the host and a world: one process stays on the host, its child works inside, a socket between them.

Neither ever holds both sides, so no link, mount or race inside can make it touch a path of the host.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from proctor.sandbox.namespace.launcher import confine, wire

if TYPE_CHECKING:
    from proctor.sandbox.namespace.launcher.world import World

PIECE = 1 << 18
# a piece, or a name with every byte of it escaped, and its length twice in one message
MOST_BYTES = PIECE + (1 << 16)
SILENT_END: wire.Message = {"refused": "fault", "text": "the copy inside ended", "errno": 0}


class Unsafe(Exception):
    """A path that cannot be taken; the text says why."""


class Unreadable(Exception):
    """A file of the host that cannot be read; the text says why."""


class _HungUp(Exception):
    pass


def between(
    peer: socket.socket,
    world: World,
    outside: Callable[[socket.socket], wire.Message],
    inside: Callable[[socket.socket], None],
) -> None:
    """Answer `peer` with what `outside` returns while a child does `inside`; the child is gone afterwards.

    Where it fails the answer is `{"refused": …, "text": …, "errno": …}`: `unsafe` for a path or special file,
    `no_user` for an owner, `unreadable` for a source, `place` for what the world's files refuse, else `fault`.
    """
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
        answer = _refused("unsafe", fault)
    except Unreadable as fault:
        answer = _refused("unreadable", fault)
    except _HungUp:
        answer = {}
    except OSError as fault:
        answer = _refused("fault", fault)
    except (wire.Malformed, LookupError, TypeError, ValueError):
        answer = SILENT_END  # what came from inside is no message of ours
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    wire.send(peer, answer)


def refusal(end: wire.Message) -> wire.Message | None:
    """Why the child inside ended, as an answer; None where it was done."""
    return {key: end[key] for key in ("refused", "text", "errno")} if "refused" in end else None


def check_peer(peer: socket.socket) -> None:
    """Raises _HungUp when nobody waits for the answer any more."""
    if select.select([peer], [], [], 0)[0]:
        raise _HungUp


def _work_inside(sock: socket.socket, world: World, work: Callable[[socket.socket], None]) -> None:
    stage = "fault"
    try:
        world.enter(processes=False)
        stage = "place"
        work(sock)
    except Unsafe as fault:
        wire.send(sock, {"kind": "end"} | _refused("unsafe", fault))
    except confine.StartError as fault:
        wire.send(sock, {"kind": "end"} | _refused("no_user", fault))
    except OSError as fault:
        wire.send(sock, {"kind": "end"} | _refused(stage, fault))


def _refused(why: str, fault: Exception) -> wire.Message:
    return {"refused": why, "text": wire.said(fault), "errno": getattr(fault, "errno", None) or 0}


def fill(fd: int, sock: socket.socket) -> int:
    """Write data messages up to the empty one; blocks of zeros become holes. Returns the size."""
    size = 0
    while (message := wire.receive(sock, MOST_BYTES)) is not None and message["data"]:
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
