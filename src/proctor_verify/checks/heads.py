"""Checkpoints, wherever they stand, held against the journal of the run."""

from __future__ import annotations

from collections.abc import Iterator

from proctor_verify.elsewhere import Head
from proctor_verify.places import witnessed_here
from proctor_verify.run import Run


def head_fault(run: Run, head: Head) -> str | None:
    """What keeps a checkpoint from being one of this journal."""
    if head.fault is not None:
        return head.fault
    if head.size == 0:
        return "covers no entry"
    if head.size > run.size:
        return f"covers {head.size:,} entries, and {run.size:,} stand in the journal"
    root = run.roots[head.size]
    return None if root == head.root else f"has root {head.root.hex()} at {head.size}, the journal {root.hex()}"


def witnessed(run: Run) -> Iterator[Head]:
    """The checkpoints of this journal that a witness who was named may have signed; none where none was named."""
    witnesses, since = run.elsewhere.asked.witnesses, run.elsewhere.since
    if not witnesses:
        return
    found = [head for place in run.elsewhere.places for head in place.heads]
    found += [since] if since is not None else []
    found += witnessed_here(run.folder, sorted(run.note_sizes), witnesses)
    yield from (head for head in found if head_fault(run, head) is None)
