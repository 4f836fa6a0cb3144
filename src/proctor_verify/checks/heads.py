"""Checkpoints from outside of the run, held against its journal."""

from __future__ import annotations

from proctor_verify.elsewhere import Head
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
