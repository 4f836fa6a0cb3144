"""What a keeper is told of one command: the words of `Exec`, and the means that hold its limits."""

from __future__ import annotations

import resource

from proctor.sandbox.base import Exec, SandboxSpec
from proctor.sandbox.namespace.cgroups import Group
from proctor.sandbox.namespace.launcher import wire
from proctor.sandbox.namespace.limits import LimitPlan

_OPEN_FILES = 65_536


def job(command: Exec, deadline_sec: float, spec: SandboxSpec, limits: LimitPlan, group: Group | None) -> wire.Message:
    """The request that runs `command` in the world of `spec`."""
    files = min(_OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    rlimits = {"core": (1, 1), "nofile": (files, files)}
    if limits.rlimit_nproc is not None:
        most = min(limits.rlimit_nproc, _bound(resource.RLIMIT_NPROC))
        rlimits["nproc"] = (most, most)
    if limits.rlimit_fsize is not None:
        most = min(limits.rlimit_fsize, _bound(resource.RLIMIT_FSIZE))
        rlimits["fsize"] = (most, most)
    return {
        "op": "exec",
        "argv": [str(word) for word in command.argv],
        "env": {str(name): str(text) for name, text in {**spec.env, **command.env}.items()},
        "cwd": command.cwd,
        "user": command.user,
        "data": command.stdin,
        "stdout": str(command.stdout.absolute()),
        "stderr": str(command.stderr.absolute()) if command.stderr is not None else None,
        "cap": command.output_cap,
        "deadline": deadline_sec,
        "leave_running": command.leave_running,
        "rlimits": rlimits,
        "groups": [str(path) for path in group.entrances] if group else [],
        "memory": limits.watch_memory,
        "storage": limits.watch_storage,
        "pids": limits.watch_pids,
    }


def _bound(kind: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return 2**62 if hard == resource.RLIM_INFINITY else hard
