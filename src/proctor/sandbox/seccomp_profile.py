"""The system calls that nothing inside may make, as container engines take them: the same as in namespaces.

The engine's own profile lets through what its release did not know yet: sockets of the machine below, io_uring, which
opens any socket behind a filter's back.
"""

from __future__ import annotations

import json
from typing import Any

from proctor.sandbox.namespace.launcher import seccomp

_ARCHITECTURES = {
    "x86_64": {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"]},
    "aarch64": {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
}


def profile(machine: str | None = None) -> str:
    """JSON for the engine's `seccomp=` option.

    Raises:
        OSError: ENOSYS for a machine (this one by default) without a table.
    """
    abis = seccomp.abis(machine)
    denied = sorted({name for abi in abis for name in abi.denied})
    absent = sorted({name for abi in abis for name in abi.absent})
    rules = [_rule(denied, seccomp.EPERM), _rule(absent, seccomp.ENOSYS)]
    for bit in range(64):
        if seccomp.NEW_NAMESPACES & 1 << bit:
            has_bit = {"index": 0, "value": 1 << bit, "valueTwo": 1 << bit, "op": "SCMP_CMP_MASKED_EQ"}
            rules.append(_rule(["clone", "unshare"], seccomp.EPERM, has_bit))
    # whole words are compared here, and the kernel looks at the lower half: what is above is over the highest family
    for family in range(max(seccomp.FAMILIES)):
        if family not in seccomp.FAMILIES:
            is_it = {"index": 0, "value": family, "op": "SCMP_CMP_EQ"}
            rules.append(_rule(["socket"], seccomp.EAFNOSUPPORT, is_it))
    is_above = {"index": 0, "value": max(seccomp.FAMILIES), "op": "SCMP_CMP_GT"}
    rules.append(_rule(["socket"], seccomp.EAFNOSUPPORT, is_above))
    architectures = [entry for name, entry in _ARCHITECTURES.items() if seccomp.abis(name) == abis]
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "archMap": architectures, "syscalls": rules})


def _rule(names: list[str], number: int, arg: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": number, "args": [arg] if arg else []}
