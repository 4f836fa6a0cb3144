"""What a dead process left outside of its run folder, or in its scratch folder: found by its marks, and removed."""

from __future__ import annotations

from proctor.admission.admit import token_for
from proctor.admission.worlds import kind_of
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.lock import read_lock
from proctor.evidence.runfolder import RunFolder
from proctor.rollout.scratch import clear_dead
from proctor.study.design import read_design


def prune_run(run: RunFolder) -> list[str]:
    """Remove processes, mounts, control groups, containers and layers that attempts of the run left; returns what.

    Evidence stays, and so do worlds that were kept.

    Raises:
        Refusal: RUN_LOCKED while a process runs it, for which everything there may be in use; RUN_NOT_FOUND, or the
            evidence cannot be read.
    """
    lock = read_lock(run)
    if lock.live:
        raise Refusal(
            Reason.RUN_LOCKED, "a process runs this, and may use what is there", path=str(run.path), observed=lock.pid
        )
    token = token_for(run)
    removed = kind_of(read_design(run.design_path)).prune(run.scratch, token)
    clear_dead(run, token)
    return removed
