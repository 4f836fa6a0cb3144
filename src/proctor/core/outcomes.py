"""How attempts end, and what trials come to: the words that stand in the journal."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """How an attempt ended."""

    COMPLETED = "completed"
    INFRASTRUCTURE = "infrastructure"
    INTERRUPTED = "interrupted"
    LOST = "lost"


# never final, and never a replacement that was used up
SUPERSEDED = frozenset({Outcome.INTERRUPTED, Outcome.LOST})


class GradeState(StrEnum):
    """The three states of a grade."""

    PASS = "pass"
    FAIL = "fail"
    UNGRADED = "ungraded"
