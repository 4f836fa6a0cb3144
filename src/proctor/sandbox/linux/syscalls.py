"""The few system calls that Python lacks, through the C library that is loaded already.

All here, and below a launcher, runs in processes that enter sandboxes too. Such a process must never import, look up a
user or load a library after it entered, or it would load what the sandbox's files offer: `seal_imports` holds that.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_SLAVE = 0x80000

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38

SECCOMP_MODE_FILTER = 2
LAST_CAP_GUESS = 63

# one number on every machine, as for all calls since 5.1
_CLOSE_RANGE = 436
_CLOSE_RANGE_CLOEXEC = 4

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def setns(fd: int, kinds: int) -> None:
    """Enter the namespaces of `kinds` behind a pidfd, all in one call. Raises OSError."""
    _check(_libc.setns(ctypes.c_int(fd), ctypes.c_int(kinds)), "setns")


def unshare(kinds: int) -> None:
    """Make new namespaces for this process. Raises OSError."""
    _check(_libc.unshare(ctypes.c_int(kinds)), "unshare")


def mount(source: str | None, target: str, flags: int, kind: str | None = None, options: str = "") -> None:
    """Bind `source` on `target`, change the propagation of `target`, or mount a file system of `kind` there.

    Raises OSError.
    """
    result = _libc.mount(
        ctypes.c_char_p(os.fsencode(source) if source is not None else None),
        ctypes.c_char_p(os.fsencode(target)),
        ctypes.c_char_p(kind.encode() if kind is not None else None),
        ctypes.c_ulong(flags),
        ctypes.c_char_p(options.encode()),
    )
    _check(result, f"mount on {target}")


def prctl(option: int, value: int = 0, pointer: int = 0) -> None:
    """One prctl with up to two arguments. Raises OSError."""
    result = _libc.prctl(
        ctypes.c_int(option), ctypes.c_ulong(value), ctypes.c_void_p(pointer), ctypes.c_ulong(0), ctypes.c_ulong(0)
    )
    _check(result, f"prctl {option}")


def close_on_exec(first: int) -> None:
    """Have every descriptor from `first` on closed when this process becomes another program. Raises OSError."""
    every = ctypes.c_uint(2**32 - 1)
    flags = ctypes.c_uint(_CLOSE_RANGE_CLOEXEC)
    _check(_libc.syscall(ctypes.c_long(_CLOSE_RANGE), ctypes.c_uint(first), every, flags), "close_range")


def die_with_parent(parent: int) -> None:
    """End by SIGKILL when the parent ends; ends at once when it ended before the request. Raises OSError."""
    prctl(PR_SET_PDEATHSIG, 9)
    if os.getppid() != parent:
        os._exit(1)


def drop_bounding(keep: frozenset[int]) -> None:
    """Remove every capability outside of `keep` from the bounding set, as far as the kernel numbers them."""
    for number in range(LAST_CAP_GUESS + 1):
        if number in keep:
            continue
        try:
            prctl(PR_CAPBSET_DROP, number)
        except OSError:
            return  # numbers beyond the kernel's last capability


def install_filter(program: bytes) -> None:
    """Install a BPF program as seccomp filter. Raises OSError."""
    buffer = ctypes.create_string_buffer(program, len(program))

    class Fprog(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    fprog = Fprog(len(program) // 8, ctypes.addressof(buffer))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(fprog))


def blank_own_traces() -> None:
    """Empty this process's command line and environment as others see them, and give it a plain name."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    arg_start, arg_end, env_start, env_end = (int(fields[index]) for index in (45, 46, 47, 48))
    for start, end in ((arg_start, arg_end), (env_start, env_end)):
        if 0 < start < end:
            ctypes.memset(start, 0, end - start)
    name = ctypes.create_string_buffer(b"init")
    prctl(PR_SET_NAME, ctypes.addressof(name))


def seal_imports() -> None:
    """From now on only what is loaded already can be imported."""
    sys.meta_path.clear()
    sys.path.clear()
