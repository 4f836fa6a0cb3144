"""PID 1 of every sandbox: a program of some hundred bytes that needs nothing of the sandbox's files.

A shell would do, but in a forked world the shell is what an agent left there, and PID 1 is the one process that
keeps its powers and is spared by every kill. It has its orphans reaped by the kernel, and only then says one byte, that
the world is set up: an orphan that died before would stand there, dead, for good. Then it drops all descriptors but the
first, and ends when its standard input ends.
"""

from __future__ import annotations

import platform
import struct

_BASE = 0x400000
_HEADERS = 64 + 56

_X86_64 = bytes.fromhex(
    "6a00 6a00 6a00 6a01"  # struct sigaction: SIG_IGN, no flags
    "b80d000000 bf11000000 4889e6 31d2 41ba08000000 0f05"  # rt_sigaction(SIGCHLD, stack, 0, 8)
    "b801000000 bf01000000 4889e6 ba01000000 0f05"  # write(1, stack, 1)
    "b8b4010000 bf01000000 beffffffff 31d2 0f05"  # close_range(1, ~0, 0)
    "31c0 31ff 4889e6 ba01000000 0f05"  # again: read(0, stack, 1)
    "85c0 7fee"  # while it reads something
    "b8e7000000 31ff 0f05"  # exit_group(0)
)


def _mov(register: int, value: int) -> int:
    return 0xD2800000 | value << 5 | register


_SVC = 0xD4000001
_X1_IS_SP = 0x910003E1
_AARCH64 = struct.pack(
    "<35I",
    *(0xD10083FF, _mov(9, 1), 0xF90003E9, 0xA900FFFF, 0xF9000FFF),  # struct sigaction: SIG_IGN, no flags
    *(_mov(0, 17), _X1_IS_SP, _mov(2, 0), _mov(3, 8), _mov(8, 134), _SVC),  # rt_sigaction(SIGCHLD, stack, 0, 8)
    *(_mov(0, 1), _X1_IS_SP, _mov(2, 1), _mov(8, 64), _SVC),  # write(1, stack, 1)
    *(_mov(0, 1), 0x12800001, _mov(2, 0), _mov(8, 436), _SVC),  # close_range(1, ~0, 0)
    *(_mov(0, 0), _X1_IS_SP, _mov(2, 1), _mov(8, 63), _SVC),  # again: read(0, stack, 1)
    *(0xF100001F, 0x5400000C | (-6 & 0x7FFFF) << 5),  # while it reads something
    *(_mov(0, 0), _mov(8, 94), _SVC),  # exit_group(0)
    *([0xD503201F] * 4),
)
_MACHINES = {"x86_64": (62, _X86_64), "aarch64": (183, _AARCH64)}


def machines() -> tuple[str, ...]:
    """The machines that the program exists for, as `platform.machine()` names them."""
    return tuple(_MACHINES)


def image(machine: str | None = None) -> bytes:
    """A static ELF executable for a machine (this one by default).

    Raises:
        KeyError: a machine that it does not exist for.
    """
    number, code = _MACHINES[machine or platform.machine()]
    size = _HEADERS + len(code)
    ident = b"\x7fELF" + bytes([2, 1, 1, 0]) + bytes(8)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 2, number, 1, _BASE + _HEADERS, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x10000)
    return header + segment + code
