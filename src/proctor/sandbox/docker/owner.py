"""Whose a container or an image is, said in its labels: what a dead run left is found, and nothing else is touched."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from proctor.core.tokens import Admitted
from proctor.sandbox import processes

RUN = "proctor.run"
SCRATCH = "proctor.scratch"
OWNER = "proctor.owner"
# on what a build makes, and so on worlds that are made from that: its owner is not theirs
BUILDING = "proctor.building"


_TYPES = {
    "host": (str,),
    "boot": (str, type(None)),
    "pid": (int,),
    "started": (int, type(None)),
    "numbers": (str, type(None)),
}


@dataclass(frozen=True)
class Owner:
    """A process: its host, that host's boot, its number, and when it started (clock ticks since boot).

    `numbers` is the namespace that its number is of.
    """

    host: str
    boot: str | None
    pid: int
    started: int | None
    numbers: str | None

    def may_live(self) -> bool:
        """Whether it runs; another host's always may. One that is dead and not yet waited for runs no more."""
        if self.host != socket.gethostname():
            return True
        return self.boot == processes.boot() is not None and self.started is not None and _runs(self.pid, self.started)

    @property
    def can_be_seen(self) -> bool:
        """Whether it would be seen from here if it ran: a container may have its host's name, and never its numbers."""
        return self.boot != processes.boot() or self.numbers == _numbers() is not None


def labels(scratch: Path, admitted: Admitted) -> dict[str, str]:
    """What everything that this process makes for a world in `scratch` carries."""
    owner = Owner(socket.gethostname(), processes.boot(), os.getpid(), processes.started(os.getpid()), _numbers())
    return {
        RUN: admitted.label,
        SCRATCH: str(scratch.resolve()),
        OWNER: json.dumps(asdict(owner), sort_keys=True),
    }


def mark(admitted: Admitted) -> str:
    """What all that the builds of a run make in this process carries, as BUILDING, in letters that need no quotes."""
    return quote(json.dumps(labels(admitted.run_dir / "scratch", admitted), sort_keys=True), safe="")


def is_left_of_build(said: Mapping[str, str], scratch_root: Path) -> bool:
    """Whether something with those labels was made by a build whose process is dead; `is_left` for its owner."""
    try:
        carried = json.loads(unquote(said.get(BUILDING, "")))
    except (ValueError, RecursionError):
        return False
    if not isinstance(carried, dict) or not all(isinstance(text, str) for text in carried.values()):
        return False
    return is_left(carried, scratch_root)


def is_left(said: Mapping[str, str], scratch_root: Path) -> bool:
    """Whether something with those labels belongs to a process that is dead.

    Of what lies below `scratch_root` the caller knows that no process uses it, but for its own.
    """
    scratch = said.get(SCRATCH)
    owner = _owner(said.get(OWNER))
    if scratch is None or owner is None or owner.may_live():
        return False
    return owner.can_be_seen or Path(scratch).is_relative_to(scratch_root.resolve())


def _owner(text: str | None) -> Owner | None:
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.keys() != _TYPES.keys():
        return None
    if not all(type(value[name]) in types for name, types in _TYPES.items()):
        return None
    return Owner(**value)


def _numbers() -> str | None:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return None


def _runs(pid: int, started: int) -> bool:
    """Whether the process that started then runs; one that is another user's, and hidden from this one, may."""
    if processes.started(pid) == started:
        return True
    try:
        os.kill(pid, 0)
    except PermissionError:
        return not Path(f"/proc/{pid}").exists()
    except (OSError, OverflowError):
        return False
    return False
