"""Where an attempt's layers lie: emptied after it, and of what dead processes left; worlds that are kept stay."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from proctor.core.canonical import encode
from proctor.core.strictjson import loads
from proctor.core.tokens import Admitted
from proctor.evidence.runfolder import RunFolder
from proctor.rollout.job import Job
from proctor.rollout.tools import Tools
from proctor.sandbox.base import MARKER, Snapshot

KEPT = "kept.json"


def scratch_of(run: RunFolder, trial: str, number: int) -> Path:
    """Where an attempt's layers lie while it lives: short, since mount options are."""
    return run.scratch / f"{trial[:8]}-{number}"


def clear_scratch(job: Job, tools: Tools) -> None:
    """Remove the attempt's scratch folder, unless it is kept."""
    if not job.keep:
        _remove_empty(scratch_of(tools.run, job.trial, job.number))


def clear_dead(run: RunFolder, admitted: Admitted) -> None:
    """Remove what attempts of dead processes left in the scratch folder, but for worlds that were kept.

    A folder without a marker held no world yet; one with a marker could not be removed now, and is left to `prune`.
    """
    for left in run.scratch.iterdir() if run.scratch.is_dir() else ():
        if any(left.glob(f"*/*/{MARKER}")):
            _remove_empty(left)
        elif not (left / KEPT).is_file():
            shutil.rmtree(left, ignore_errors=True)


def _remove_empty(folder: Path) -> None:
    # what is not empty is a world that was kept, or that could not be removed yet and whose marker says so
    for here, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            Path(here).rmdir()


def let_go(job: Job, snapshot: Snapshot, tools: Tools) -> None:
    """Remove a captured world, or leave it for `proctor shell` with a note of how to fork it."""
    if not job.keep:
        tools.kind.release(snapshot, tools.admitted)
        return
    tools.kind.keep(snapshot)
    (scratch_of(tools.run, job.trial, job.number) / KEPT).write_bytes(
        encode(
            {
                "kind": snapshot.kind,
                "root": None if snapshot.root is None else str(snapshot.root),
                "layers": [str(layer) for layer in snapshot.layers],
                "facts": dict(snapshot.facts),
                "env": dict(job.world.env),
            }
        )
    )


def kept(attempt_scratch: Path) -> tuple[Snapshot, dict[str, str]] | None:
    """The world that an attempt kept, and its environment; None where it kept none."""
    path = attempt_scratch / KEPT
    if not path.is_file():
        return None
    said = loads(path.read_bytes(), path=str(path))
    root = None if said["root"] is None else Path(said["root"])
    layers = tuple(Path(layer) for layer in said["layers"])
    return Snapshot(said["kind"], root, layers, said["facts"]), said["env"]
