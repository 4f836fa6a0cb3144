"""What a design could find: against enumeration of every outcome."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.analysis.power import mcnemar_power, smallest_by_mcnemar, smallest_by_t
from proctor.analysis.significance import mcnemar
from proctor.core.claims import Direction

GREATER, BOTH = Direction.GREATER, Direction.TWO_SIDED


def enumerated(pairs: int, discordance: float, difference: float, alpha: float, direction: Direction) -> float:
    """Over every count of tasks won and lost: the chance of those in which the test finds the first arm better."""
    win, lose = (discordance + difference) / 2, (discordance - difference) / 2
    chance = 0.0
    for won in range(pairs + 1):
        for lost in range(pairs - won + 1):
            if won > lost and mcnemar(won, lost, direction).p <= alpha:
                ways = comb(pairs, won) * comb(pairs - won, lost)
                chance += ways * win**won * lose**lost * (1 - win - lose) ** (pairs - won - lost)
    return chance


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 14),
    st.integers(1, 10),
    st.integers(0, 10),
    st.sampled_from([0.01, 0.05, 0.2]),
    st.sampled_from([GREATER, BOTH]),
)
def test_power_as_enumeration_says(pairs: int, discordant: int, won: int, alpha: float, direction: Direction) -> None:
    discordance = discordant / 10
    difference = discordance * won / 10
    wanted = enumerated(pairs, discordance, difference, alpha, direction)
    assert mcnemar_power(pairs, discordance, difference, alpha, direction) == pytest.approx(wanted, abs=1e-9)


def test_five_tasks_can_find_nothing_on_two_sides() -> None:
    assert smallest_by_mcnemar(5, 0.4, 0.05, BOTH) is None
    assert smallest_by_mcnemar(5, 0.4, 0.05, GREATER) is not None
    found = smallest_by_mcnemar(80, 0.1125, 0.05, BOTH)
    assert found is not None
    assert mcnemar_power(80, 0.1125, found, 0.05, BOTH) == pytest.approx(0.8, abs=1e-3)


def test_a_difference_of_means_needs_nearly_three_standard_errors() -> None:
    assert smallest_by_t(0.01, 1000, 0.05, BOTH) == pytest.approx(0.028, abs=1e-4)
    assert smallest_by_t(0.01, 1000, 0.05, GREATER) < smallest_by_t(0.01, 5, 0.05, GREATER)
