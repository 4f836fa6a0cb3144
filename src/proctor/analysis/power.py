"""What a design could have found: never from the difference that it did find, which says nothing more than p does.

Hoenig, J. M. and Heisey, D. M. (2001), The abuse of power. For McNemar's test the power is exact, over the number of
tasks on which the arms disagree (Miettinen, O. S. (1968), The matched pairs design, unconditional form). For means the
smallest detectable difference is a multiple of the standard error (Bloom, H. S. (1995), Minimum detectable effects).
"""

from __future__ import annotations

from math import ceil, floor, sqrt
from typing import Any

from proctor.analysis.special import binomial_at_least, log_choose, t_quantile
from proctor.core.claims import Direction

POWER = 0.8
_STEPS = 24


def mcnemar_power(pairs: int, discordance: float, difference: float, alpha: float, direction: Direction) -> float:
    """The chance that the exact test finds a true difference on the side where it is.

    Args:
        pairs: tasks, one trial each in two arms.
        discordance: share of tasks on which the arms disagree; at least `difference`.
        difference: between the arms' rates, positive.
    """
    import numpy as np

    tail = alpha / 2 if direction is Direction.TWO_SIDED else alpha
    discordance = min(1.0, max(discordance, difference))
    around, spread = pairs * discordance, 10 * sqrt(pairs * discordance * (1 - discordance)) + 10
    counts = np.arange(max(0, floor(around - spread)), min(pairs, ceil(around + spread)) + 1)
    needed = _needed(counts, tail)
    wins = min(1.0, (discordance + difference) / (2 * discordance))
    found = np.where(needed > counts, 0.0, binomial_at_least(np.minimum(needed, counts), counts, wins))
    if discordance == 1.0:
        return float(found[counts == pairs][0])
    chances = log_choose(pairs, counts) + counts * np.log(discordance) + (pairs - counts) * np.log1p(-discordance)
    return float((np.exp(chances) * found).sum())


def smallest_by_mcnemar(pairs: int, discordance: float, alpha: float, direction: Direction) -> float | None:
    """The smallest difference that is found with `POWER` at such a discordance; None where there is none.

    A difference above the discordance brings a discordance of its own size with it.
    """
    if mcnemar_power(pairs, 1.0, 1.0, alpha, direction) < POWER:
        return None
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if mcnemar_power(pairs, discordance, middle, alpha, direction) >= POWER:
            high = middle
        else:
            low = middle
    return high


def smallest_by_t(standard_error: float, units: int, alpha: float, direction: Direction) -> float:
    """The smallest difference of means that is found with `POWER`, at this standard error of so many units."""
    tail = alpha / 2 if direction is Direction.TWO_SIDED else alpha
    return (t_quantile(units - 1, 1 - tail) + t_quantile(units - 1, POWER)) * standard_error


def _needed(totals: Any, tail: float) -> Any:
    """Of so many disagreements, how many must favour one arm for the test to find it; more than all where none can."""
    import numpy as np

    low, high = np.zeros_like(totals) - 1, totals + 1
    while (high - low > 1).any():
        middle = (low + high) // 2
        enough = binomial_at_least(middle, totals) <= tail
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return high
