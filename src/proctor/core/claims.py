"""How a claim about two arms is tested."""

from __future__ import annotations

from enum import StrEnum


class ClaimTest(StrEnum):
    """Exact and of single trials that pass or not, or by permutation of paired differences of any kind."""

    MCNEMAR = "mcnemar"
    SIGN_FLIP = "sign-flip"


class Direction(StrEnum):
    """Where the first arm is expected, against the second."""

    GREATER = "greater"
    LESS = "less"
    TWO_SIDED = "two-sided"
