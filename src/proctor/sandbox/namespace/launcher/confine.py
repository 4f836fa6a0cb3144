"""The last steps of a child between fork and exec: everything that makes a command's process powerless."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import stat
import termios
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from proctor.sandbox.linux import syscalls
from proctor.sandbox.namespace.launcher import seccomp

# What root inside keeps: the powers over users and files of the sandbox that package managers and `su` need, and none
# over mounts, other processes, networks or the kernel.
_CHOWN, _DAC_OVERRIDE, _FOWNER, _FSETID, _KILL, _SETGID, _SETUID, _SETPCAP = 0, 1, 3, 4, 5, 6, 7, 8
_NET_BIND_SERVICE, _SYS_CHROOT, _AUDIT_WRITE, _SETFCAP = 10, 18, 29, 31
KEPT_CAPABILITIES = frozenset(
    {_CHOWN, _DAC_OVERRIDE, _FOWNER, _FSETID, _KILL, _SETGID, _SETUID, _SETPCAP}
    | {_NET_BIND_SERVICE, _SYS_CHROOT, _AUDIT_WRITE, _SETFCAP}
)
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TABLE_CAP = 1 << 20
_ROOT = ["root", "", "0", "0", "", "/root", ""]
_LIMITS = {
    "nproc": resource.RLIMIT_NPROC,
    "fsize": resource.RLIMIT_FSIZE,
    "nofile": resource.RLIMIT_NOFILE,
    # 1 and not 0: the kernel then skips a core_pattern that pipes to a program of the host.
    "core": resource.RLIMIT_CORE,
}


class StartError(Exception):
    """The command cannot be run; the text says why."""


class User(NamedTuple):
    """Who a command runs as, by the sandbox's own tables."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


def become(job: dict[str, Any], *, terminal: bool = False) -> NoReturn:
    """Turn into the command of `job`; only returns by raising. With `terminal`, standard input is one to control it.

    Raises:
        StartError: user, working folder or program cannot be had.
        OSError: a confinement step failed.
    """
    os.umask(0o022)
    os.setsid()
    if terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for name, (soft, hard) in job["rlimits"].items():
        resource.setrlimit(_LIMITS[name], (soft, hard))
    user = find_user(job["user"])
    if not job["many_users"] and (user.uid, user.gid) != (0, 0):
        raise StartError(f"user {job['user']!r}: this sandbox has only one user")
    syscalls.drop_bounding(KEPT_CAPABILITIES)
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    if job["many_users"]:
        os.setgroups(user.groups)
    os.setgid(user.gid)
    os.setuid(user.uid)
    try:
        os.chdir(job["cwd"])
    except (OSError, ValueError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else fault
        raise StartError(f"working folder {job['cwd']!r}: {why}") from None
    env = {"PATH": _PATH, "HOME": user.home, "USER": user.name, "LOGNAME": user.name, "LANG": "C.UTF-8"} | job["env"]
    syscalls.install_filter(seccomp.program())
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_DFL)
        except OSError:
            pass  # the C library keeps two real-time signals for itself
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    # A command that inherited the socket of its own request answered it itself.
    syscalls.close_on_exec(3)
    _execute(job["argv"], env)


def _execute(argv: list[str], env: dict[str, str]) -> NoReturn:
    program = argv[0]
    places = [""] if "/" in program else [f"{place or '.'}/" for place in env.get("PATH", _PATH).split(":")]
    worst: OSError | None = None
    for place in places:
        try:
            os.execve(place + program, argv, env)
        except (FileNotFoundError, NotADirectoryError) as fault:
            worst = worst or fault
        except OSError as fault:
            worst = fault
        except ValueError as fault:
            raise StartError(f"{program!r}: {fault}") from None
    raise StartError(f"{program!r}: {worst.strerror if worst else 'not found'}")


def find_user(wanted: str | None) -> User:
    """A user by name or number, optionally `user:group`, as the tables in /etc say; root when None.

    Raises:
        StartError: no such name there.
    """
    who, _, group = (wanted or "0").partition(":")
    rows = list(_table("/etc/passwd", 7))
    # root whatever an agent made of the table, or of the file
    row = _ROOT if who in ("0", "root") else next((row for row in rows if row[0] == who), None)
    if row is None and _is_id(who):
        row = next((row for row in rows if row[2] == who), [who, "", who, "0", "", "/", ""])
    if row is None or not (_is_id(row[2]) and _is_id(row[3])):
        raise StartError(f"user {who!r}: not in /etc/passwd")
    name, uid, gid, home = row[0], int(row[2]), int(row[3]), row[5] or "/"
    groups = [row for row in _table("/etc/group", 4) if _is_id(row[2])]
    if group:
        found = next((int(row[2]) for row in groups if row[0] == group), int(group) if _is_id(group) else None)
        if found is None:
            raise StartError(f"group {group!r}: not in /etc/group")
        return User(name, uid, found, (found,), home)
    member = {int(row[2]) for row in groups if name in row[3].split(",")}
    return User(name, uid, gid, tuple(sorted(member | {gid})), home)


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) < 2**32 - 1


def _table(path: str, columns: int) -> Iterator[list[str]]:
    """Rows of a table that an agent may have replaced by anything: never waits, never reads without bound."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return
        data = os.read(fd, _TABLE_CAP)
    finally:
        os.close(fd)
    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        row = line.split(":")
        if len(row) >= columns:
            yield row
