"""The system calls that nothing inside may make, as a BPF program.

A deny list, because the programs of tasks are unknown: what reaches outside of namespaces (keys, BPF, perf, modules,
file handles), what builds new ones, and what widens the kernel's surface (io_uring, userfaultfd) goes; the rest stays.
"""

from __future__ import annotations

import errno
import platform
import struct
from typing import NamedTuple

EPERM, ENOSYS, EAFNOSUPPORT = errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT

NEW_NAMESPACES = 0x7E020080  # every CLONE_NEW* flag
FAMILIES = (0, 1, 2, 10, 16, 17)  # unspec, unix, inet, inet6, netlink, packet: vsock and alg reach past namespaces

_LOAD, _JEQ, _JGE, _JSET, _JA, _RET = 0x20, 0x15, 0x35, 0x45, 0x05, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NR, _ARCH, _ARG0 = 0, 4, 16


class Abi(NamedTuple):
    """What is refused on one kind of system calls: numbers by name; `absent` ones are said not to exist."""

    audit: int
    denied: dict[str, int]
    clone: int
    unshare: int
    socket: int
    absent: dict[str, int]


_COMMON_ABSENT = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "clone3": 435}
_COMMON_DENIED = {
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "open_tree_attr": 467,
}

_X86_64 = Abi(
    0xC000003E,
    _COMMON_DENIED
    | {
        "syslog": 103,
        "uselib": 134,
        "vhangup": 153,
        "pivot_root": 155,
        "acct": 163,
        "settimeofday": 164,
        "mount": 165,
        "umount2": 166,
        "swapon": 167,
        "swapoff": 168,
        "reboot": 169,
        "sethostname": 170,
        "setdomainname": 171,
        "iopl": 172,
        "ioperm": 173,
        "init_module": 175,
        "delete_module": 176,
        "quotactl": 179,
        "lookup_dcookie": 212,
        "clock_settime": 227,
        "kexec_load": 246,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "perf_event_open": 298,
        "open_by_handle_at": 304,
        "clock_adjtime": 305,
        "setns": 308,
        "finit_module": 313,
        "kexec_file_load": 320,
        "bpf": 321,
        "userfaultfd": 323,
    },
    clone=56,
    unshare=272,
    socket=41,
    absent=_COMMON_ABSENT,
)
_I386 = Abi(
    0x40000003,
    _COMMON_DENIED
    | {
        "mount": 21,
        "umount": 22,
        "acct": 51,
        "umount2": 52,
        "sethostname": 74,
        "settimeofday": 79,
        "swapon": 87,
        "reboot": 88,
        "ioperm": 101,
        "syslog": 103,
        "iopl": 110,
        "swapoff": 115,
        "setdomainname": 121,
        "init_module": 128,
        "delete_module": 129,
        "quotactl": 131,
        "pivot_root": 217,
        "clock_settime": 264,
        "kexec_load": 283,
        "add_key": 286,
        "request_key": 287,
        "keyctl": 288,
        "perf_event_open": 336,
        "open_by_handle_at": 342,
        "clock_adjtime": 343,
        "setns": 346,
        "finit_module": 350,
        "bpf": 357,
        "userfaultfd": 374,
        "clock_settime64": 404,
        "clock_adjtime64": 405,
    },
    clone=120,
    unshare=310,
    socket=359,
    # Its arguments lie in memory where a filter cannot look; C libraries fall back to the calls it multiplexes.
    absent=_COMMON_ABSENT | {"socketcall": 102},
)
_AARCH64 = Abi(
    0xC00000B7,
    _COMMON_DENIED
    | {
        "lookup_dcookie": 18,
        "umount2": 39,
        "mount": 40,
        "pivot_root": 41,
        "vhangup": 58,
        "quotactl": 60,
        "acct": 89,
        "kexec_load": 104,
        "init_module": 105,
        "delete_module": 106,
        "clock_settime": 112,
        "syslog": 116,
        "reboot": 142,
        "sethostname": 161,
        "setdomainname": 162,
        "settimeofday": 170,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "swapon": 224,
        "swapoff": 225,
        "perf_event_open": 241,
        "open_by_handle_at": 265,
        "clock_adjtime": 266,
        "setns": 268,
        "finit_module": 273,
        "bpf": 280,
        "userfaultfd": 282,
        "kexec_file_load": 294,
    },
    clone=220,
    unshare=97,
    socket=198,
    absent=_COMMON_ABSENT,
)
_MACHINES: dict[str, tuple[Abi, ...]] = {"x86_64": (_X86_64, _I386), "aarch64": (_AARCH64,)}


def abis(machine: str | None = None) -> tuple[Abi, ...]:
    """What a machine (this one by default) runs, its own kind first.

    Raises:
        OSError: ENOSYS for a machine without a table.
    """
    found = _MACHINES.get(machine or platform.machine())
    if found is None:
        raise OSError(ENOSYS, "no system call table for this machine")
    return found


def machines() -> tuple[str, ...]:
    """The machines that a filter exists for, as `platform.machine()` names them."""
    return tuple(_MACHINES)


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _answer(number: int) -> bytes:
    return _op(_RET, _ERRNO | number)


def _abi_block(abi: Abi) -> bytes:
    ops = [_op(_LOAD, _NR)]
    if abi is _X86_64:
        ops += [_op(_JGE, 0x40000000, 0, 1), _answer(ENOSYS)]  # the x32 numbers would pass every comparison below
    for number in abi.denied.values():
        ops += [_op(_JEQ, number, 0, 1), _answer(EPERM)]
    for number in abi.absent.values():
        ops += [_op(_JEQ, number, 0, 1), _answer(ENOSYS)]
    for number in (abi.clone, abi.unshare):
        ops += [_op(_JEQ, number, 0, 4), _op(_LOAD, _ARG0), _op(_JSET, NEW_NAMESPACES, 0, 1), _answer(EPERM)]
        ops += [_op(_RET, _ALLOW)]
    ops += [_op(_JEQ, abi.socket, 0, len(FAMILIES) + 2), _op(_LOAD, _ARG0)]
    ops += [_op(_JEQ, family, len(FAMILIES) - index, 0) for index, family in enumerate(FAMILIES)]
    ops += [_answer(EAFNOSUPPORT), _op(_RET, _ALLOW)]
    return b"".join(ops)


def program(machine: str | None = None) -> bytes:
    """The filter for a machine (this one by default), 8 bytes an instruction.

    Raises:
        OSError: ENOSYS for a machine without a table.
    """
    ops = [_op(_LOAD, _ARCH)]
    for abi in abis(machine):
        block = _abi_block(abi)
        ops += [_op(_JEQ, abi.audit, 1, 0), _op(_JA, len(block) // 8), block]
    ops.append(_op(_RET, _KILL))
    return b"".join(ops)
