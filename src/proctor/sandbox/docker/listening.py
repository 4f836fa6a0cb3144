"""A socket that listens inside a container's network and is ours: connections to it are accepted out here."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.rules import GATEWAY_PORT

ADDRESS = "127.0.0.1"
_BACKLOG = 1024
_CLONE_NEWNET = 0x40000000


def listening_socket(container: str, pid: int) -> socket.socket:
    """Bind `ADDRESS` inside, at `GATEWAY_PORT` or where that is taken at a free one.

    `pid` is the container's PID 1 out here.
    Blocks for less than a millisecond.

    Raises:
        Refusal: NETWORK_UNAVAILABLE where that container's network cannot be entered from here.
    """
    # a thread enters alone, and ends there: it is no thread of anybody else's
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(_listen, container, pid).result()


def _listen(container: str, pid: int) -> socket.socket:
    from proctor.sandbox.linux import syscalls

    try:
        with _opened(container, pid) as pidfd:
            syscalls.setns(pidfd, _CLONE_NEWNET)
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                made.bind((ADDRESS, GATEWAY_PORT))
            except OSError:
                made.bind((ADDRESS, 0))
            made.listen(_BACKLOG)
            made.setblocking(False)
        except OSError:
            made.close()
            raise
        return made
    except OSError as fault:
        raise Refusal(
            Reason.NETWORK_UNAVAILABLE,
            f"nothing of ours can listen in the container's network: {fault}",
            required="root, on the machine where the engine runs",
        ) from fault


@contextlib.contextmanager
def _opened(container: str, pid: int) -> Iterator[int]:
    """A pidfd of the container's PID 1. Raises OSError where that process is none of the container's."""
    pidfd = os.pidfd_open(pid)
    try:
        # read after the process was opened: a number that is another's by now shows here
        if container not in Path(f"/proc/{pid}/cgroup").read_text():
            raise ProcessLookupError(0, f"process {pid} here is not the container's")
        yield pidfd
    finally:
        os.close(pidfd)
