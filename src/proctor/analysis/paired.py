"""The difference between two arms over the same tasks: the task is the unit, its repeats are averaged before.

The standard error is that of the paired differences, clustered where tasks belong to clusters, as in Miller, E.
(2024), Adding error bars to evals, sections 2.2 and 4; with the factor G / (G - 1) and Student's t with G - 1 degrees
of freedom for G clusters (Cameron, A. C. and Miller, D. L. (2015), A practitioner's guide to cluster-robust inference,
section VI), which is the ordinary paired t interval where each task is a cluster of its own.

Where every unit shows the same difference d the standard error is zero and says nothing. For values from 0 to 1 the
interval is then d plus what a share u of units that behave in any other way could move it, where u = 1 - (1 -
level)^(1 / units) is the largest share of which none would have been met with probability 1 - level.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, lcm
from typing import NamedTuple

from proctor.analysis.interval import LEVEL, Interval
from proctor.analysis.special import t_quantile

_LARGEST = Fraction(sys.float_info.max)


@dataclass(frozen=True)
class Estimate:
    """A mean over tasks, or over differences of tasks. `units` are tasks, or clusters where there are any.

    `interval` is None where nothing can be said: fewer than two units, or no spread, of values without bounds.
    """

    tasks: int
    units: int
    clustered: bool
    mean: Fraction
    standard_error: float | None
    interval: Interval | None


def estimate(
    values: Sequence[Fraction],
    *,
    span: tuple[int, int] | None,
    clusters: Sequence[Hashable] | None = None,
) -> Estimate | None:
    """Mean of one value a task with its standard error and interval; None without a task.

    Args:
        values: of each task: its rate, or the difference between two arms on it.
        span: between what the values must lie, such as (-1, 1) for differences of rates; None where nothing bounds
            them.
        clusters: of each task, where tasks are not independent.
    """
    if not values:
        return None
    scaled, scale = integers(values)
    count, total = len(scaled), sum(scaled)
    # in units of 1 / (scale * count): exact, however many tasks
    residuals = [value * count - total for value in scaled]
    if clusters is not None:
        residuals = _sums(residuals, clusters)
    units, middle = len(residuals), Fraction(total, scale * count)
    squares = sum(each * each for each in residuals)
    error = None
    if units > 1:
        error = _root(Fraction(squares * units, (units - 1) * (scale * count * count) ** 2))
    interval = _interval(number(middle), error, units, span)
    return Estimate(count, units, clusters is not None, middle, error, interval)


def _interval(mean: float, error: float | None, units: int, span: tuple[int, int] | None) -> Interval | None:
    if error:
        reach = t_quantile(units - 1, (1 + LEVEL) / 2) * error
        least, most = span if span is not None else (-sys.float_info.max, sys.float_info.max)
        return Interval(max(least, mean - reach), min(most, mean + reach), LEVEL, "t")
    if span is None:
        return None
    unseen = 1 - (1 - LEVEL) ** (1 / units)
    return Interval(mean - unseen * (mean - span[0]), mean + unseen * (span[1] - mean), LEVEL, "no-spread")


def mean(values: Sequence[Fraction]) -> Fraction:
    """The exact mean of at least one value."""
    scaled, scale = integers(values)
    return Fraction(sum(scaled), scale * len(scaled))


def number(value: Fraction) -> float:
    """The closest double; a reward may be as large as a double can be, and a difference of two of them larger."""
    return float(max(-_LARGEST, min(_LARGEST, value)))


def _root(value: Fraction) -> float:
    # 64 bits behind the point of numerator * denominator: more than a double holds, and nothing overflows
    return number(Fraction(isqrt(value.numerator * value.denominator << 128), value.denominator << 64))


def integers(values: Sequence[Fraction]) -> tuple[list[int], int]:
    """The values times their least common denominator, and that denominator."""
    scale = lcm(*{value.denominator for value in values})
    return [value.numerator * (scale // value.denominator) for value in values], scale


def _sums(values: Sequence[int], groups: Sequence[Hashable]) -> list[int]:
    sums: dict[Hashable, int] = {}
    for value, group in zip(values, groups, strict=True):
        sums[group] = sums.get(group, 0) + value
    return list(sums.values())


class Repeated(NamedTuple):
    """One task in one arm: how many repeats were planned, passed, and stayed ungraded (not run included)."""

    planned: int
    passed: int
    ungraded: int

    @property
    def rate(self) -> Fraction | None:
        """The share that passed, None where a repeat is ungraded."""
        return None if self.ungraded else Fraction(self.passed, self.planned)


def difference_bounds(first: Sequence[Repeated], second: Sequence[Repeated]) -> tuple[Fraction, Fraction] | None:
    """The least and the greatest that the difference over all planned tasks can be, whatever is ungraded.

    The least: all that is ungraded failed in the first arm and passed in the second.
    """
    if not first:
        return None
    low = high = Fraction(0)
    # of many tasks most are alike
    for (one, other), times in Counter(zip(first, second, strict=True)).items():
        low += times * (Fraction(one.passed, one.planned) - Fraction(other.passed + other.ungraded, other.planned))
        high += times * (Fraction(one.passed + one.ungraded, one.planned) - Fraction(other.passed, other.planned))
    return low / len(first), high / len(first)
