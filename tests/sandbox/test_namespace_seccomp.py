"""The system call filter, run by an interpreter of its instructions."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.sandbox.namespace.launcher import holder, seccomp

ALLOW, KILL = 0x7FFF0000, 0x80000000
X86_64, I386, AARCH64 = 0xC000003E, 0x40000003, 0xC00000B7


def answer(machine: str, arch: int, number: int, first: int = 0) -> int:
    """What the kernel would answer to a call."""
    ops = list(struct.iter_unpack("=HBBI", seccomp.program(machine)))
    data = struct.pack("<IIQ6Q", number, arch, 0, first, 0, 0, 0, 0, 0)
    at = accumulator = 0
    while True:
        code, if_true, if_false, value = ops[at]
        at += 1
        match code:
            case 0x20:
                accumulator = struct.unpack_from("<I", data, value)[0]
            case 0x05:
                at += value
            case 0x06:
                return value
            case 0x15 | 0x35 | 0x45:
                hit = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[code]
                at += if_true if hit else if_false
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


def refused(number: int) -> int:
    return 0x00050000 | number


@pytest.mark.parametrize(
    ("machine", "arch", "calls"),
    [
        ("x86_64", X86_64, {"mount": 165, "keyctl": 250, "bpf": 321, "setns": 308, "perf": 298, "fsopen": 430}),
        ("x86_64", I386, {"mount": 21, "keyctl": 288, "bpf": 357, "setns": 346, "perf": 336, "fsopen": 430}),
        ("aarch64", AARCH64, {"mount": 40, "keyctl": 219, "bpf": 280, "setns": 268, "perf": 241, "fsopen": 430}),
    ],
)
def test_what_reaches_beyond_is_denied_on_every_machine(machine: str, arch: int, calls: dict[str, int]) -> None:
    for name, number in calls.items():
        assert answer(machine, arch, number) == refused(errno.EPERM), name
    for number in (425, 426, 427, 435):
        assert answer(machine, arch, number) == refused(errno.ENOSYS)


@pytest.mark.parametrize(
    ("arch", "machine", "calls"),
    [
        (X86_64, "x86_64", [0, 1, 2, 39, 57, 59, 62, 101, 105, 161, 202, 257, 310, 436, 439]),
        (I386, "x86_64", [1, 3, 4, 11, 20, 26, 37]),
        (AARCH64, "aarch64", [48, 56, 63, 64, 93, 117, 129, 221, 222, 436]),
    ],
)
def test_what_programs_need_is_allowed(arch: int, machine: str, calls: list[int]) -> None:
    for number in calls:
        assert answer(machine, arch, number) == ALLOW


@pytest.mark.parametrize(
    ("machine", "arch", "clone", "unshare"),
    [("x86_64", X86_64, 56, 272), ("x86_64", I386, 120, 310), ("aarch64", AARCH64, 220, 97)],
)
def test_processes_and_threads_are_made_and_namespaces_not(machine: str, arch: int, clone: int, unshare: int) -> None:
    threads, plain = 0x3D0F00, 0x11
    assert answer(machine, arch, clone, plain) == answer(machine, arch, clone, threads) == ALLOW
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert answer(machine, arch, clone, plain | flag) == refused(errno.EPERM)
        assert answer(machine, arch, unshare, flag) == refused(errno.EPERM)
    assert answer(machine, arch, unshare, 0x200) == ALLOW  # CLONE_FS


@given(st.integers(0, 60))
def test_only_sockets_that_namespaces_hold_are_made(family: int) -> None:
    wanted = ALLOW if family in (0, 1, 2, 10, 16, 17) else refused(errno.EAFNOSUPPORT)
    for machine, arch, number in (("x86_64", X86_64, 41), ("x86_64", I386, 359), ("aarch64", AARCH64, 198)):
        assert answer(machine, arch, number, family) == wanted


@given(st.integers(0, 2**32 - 1))
def test_foreign_architectures_and_x32_are_shut_out(number: int) -> None:
    assert answer("x86_64", AARCH64, number) == KILL
    assert answer("aarch64", X86_64, number) == KILL
    assert answer("x86_64", X86_64, 0x40000000 | number) == refused(errno.ENOSYS)


def test_a_machine_without_a_table_is_named() -> None:
    with pytest.raises(OSError, match="machine"):
        seccomp.program("vax")
    assert seccomp.machines() == holder.machines()
