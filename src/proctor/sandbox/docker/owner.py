"""Whose a container or an image is, said in its labels: what a dead run left is found, and nothing else is touched."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from proctor.core.tokens import Admitted

RUN = "proctor.run"
SCRATCH = "proctor.scratch"
OWNER = "proctor.owner"


@dataclass(frozen=True)
class Owner:
    """A process: its host, that host's boot, its number, and when it started (clock ticks since boot)."""

    host: str
    boot: str | None
    pid: int
    started: int | None

    def may_live(self) -> bool:
        """Whether it runs; another host's always may. One that is dead and not yet waited for runs no more."""
        if self.host != socket.gethostname():
            return True
        return self.boot == _boot() is not None and self.started is not None and _started(self.pid) == self.started


def labels(scratch: Path, admitted: Admitted) -> dict[str, str]:
    """What everything that this process makes for a world in `scratch` carries."""
    owner = Owner(socket.gethostname(), _boot(), os.getpid(), _started(os.getpid()))
    return {
        RUN: admitted.label,
        SCRATCH: str(scratch.resolve()),
        OWNER: json.dumps(asdict(owner), sort_keys=True),
    }


def is_left(said: Mapping[str, str], scratch_root: Path) -> bool:
    """Whether something with those labels belongs below `scratch_root` and to a process that is dead."""
    scratch = said.get(SCRATCH)
    owner = _owner(said.get(OWNER))
    if scratch is None or owner is None or not Path(scratch).is_relative_to(scratch_root.resolve()):
        return False
    return not owner.may_live()


def _owner(text: str | None) -> Owner | None:
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.keys() != {"host", "boot", "pid", "started"}:
        return None
    host, boot, pid, started = value["host"], value["boot"], value["pid"], value["started"]
    if type(host) is not str or (boot is not None and type(boot) is not str) or type(pid) is not int:
        return None
    return Owner(host, boot, pid, started if type(started) is int else None)


def _boot() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None


def _started(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when it does not run, or only waits to be waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
