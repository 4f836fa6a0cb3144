"""Sealed tokens: what may act on the world takes one, and only admission makes them.

`Probe` allows read-only looks at the machine while admission gathers facts. `Admitted` allows effects: sandboxes,
agents, writes into a run folder. A static test holds that nothing outside `proctor.admission` calls `seal_*`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn


class _Seal:
    pass


_SEAL = _Seal()


class Probe:
    """Permission to look: local and network probes, read-only, each with a deadline."""

    __slots__ = ("deadline_sec",)

    def __init__(self, seal: _Seal, deadline_sec: float) -> None:
        if seal is not _SEAL:
            _forged("Probe")
        self.deadline_sec = deadline_sec


@dataclass(frozen=True)
class Admitted:
    """Permission to act, for one admitted run.

    `run_dir` is where evidence goes; `label` is carried by everything that the run makes outside of it, so that it
    can be found and pruned.
    """

    seal: Any
    run_id: str
    run_dir: Path
    design_sha256: str
    label: str

    def __post_init__(self) -> None:
        if self.seal is not _SEAL:
            _forged("Admitted")


def seal_probe(deadline_sec: float) -> Probe:
    """For `proctor.admission` only."""
    return Probe(_SEAL, deadline_sec)


def seal_admitted(*, run_id: str, run_dir: Path, design_sha256: str, label: str) -> Admitted:
    """For `proctor.admission` only."""
    return Admitted(_SEAL, run_id, run_dir, design_sha256, label)


def _forged(what: str) -> NoReturn:
    raise TypeError(f"{what} can be made by admission only")
