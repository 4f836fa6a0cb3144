"""An operator's shell in a running world: as powerless as any command there, on a terminal of its own.

The shell that runs is what an agent left there. So it gets neither the powers that merely entering the namespaces
would leave it, nor the operator's terminal, into which it could type.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import sys
import termios
import tty
from pathlib import Path

from proctor.sandbox.linux import syscalls
from proctor.sandbox.namespace.launcher import confine
from proctor.sandbox.namespace.launcher.world import NAMESPACES, World

_PIECE = 1 << 14
# what shells say of a command that cannot be run
_NOT_ENTERED = 126


def main(pid: int) -> int:
    """Run a shell in the world whose PID 1 is the host's process `pid`; its exit status as a shell would say it."""
    terminal = os.isatty(0)
    ours, theirs = os.openpty() if terminal else (-1, -1)
    job = {
        "argv": ["/bin/sh", "-i"] if terminal else ["/bin/sh"],
        "env": {"TERM": os.environ.get("TERM", "dumb")},
        "cwd": "/",
        "user": None,
        "rlimits": {},
    }
    if terminal:
        _same_size(ours)
    try:
        world = _world(pid)
        world.enter(processes=True)
    except OSError as fault:
        os.write(2, f"the world cannot be entered: {os.strerror(fault.errno or 0)}\n".encode())
        return _NOT_ENTERED
    child = os.fork()
    if child == 0:
        _become(job | {"many_users": world.many_users}, theirs)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if terminal:
        os.close(theirs)
        signal.signal(signal.SIGWINCH, lambda *_: _same_size(ours))
        _relay(ours)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return 128 - code if code < 0 else code


def _world(pid: int) -> World:
    kinds = NAMESPACES
    if Path(f"/proc/{pid}/ns/net").readlink() == Path("/proc/self/ns/net").readlink():
        kinds &= ~syscalls.CLONE_NEWNET
    many_users = Path(f"/proc/{pid}/uid_map").read_text(encoding="ascii").split()[-1] != "1"
    return World(os.pidfd_open(pid), kinds, many_users, ())


def _become(job: dict[str, object], terminal: int) -> None:
    try:
        if terminal >= 0:
            for number in range(3):
                os.dup2(terminal, number)
        confine.become(job, terminal=terminal >= 0)
    except (confine.StartError, OSError) as fault:
        os.write(2, f"{fault}\n".encode("utf-8", "replace"))
    finally:
        os._exit(127)


def _same_size(ours: int) -> None:
    size = fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8))
    fcntl.ioctl(ours, termios.TIOCSWINSZ, size)


def _relay(ours: int) -> None:
    """Carry keys and output between the two terminals until the shell's is closed."""
    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSADRAIN)  # what was typed already stays
    try:
        sources = [0, ours]
        while True:
            ready = select.select(sources, [], [])[0]
            if ours in ready:
                os.write(1, os.read(ours, _PIECE))
            if 0 in ready:
                keys = os.read(0, _PIECE)
                if keys:
                    os.write(ours, keys)
                else:
                    sources.remove(0)
    except OSError:
        return  # how a terminal says that its other end is closed
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
