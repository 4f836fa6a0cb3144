"""`python`: what a scorer function returned, as a score.

True and false, a finite number, or an object of named numbers with `reward` among them and, if it likes, a `detail`
of text. A reward of 1 or more is a pass. Anything else is a fault of the scorer, and leaves the answer ungraded.
"""

from __future__ import annotations

from typing import Any

from proctor.core.reasons import Reason
from proctor.grading.rewards import Number
from proctor.grading.scorers.base import DETAIL_CHARS, REWARD, Scored, is_number, partly, unscored

MAX_OUTPUTS = 200
MAX_NAME_CHARS = 100


def scored(value: Any) -> Scored:
    """The score of an answer for which the function returned this JSON value."""
    if isinstance(value, dict):
        detail = value.get("detail", "")
        numbers = {name: _number(each) for name, each in value.items() if name != "detail"}
        rewards = {name: number for name, number in numbers.items() if number is not None}
        fits = len(numbers) <= MAX_OUTPUTS and all(0 < len(name) <= MAX_NAME_CHARS for name in numbers)
        if REWARD not in rewards or len(rewards) < len(numbers) or not fits or not isinstance(detail, str):
            return unscored(Reason.SCORER_FAILED, "the scorer returned an object that is no `reward` with numbers")
        reward = rewards.pop(REWARD)
        return partly(reward, detail[:DETAIL_CHARS] or f"the scorer returned {reward}", rewards)
    single = _number(value)
    if single is None:
        return unscored(Reason.SCORER_FAILED, f"the scorer returned {type(value).__name__}, not a number")
    return partly(single, f"the scorer returned {value}", {})


def _number(value: Any) -> Number | None:
    if isinstance(value, bool):
        return float(value)
    if not is_number(value) or abs(value) > 2**53:
        return None
    number: Number = value
    return number
