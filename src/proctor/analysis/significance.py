"""Tests of "no difference" between two arms over the same tasks.

`mcnemar`: exact, of one binary trial each: of the tasks on which the arms disagree, how many favour one (McNemar, Q.
(1947), with the binomial distribution instead of its approximation; two-sided: twice the smaller tail, at most 1).
`sign_flip`: permutation of the signs of paired differences (Fisher, R. A. (1935), The design of experiments, section
21), over the whole distribution where it is small enough, else over seeded random draws, whose own error is said;
p is then (1 + hits) / (1 + draws), never zero (Phipson, B. and Smyth, G. K. (2010)).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import ceil, gcd, log, sqrt
from typing import Any

from proctor.analysis.paired import integers
from proctor.analysis.special import SMALLEST, binomial_at_least, binomial_at_most, log_choose
from proctor.core.claims import ClaimTest, Direction

# a second or so of work at most, and some tens of megabytes
_EXACT_WORK = 300_000_000
_EXACT_SUMS = 2_000_000
_DRAWN = 100_000_000
_MOST_DRAWS = 100_000
_LEAST_DRAWS = 4_000
_CHUNK = 4_000_000


@dataclass(frozen=True)
class PValue:
    """A p-value. `units` took part: tasks that differ, or their clusters. `draws` and `error` (its standard error) are
    null where the distribution is exact."""

    p: float
    test: str
    direction: str
    units: int
    draws: int | None = None
    error: float | None = None

    def as_record(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def mcnemar(first_only: int, second_only: int, direction: Direction) -> PValue:
    """The exact test of tasks that only one of two arms passed, one trial each."""
    discordant = first_only + second_only
    match direction:
        case Direction.GREATER:
            p = binomial_at_least(first_only, discordant) if first_only else 1.0
        case Direction.LESS:
            p = binomial_at_most(first_only, discordant) if second_only else 1.0
        case Direction.TWO_SIDED:
            p = 2 * binomial_at_most(min(first_only, second_only), discordant) if discordant else 1.0
    return PValue(_probability(p), ClaimTest.MCNEMAR.value, direction.value, discordant)


def sign_flip(
    differences: Sequence[Fraction],
    direction: Direction,
    *,
    clusters: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> PValue:
    """The permutation test of one difference a task; signs of a cluster flip together.

    Args:
        differences: first arm minus second, of each task.
        clusters: of each task, where tasks are not independent.
        seed: of the draws, where the distribution is too large.
    """
    scaled, _ = integers(differences) if differences else ([], 1)
    if clusters is not None:
        sums: dict[Hashable, int] = {}
        for value, cluster in zip(scaled, clusters, strict=True):
            sums[cluster] = sums.get(cluster, 0) + value
        scaled = list(sums.values())
    nonzero = [value for value in scaled if value]
    if not nonzero:
        return PValue(1.0, ClaimTest.SIGN_FLIP.value, direction.value, 0)
    unit = gcd(*nonzero)
    values = [value // unit for value in nonzero]
    exact = _exact(values, direction)
    if exact is not None:
        return PValue(_probability(exact), ClaimTest.SIGN_FLIP.value, direction.value, len(values))
    return _drawn(values, direction, seed)


def _exact(values: Sequence[int], direction: Direction) -> float | None:
    """Over all assignments of signs, or None where that is too much work."""
    groups = Counter(map(abs, values))
    total = sum(value * times for value, times in groups.items())
    if total > _EXACT_SUMS:
        return None
    reached, work = 1, 0
    for value, times in groups.items():
        work += (times + 1) * reached
        reached += value * times
    if work > _EXACT_WORK:
        return None
    import numpy as np

    # chances of the sum of those that keep a plus: the sum of all is twice that, minus the total
    chances = np.ones(1)
    for value, times in groups.items():
        wider = np.zeros(len(chances) + value * times)
        weights = np.exp(log_choose(times, np.arange(times + 1)) - times * log(2))
        for plus, weight in enumerate(weights):
            wider[plus * value : plus * value + len(chances)] += weight * chances
        chances = wider
    observed = (total + sum(values)) // 2
    upper, lower = chances[observed:].sum(), chances[: observed + 1].sum()
    match direction:
        case Direction.GREATER:
            return float(upper)
        case Direction.LESS:
            return float(lower)
    far = max(observed, total - observed)
    return 1.0 if 2 * far == total else 2 * float(chances[far:].sum())


def _drawn(values: Sequence[int], direction: Direction, seed: int) -> PValue:
    import numpy as np

    largest = max(map(abs, values))
    numbers = np.array([float(Fraction(value, largest)) for value in values])
    observed = float(Fraction(sum(values), largest))
    # sums that are equal on paper may differ in their last digits
    slack = 1e-12 * float(np.abs(numbers).sum())
    draws = min(_MOST_DRAWS, max(_LEAST_DRAWS, _DRAWN // len(values)))
    random, hits = np.random.Generator(np.random.PCG64(seed)), 0
    step = max(1, _CHUNK // len(values))
    for _ in range(ceil(draws / step)):
        signs = random.integers(0, 2, size=(step, len(values)), dtype=np.int8)
        sums = 2 * (signs @ numbers) - numbers.sum()
        match direction:
            case Direction.GREATER:
                hits += int((sums >= observed - slack).sum())
            case Direction.LESS:
                hits += int((sums <= observed + slack).sum())
            case Direction.TWO_SIDED:
                hits += int((np.abs(sums) >= abs(observed) - slack).sum())
    draws = ceil(draws / step) * step
    p = (1 + hits) / (1 + draws)
    return PValue(p, ClaimTest.SIGN_FLIP.value, direction.value, len(values), draws, sqrt(p * (1 - p) / draws))


def holm(ps: Sequence[float]) -> list[float]:
    """P-values of a family adjusted so that the chance of any false claim stays below alpha.

    Holm, S. (1979), A simple sequentially rejective multiple test procedure; in the order of the input.
    """
    adjusted, before = [0.0] * len(ps), 0.0
    for rank, at in enumerate(sorted(range(len(ps)), key=lambda at: ps[at])):
        before = max(before, min(1.0, (len(ps) - rank) * ps[at]))
        adjusted[at] = before
    return adjusted


def _probability(p: float) -> float:
    return min(1.0, max(SMALLEST, float(p)))
