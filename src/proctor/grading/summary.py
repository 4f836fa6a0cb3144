"""grade_summary.json: a run's grades counted, for each model and arm and for all; recomputable from the journal.

Input is every planned trial with its final, if it has one. A planned trial without a final counts as
ungraded with the reason `not_run`. Every denominator comes from the planned list.

The document is `{"format": 1, "all": G, "groups": [{"model", "arm", ...G}, ...]}`. There is one group for each pair
(model, arm) that is planned, sorted by model (null first) and then arm, both by Unicode code point. `G` is:

- `planned`, `pass`, `fail`, `ungraded`: trials; the last three add up to the first.
- `ungraded_by_reason`: reason id → trials; only reasons that occur; adds up to `ungraded`.
- `headline`: rate of `pass` over `planned`.
- `graded_only`: rate of `pass` over `pass + fail`, and `comparable`: whether that denominator is `planned`.
- `bounds`: `low` is the rate of `pass`, `high` the rate of `pass + ungraded`, both over `planned`: what the headline
  would be if all that is ungraded had failed, or had passed.
- `mean_reward`: over the trials that passed or failed and have a reward: `trials` (how many), `num` and `den` (text:
  the exact mean in lowest terms, `den` positive), `decimal`, and `comparable`: whether `trials` is `planned`. With
  no such trial, `num`, `den` and `decimal` are null. A reward is the decimal number that stands in the journal.

A rate is `{"num", "den", "decimal"}`: integers as counted, not reduced. `decimal` is text with six places, rounded
half up (the integer part of `value * 10^6 + 1/2`, rounded towards minus infinity); null where `den` is 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from proctor.core.outcomes import GradeState
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.grading.rewards import Number

FORMAT = 1
_PLACES = 6


@dataclass(frozen=True, slots=True)
class Counted:
    """How a trial ended: its last attempt's grade; `reason` is an id, None for a pass."""

    state: GradeState
    reason: str | None = None
    reward: Number | None = None


_NOT_RUN = Counted(GradeState.UNGRADED, Reason.NOT_RUN.id)


def summarize(trials: Iterable[tuple[str | None, str, Counted | None]]) -> dict[str, Any]:
    """The content of grade_summary.json; the module says what each field is.

    Args:
        trials: model, arm and final of every planned trial, once each; None where it has no final.

    Raises:
        Refusal: `evidence_damaged` where an ungraded final has no reason.
    """
    # runs of 100,000 trials end in a few ways
    groups: dict[tuple[str | None, str], Counter[Counted]] = {}
    for model, arm, final in trials:
        if final is not None and final.state is GradeState.UNGRADED and final.reason is None:
            raise Refusal(Reason.EVIDENCE_DAMAGED, "an ungraded final has no reason", observed=[model, arm])
        groups.setdefault((model, arm), Counter())[final or _NOT_RUN] += 1
    return {
        "format": FORMAT,
        "all": _group(sum(groups.values(), Counter[Counted]())),
        "groups": [
            {"model": model, "arm": arm, **_group(groups[model, arm])}
            for model, arm in sorted(groups, key=lambda key: (key[0] is not None, key[0] or "", key[1]))
        ],
    }


def _group(finals: Counter[Counted]) -> dict[str, Any]:
    planned = finals.total()
    states: Counter[GradeState] = Counter()
    reasons: Counter[str | None] = Counter()
    for final, count in finals.items():
        states[final.state] += count
        if final.state is GradeState.UNGRADED:
            reasons[final.reason] += count
    passed, failed, unknown = (states[state] for state in (GradeState.PASS, GradeState.FAIL, GradeState.UNGRADED))
    return {
        "planned": planned,
        "pass": passed,
        "fail": failed,
        "ungraded": unknown,
        "ungraded_by_reason": dict(sorted((str(reason), count) for reason, count in reasons.items())),
        "headline": _rate(passed, planned),
        "graded_only": {**_rate(passed, passed + failed), "comparable": passed + failed == planned},
        "bounds": {"low": _rate(passed, planned), "high": _rate(passed + unknown, planned)},
        "mean_reward": _mean(finals, planned),
    }


def _rate(num: int, den: int) -> dict[str, Any]:
    return {"num": num, "den": den, "decimal": _decimal(Fraction(num, den)) if den else None}


def _mean(finals: Counter[Counted], planned: int) -> dict[str, Any]:
    # A double's shortest text is what the journal holds; the double itself is a fraction that nobody wrote.
    rewards = [
        (Fraction(repr(final.reward)), count)
        for final, count in finals.items()
        if final.state is not GradeState.UNGRADED and final.reward is not None
    ]
    trials = sum(count for _, count in rewards)
    if not rewards:
        return {"trials": 0, "num": None, "den": None, "decimal": None, "comparable": trials == planned}
    mean = sum((reward * count for reward, count in rewards), Fraction(0)) / trials
    return {
        "trials": trials,
        "num": str(mean.numerator),
        "den": str(mean.denominator),
        "decimal": _decimal(mean),
        "comparable": trials == planned,
    }


def _decimal(value: Fraction) -> str:
    """Six places, half up."""
    scaled = math.floor(value * 10**_PLACES + Fraction(1, 2))
    whole, part = divmod(abs(scaled), 10**_PLACES)
    return f"{'-' if scaled < 0 else ''}{whole}.{part:0{_PLACES}d}"
