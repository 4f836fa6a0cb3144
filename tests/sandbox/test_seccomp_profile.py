"""The filter that container engines are given refuses what the filter of namespaces refuses, in the same way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_namespace_seccomp import AARCH64, ALLOW, X86_64, answer, refused

from proctor.sandbox.namespace.launcher import seccomp
from proctor.sandbox.seccomp_profile import profile

MACHINES = {"x86_64": X86_64, "aarch64": AARCH64}
_COMPARE = {
    "SCMP_CMP_EQ": lambda arg, first: first == arg["value"],
    "SCMP_CMP_GT": lambda arg, first: first > arg["value"],
    "SCMP_CMP_MASKED_EQ": lambda arg, first: first & arg["value"] == arg["valueTwo"],
}


def engines_answer(machine: str, name: str, first: int = 0) -> int:
    """What the engine's filter would answer to a call, by its name."""
    given_: dict[str, Any] = json.loads(profile(machine))
    for rule in given_["syscalls"]:
        if name in rule["names"] and all(_COMPARE[arg["op"]](arg, first) for arg in rule["args"]):
            return refused(rule["errnoRet"])
    assert given_["defaultAction"] == "SCMP_ACT_ALLOW"
    return ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_every_call_of_the_table_is_refused_alike(machine: str) -> None:
    for abi in seccomp.abis(machine):
        for name, number in (abi.denied | abi.absent).items():
            assert engines_answer(machine, name) == answer(machine, abi.audit, number), name
    for name in ("read", "execve", "ptrace", "clone", "unshare", "socketpair"):
        assert engines_answer(machine, name) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("call", ["clone", "unshare"])
@given(flags=st.integers(0, 2**32 - 1) | st.sampled_from([17, 0x3D0F00, *(1 << bit for bit in range(32))]))
def test_flags_of_new_namespaces_are_refused_alike(machine: str, call: str, flags: int) -> None:
    number = getattr(seccomp.abis(machine)[0], call)
    assert engines_answer(machine, call, flags) == answer(machine, MACHINES[machine], number, flags)


@pytest.mark.parametrize("machine", MACHINES)
@given(family=st.integers(0, 80) | st.integers(0, 2**32 - 1))
def test_families_of_sockets_are_refused_alike(machine: str, family: int) -> None:
    number = seccomp.abis(machine)[0].socket
    assert engines_answer(machine, "socket", family) == answer(machine, MACHINES[machine], number, family)


@given(family=st.integers(0, 2**32 - 1), above=st.integers(1, 2**32 - 1))
def test_what_stands_above_the_half_that_the_kernel_reads_hides_no_family(family: int, above: int) -> None:
    assert engines_answer("x86_64", "socket", above << 32 | family) != ALLOW


def test_a_machine_without_a_table_is_an_error() -> None:
    with pytest.raises(OSError, match="no system call table"):
        profile("vax")
