"""Exit status: one enum for the process, the manifest and the journal's `run.ended`."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What the operating system sees when a proctor command ends.

    A trial that failed is no error: `DONE`. `DOES_NOT_HOLD` says that the work is done and what was asked
    does not hold (verification failed, a final is ungraded, an arm is unscored).
    """

    DONE = 0
    DOES_NOT_HOLD = 1
    USAGE = 2
    REFUSED = 3
    STOPPED = 4
    INFRASTRUCTURE = 5
    HANGUP = 129
    INTERRUPTED = 130
    TERMINATED = 143

    @property
    def doc(self) -> str:
        """One line for the reference page."""
        return _DOC[self]


_DOC = {
    Exit.DONE: "done",
    Exit.DOES_NOT_HOLD: "done, and what was asked does not hold (verification failed, a final ungraded)",
    Exit.USAGE: "usage, or nothing readable there",
    Exit.REFUSED: "refused: a typed record says why, what is needed and what to do",
    Exit.STOPPED: "stopped by budget, deadline or operator",
    Exit.INFRASTRUCTURE: "infrastructure failed",
    Exit.HANGUP: "interrupted by SIGHUP",
    Exit.INTERRUPTED: "interrupted by SIGINT (a drained run too)",
    Exit.TERMINATED: "interrupted by SIGTERM",
}
