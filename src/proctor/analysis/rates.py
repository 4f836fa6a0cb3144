"""Rates of passed trials: intervals that are never of zero width, and what repeats say.

Wilson, E. B. (1927), Probable inference, the law of succession, and statistical inference; Clopper, C. J. and
Pearson, E. S. (1934), The use of confidence or fiducial limits. pass@k is the unbiased estimate of Chen, M. et al.
(2021), Evaluating large language models trained on code, equation 1; pass^k that of Yao, S. et al. (2024), tau-bench.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import comb, sqrt
from statistics import NormalDist

from proctor.analysis.interval import LEVEL, Interval
from proctor.analysis.special import beta_quantile


def wilson(passed: int, trials: int, level: float = LEVEL) -> Interval:
    """Wilson's score interval of a rate of independent trials; without trials it is everything."""
    if trials == 0:
        return Interval(0.0, 1.0, level, "wilson")
    z = NormalDist().inv_cdf((1 + level) / 2)
    rate, shrink = passed / trials, 1 + z * z / trials
    middle = (rate + z * z / (2 * trials)) / shrink
    half = z * sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials)) / shrink
    low = 0.0 if passed == 0 else middle - half
    high = 1.0 if passed == trials else middle + half
    return Interval(low, high, level, "wilson")


def clopper_pearson(passed: int, trials: int, level: float = LEVEL) -> Interval:
    """The exact interval of a rate of independent trials, which never covers less than its level."""
    tail = (1 - level) / 2
    low = 0.0 if passed == 0 else beta_quantile(passed, trials - passed + 1, tail)
    high = 1.0 if passed == trials else beta_quantile(passed + 1, trials - passed, 1 - tail)
    return Interval(low, high, level, "clopper-pearson")


@dataclass(frozen=True)
class Repeats:
    """Over the tasks that have k graded repeats (`tasks` of `planned`): the mean chance that of k tries drawn without
    replacement any passes (`any_passes`, pass@k), and that all do (`all_pass`, pass^k). Null where no task has k."""

    k: int
    tasks: int
    planned: int
    any_passes: Fraction | None
    all_pass: Fraction | None


def repeats(tasks: Iterable[tuple[int, int]], k: int) -> Repeats:
    """pass@k and pass^k of tasks given as (graded repeats, passed repeats)."""
    counts = list(tasks)
    enough = [(graded, passed) for graded, passed in counts if graded >= k]
    if not enough:
        return Repeats(k, 0, len(counts), None, None)
    any_passes = sum((pass_at_k(*each, k) or Fraction(0) for each in enough), Fraction(0)) / len(enough)
    all_pass = sum((pass_hat_k(*each, k) or Fraction(0) for each in enough), Fraction(0)) / len(enough)
    return Repeats(k, len(enough), len(counts), any_passes, all_pass)


def pass_at_k(graded: int, passed: int, k: int) -> Fraction | None:
    """The chance that any of k repeats, drawn from those graded, passed; None where there are fewer than k."""
    return None if graded < k else 1 - Fraction(comb(graded - passed, k), comb(graded, k))


def pass_hat_k(graded: int, passed: int, k: int) -> Fraction | None:
    """The chance that all of k repeats, drawn from those graded, passed; None where there are fewer than k."""
    return None if graded < k else Fraction(comb(passed, k), comb(graded, k))
