"""Writing into a run that is over: where that fails, a resume would help nobody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal


@contextmanager
def told_to_do_it_again(what: str) -> Iterator[None]:
    """Refusals of a full or read-only disk say that, with space made, `what` is to be done again."""
    try:
        yield
    except Refusal as refusal:
        if refusal.reason not in (Reason.WRITE_FAILED, Reason.DISK_FULL):
            raise
        remedy = f"Make the run folder one that can be written to, with space left, and {what} again."
        raise Refusal(refusal.reason, refusal.message, path=refusal.path, remedy=remedy) from refusal
