"""A question row as every room sees it: read by tasks, answered by agents, scored by grading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from proctor.core.models import Message


class Scorer(StrEnum):
    """How an answer is compared with its row's target."""

    EXACT = "exact"
    CHOICE = "choice"
    REGEX = "regex"
    NUMBER = "number"
    JSON = "json"
    PYTHON = "python"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a number may be off: by `amount` itself, or by that share of the target where it is relative."""

    amount: Fraction
    relative: bool

    def allows(self, found: Fraction, wanted: Fraction) -> bool:
        """Whether `found` is near enough; the border itself is."""
        bound = self.amount * abs(wanted) if self.relative else self.amount
        return abs(found - wanted) <= bound


@dataclass(frozen=True, slots=True)
class Question:
    """One row of a question set.

    Args:
        id: its name in the set.
        messages: what the agent is asked, with choices and attached texts written out.
        target: a string, a number, or an object of named outputs, as the row has it.
        choices: texts by letter; empty where the row has none.
        tolerance: None where numbers must be equal.
        tools: the tools of this row; None for all that the study has.
        metadata: free values, for selecting.
        cluster: what rows that belong together share; None where it stands alone.
        scorer: the row's own, else the study's.
        scorer_function: of the scorer `python`: `module:function` or an installed scorer's name.
        row: the row itself, as it stands in the file.
    """

    id: str
    messages: tuple[Message, ...]
    target: Any
    choices: Mapping[str, str]
    tolerance: Tolerance | None
    tools: tuple[str, ...] | None
    metadata: Mapping[str, Any]
    cluster: str | None
    scorer: Scorer
    scorer_function: str | None
    row: Mapping[str, Any]
