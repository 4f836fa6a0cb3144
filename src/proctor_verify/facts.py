"""What is remembered of a run while its journal streams by: attempts, what groups of trials add up to, and blocks."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from proctor_verify.design import NO_TRIAL
from proctor_verify.money import Bill, Flight
from proctor_verify.vocabulary import UNPAID

# Outcomes of attempts that are never final: the next one takes their place.
SUPERSEDED = frozenset({"interrupted", "lost"})


class Grade(NamedTuple):
    """A grade as an entry states it."""

    grade: str
    reason: str | None
    reward: int | float | None

    @classmethod
    def of(cls, body: dict[str, Any]) -> Grade:
        """From an `attempt.graded` or a `trial.final`."""
        return cls(body["grade"], body["reason"], body["reward"])


class FileFact(NamedTuple):
    """A file as an entry names it."""

    sha256: str
    size: int
    role: str


@dataclass(slots=True)
class OpenAttempt:
    """An attempt between its admission and its end.

    `opening` is the one in which it was admitted, `tally` that of its model and arm. `flying` are its exchanges between
    theirs, `next_exchange` counts all that were admitted, `unanswered` has 1 for each of them that ended without an
    answer, and `told` are the reasons of those, and of those that were refused. `unknown` is whether nobody was left to
    hear the end of one. `boundary` is the last that it reached, counted from 1.
    """

    id: str
    trial: int
    folder: str
    opening: int
    block: int = NO_TRIAL
    is_row: bool = False
    model: str | None = None
    arm: str = ""
    tally: Tally | None = None
    flying: dict[str, Flight] = field(default_factory=dict)
    next_exchange: int = 0
    unanswered: bytearray = field(default_factory=bytearray)
    told: set[str] = field(default_factory=set)
    unknown: bool = False
    bill: Bill = field(default_factory=Bill)
    answers: int = 0
    agent_started: bool = False
    agent_ended: dict[str, Any] | None = None
    verifier_ended: dict[str, Any] | None = None
    agent_world: bool = False
    verifier_world: bool = False
    graded: dict[str, Any] | None = None
    grade: Grade | None = None
    boundary: int = 0
    files: dict[str, FileFact] = field(default_factory=dict)

    @property
    def short_for(self) -> str | None:
        """The reason for which it stays ungraded, as it says: an exchange of it was not paid for, or not taken."""
        if self.grade is None or self.grade.grade != "ungraded" or self.grade.reason not in UNPAID:
            return None
        return self.grade.reason

    def leave_unanswered(self, exchange: str) -> None:
        """An exchange of it ended without an answer; one that is out of order has no place here."""
        index = int(exchange.rpartition("/")[2])
        if index < len(self.unanswered):
            self.unanswered[index] = 1


class EndedAttempt(NamedTuple):
    """The last attempt of a trial that has no final yet, and the opening in which it ended."""

    id: str
    outcome: str
    exception: str | None
    grade: Grade | None
    opening: int


# Rewards are mostly the same few.
_exact = lru_cache(256)(Fraction)


@dataclass(slots=True)
class Tally:
    """What one model and arm has so far: finals by grade and reason, ends of attempts by exception.

    `dropped` are the grades that superseded attempts had been given.
    """

    grades: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    ungraded_reasons: Counter[str] = field(default_factory=Counter)
    exceptions: Counter[str] = field(default_factory=Counter)
    superseded: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    replaced: int = 0
    rewards: int = 0
    reward_sum: Fraction = Fraction(0)
    bill: Bill = field(default_factory=Bill)

    def add_final(self, final: Grade) -> None:
        """Count a final in."""
        self.grades[final.grade] += 1
        if final.reason is not None:
            self.reasons[final.reason] += 1
            if final.grade == "ungraded":
                self.ungraded_reasons[final.reason] += 1
        if final.reward is not None and final.grade != "ungraded":
            # The decimal that stands in the journal, not the double that it is read as.
            self.rewards += 1
            self.reward_sum += _exact(repr(final.reward))


class Blocks:
    """Every planned block as a number, its place in the drawn order, and how far it came.

    `pending` counts those that were admitted, and have not ended.
    """

    def __init__(self, index_of: array[int]) -> None:
        self.index_of = index_of
        self.admitted_in = array("I", bytes(4 * len(index_of)))
        self.finals = array("I", bytes(4 * len(index_of)))
        self.ended = bytearray(len(index_of))
        self.pending = 0
        self._at = array("I", bytes(4 * len(index_of)))
        for block, index in enumerate(index_of):
            self._at[index] = block

    def at(self, index: int) -> int:
        """The block of that index, or NO_TRIAL."""
        return self._at[index] if index < len(self._at) else NO_TRIAL
