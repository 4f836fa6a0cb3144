"""Rates: intervals contain the point and are never of zero width; pass@k and pass^k as enumeration says."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.analysis.rates import clopper_pearson, pass_at_k, pass_hat_k, repeats, wilson


@st.composite
def counted(draw: st.DrawFn, most: int = 400) -> tuple[int, int]:
    trials = draw(st.integers(1, most))
    return draw(st.integers(0, trials)), trials


@given(counted(), st.sampled_from([0.8, 0.95, 0.99]))
@pytest.mark.parametrize("interval", [wilson, clopper_pearson])
def test_an_interval_holds_its_rate_and_has_width(interval, rate: tuple[int, int], level: float) -> None:
    passed, trials = rate
    found = interval(passed, trials, level)
    assert 0 <= found.low <= passed / trials <= found.high <= 1
    assert found.low < found.high
    mirrored = interval(trials - passed, trials, level)
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - found.high, 1 - found.low), abs=1e-9)


def test_without_trials_a_rate_may_be_anything() -> None:
    assert (wilson(0, 0).low, wilson(0, 0).high) == (0, 1)


def test_known_intervals() -> None:
    # Newcombe, R. G. (1998), Statistics in Medicine 17, table I
    assert (wilson(81, 263).low, wilson(81, 263).high) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert (clopper_pearson(81, 263).low, clopper_pearson(81, 263).high) == pytest.approx((0.2527, 0.3676), abs=5e-5)
    assert (wilson(0, 20).low, wilson(0, 20).high) == pytest.approx((0, 0.1611), abs=5e-5)
    assert (clopper_pearson(0, 20).low, clopper_pearson(0, 20).high) == pytest.approx((0, 0.1684), abs=5e-5)


@given(counted(60))
def test_clopper_pearson_leaves_half_of_alpha_in_each_tail(rate: tuple[int, int]) -> None:
    passed, trials = rate
    found = clopper_pearson(passed, trials)

    def at_least(hits: int, share: float) -> float:
        return sum(comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(hits, trials + 1))

    if passed:
        assert at_least(passed, found.low) == pytest.approx(0.025, rel=1e-6)
    if passed < trials:
        assert 1 - at_least(passed + 1, found.high) == pytest.approx(0.025, rel=1e-6)


@given(counted(7), st.integers(1, 8))
def test_repeats_as_enumeration_says(rate: tuple[int, int], k: int) -> None:
    passed, graded = rate
    if k > graded:
        assert pass_at_k(graded, passed, k) is None and pass_hat_k(graded, passed, k) is None
        return
    drawn = list(combinations([True] * passed + [False] * (graded - passed), k))
    assert pass_at_k(graded, passed, k) == Fraction(sum(map(any, drawn)), len(drawn))
    assert pass_hat_k(graded, passed, k) == Fraction(sum(map(all, drawn)), len(drawn))


def test_a_task_with_too_few_graded_repeats_is_counted_and_left_out() -> None:
    found = repeats([(3, 1), (3, 3), (2, 2)], 3)
    assert (found.tasks, found.planned, found.any_passes, found.all_pass) == (2, 3, 1, Fraction(1, 2))
    none = repeats([(1, 1)], 2)
    assert (none.tasks, none.any_passes, none.all_pass) == (0, None, None)
