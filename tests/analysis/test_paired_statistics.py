"""Paired statistics against those of real runs of peers, against enumeration, and at the edges."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.analysis.paired import Repeated, difference_bounds, estimate
from proctor.analysis.significance import holm, mcnemar, sign_flip
from proctor.core.claims import Direction

SHARES = st.integers(0, 4).map(lambda passed: Fraction(passed, 4))
DIFFERENCES = st.lists(st.builds(lambda one, other: one - other, SHARES, SHARES), min_size=1, max_size=9)
DIRECTIONS = st.sampled_from(list(Direction))
SPAN = (-1, 1)


def trials(file: Path, ungraded: str) -> dict[str, bool]:
    """Instances of a peer's result file; what is null counts as `ungraded` says."""
    told = json.loads(file.read_bytes())
    if "results" in told:
        told = {row["task_id"]: row["is_resolved"] for row in told["results"]}
    if ungraded == "graded":
        return {name: value for name, value in told.items() if value is not None}
    return {name: ungraded == "pass" if value is None else value for name, value in told.items()}


BENCH = ("terminal-bench/goose-sonnet-4.run1.results.json", "terminal-bench/goose-opus-4.run1.results.json")
SWE = ("swe-bench-pro/gptoss-paper.eval_results.json", "swe-bench-pro/kimi-k2-instruct-10132025.eval_results.json")


@pytest.mark.parametrize(
    ("files", "ungraded", "name"),
    [
        (BENCH, "fail", "terminal-bench goose sonnet-4 run1 vs goose opus-4 run1, fail"),
        (BENCH, "graded", "terminal-bench goose sonnet-4 run1 vs goose opus-4 run1, graded"),
        (BENCH, "pass", "terminal-bench goose sonnet-4 run1 vs goose opus-4 run1, pass"),
        (SWE, "graded", "swe-bench-pro gptoss vs kimi-k2"),
    ],
)
def test_real_pairs_give_what_their_index_says(cases: Path, files: tuple[str, str], ungraded: str, name: str) -> None:
    wanted = json.loads((cases / "logs/expected.json").read_bytes())["PAIRS"][name]
    one, other = (trials(cases / "logs" / file, ungraded) for file in files)
    both = sorted(one.keys() & other.keys())
    found = estimate([Fraction(one[task]) - Fraction(other[task]) for task in both], span=SPAN)
    assert found is not None and found.interval is not None
    assert found.tasks == wanted["n_paired"]
    assert float(found.mean) == pytest.approx(wanted["difference_a_minus_b"], abs=1e-12)
    assert found.standard_error == pytest.approx(wanted["se_paired"], rel=1e-9)
    assert [found.interval.low, found.interval.high] == pytest.approx(wanted["ci95_t"], abs=1e-9)
    only = [sum(one[task] > other[task] for task in both), sum(one[task] < other[task] for task in both)]
    assert only == [wanted["table"]["only_a"], wanted["table"]["only_b"]]
    exact = wanted["mcnemar_exact_p"]
    assert mcnemar(*only, Direction.TWO_SIDED).p == pytest.approx(exact, rel=1e-9)
    flipped = sign_flip([Fraction(one[task]) - Fraction(other[task]) for task in both], Direction.TWO_SIDED)
    assert flipped.p == pytest.approx(exact, rel=1e-9) and flipped.draws is None, "with one trial each they are one"


@given(DIFFERENCES)
def test_an_estimate_is_the_textbook_s(values: list[Fraction]) -> None:
    found = estimate(values, span=SPAN)
    assert found is not None and found.interval is not None
    assert float(found.mean) == pytest.approx(fmean(values))
    low, high = found.interval.low, found.interval.high
    assert -1 <= low <= found.mean <= high <= 1 and low < high
    if len(values) > 1:
        assert found.standard_error == pytest.approx(stdev(map(float, values)) / math.sqrt(len(values)), abs=1e-12)
    mirrored = estimate([-value for value in values], span=SPAN)
    assert mirrored is not None and mirrored.interval is not None
    assert (mirrored.interval.low, mirrored.interval.high) == pytest.approx((-high, -low))


@given(DIFFERENCES)
def test_clusters_of_one_task_change_nothing(values: list[Fraction]) -> None:
    one, other = estimate(values, span=SPAN), estimate(values, span=SPAN, clusters=range(len(values)))
    assert one is not None and other is not None
    assert (one.mean, one.interval) == (other.mean, other.interval)


def test_tasks_of_a_cluster_that_move_together_count_as_one() -> None:
    few = [Fraction(1), Fraction(0), Fraction(-1), Fraction(1)]
    alone, copied = (
        estimate(few, span=SPAN),
        estimate([v for v in few for _ in "abc"], span=SPAN, clusters=[*"aaabbbcccddd"]),
    )
    assert alone is not None and copied is not None
    assert copied.standard_error == pytest.approx(alone.standard_error) and (copied.tasks, copied.units) == (12, 4)


def test_a_clustered_error_by_hand() -> None:
    # residuals 3/4, -1/4, -1/4, -1/4; sums 1/2 and -1/2: sqrt((1/4 + 1/4) * 2/1) / 4
    found = estimate([Fraction(1), Fraction(0), Fraction(0), Fraction(0)], span=SPAN, clusters=[*"aabb"])
    assert found is not None and found.standard_error == pytest.approx(0.25)


@pytest.mark.parametrize("count", [1, 5, 80])
def test_without_spread_the_interval_has_width_all_the_same(count: int) -> None:
    same = estimate([Fraction(0)] * count, span=SPAN)
    assert same is not None and same.interval is not None
    # a share of tasks that is met at least once with probability 0.95 in that many
    unseen = 1 - 0.05 ** (1 / count)
    assert (same.interval.low, same.interval.high) == pytest.approx((-unseen, unseen))
    free = estimate([Fraction(7)] * count, span=None)
    assert free is not None and free.interval is None, "nothing bounds such values"


def test_no_task_gives_no_estimate() -> None:
    assert estimate([], span=SPAN) is None


def test_rewards_as_large_as_doubles_overflow_nothing() -> None:
    largest = Fraction(1.7e308)
    found = estimate([2 * largest, -2 * largest, 2 * largest], span=None)
    assert found is not None and found.interval is not None and math.isfinite(found.interval.high)


def flips(values: list[Fraction], direction: Direction) -> float:
    """The permutation test over every assignment of signs."""
    sums = [sum(sign * value for sign, value in zip(signs, values, strict=True)) for signs in _signs(len(values))]
    observed = sum(values)
    match direction:
        case Direction.GREATER:
            hits = [each >= observed for each in sums]
        case Direction.LESS:
            hits = [each <= observed for each in sums]
        case Direction.TWO_SIDED:
            hits = [abs(each) >= abs(observed) for each in sums]
    return sum(hits) / len(hits)


def _signs(count: int) -> product[tuple[int, ...]]:
    return product((1, -1), repeat=count)


@given(DIFFERENCES, DIRECTIONS)
def test_sign_flips_as_enumeration_says(values: list[Fraction], direction: Direction) -> None:
    found = sign_flip(values, direction)
    assert found.p == pytest.approx(flips(values, direction), rel=1e-9)
    assert found.units == sum(value != 0 for value in values)


@given(DIFFERENCES, DIRECTIONS)
def test_clusters_flip_together(values: list[Fraction], direction: Direction) -> None:
    clusters = [number // 2 for number in range(len(values))]
    sums = [sum(values[at : at + 2], Fraction(0)) for at in range(0, len(values), 2)]
    assert sign_flip(values, direction, clusters=clusters).p == pytest.approx(flips(sums, direction), rel=1e-9)


@given(st.integers(0, 12), st.integers(0, 12), DIRECTIONS)
def test_mcnemar_is_the_sign_flip_of_single_trials(one: int, other: int, direction: Direction) -> None:
    values = [Fraction(1)] * one + [Fraction(-1)] * other
    assert mcnemar(one, other, direction).p == pytest.approx(sign_flip(values, direction).p, rel=1e-9)
    opposite = {Direction.GREATER: Direction.LESS, Direction.LESS: Direction.GREATER}.get(direction, direction)
    assert mcnemar(other, one, opposite).p == pytest.approx(mcnemar(one, other, direction).p)


def test_too_many_sums_are_drawn_and_the_error_is_said() -> None:
    # no two sums of these are equal, and there are 2^60 of them
    values = [Fraction(3**number, 3**40) * (-1) ** (number % 7 == 0) for number in range(60)]
    found = sign_flip(values, Direction.GREATER, seed=5)
    assert found.draws is not None and found.error is not None and found.draws >= 1000
    # a larger one outweighs all smaller ones together: a sum is above where it first has a plus for a minus
    wanted = sum(0.5 ** (rank + 1) for rank, value in enumerate(reversed(values)) if value < 0)
    assert found.p == pytest.approx(wanted, abs=6 * found.error)
    assert found == sign_flip(values, Direction.GREATER, seed=5), "the same seed draws the same"


def test_no_p_value_is_zero() -> None:
    assert 0 < mcnemar(20_000, 0, Direction.TWO_SIDED).p < 1e-300
    assert 0 < sign_flip([Fraction(1, 2)] * 20_000, Direction.GREATER).p < 1e-300


def test_where_no_task_differs_nothing_is_found() -> None:
    assert mcnemar(0, 0, Direction.TWO_SIDED).p == 1 == sign_flip([Fraction(0)] * 3, Direction.GREATER).p
    assert sign_flip([], Direction.LESS).p == 1


@pytest.mark.parametrize(
    ("ps", "adjusted"),
    [
        ([], []),
        ([0.04], [0.04]),
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.5, 0.5, 0.5], [1, 1, 1]),
    ],
)
def test_holm(ps: list[float], adjusted: list[float]) -> None:
    assert holm(ps) == pytest.approx(adjusted)


REPEATED = st.integers(1, 4).flatmap(
    lambda planned: st.tuples(st.just(planned), st.integers(0, planned)).flatmap(
        lambda pair: st.builds(Repeated, st.just(pair[0]), st.just(pair[1]), st.integers(0, pair[0] - pair[1]))
    )
)


@given(st.lists(st.tuples(REPEATED, REPEATED), min_size=1, max_size=6))
def test_bounds_hold_whatever_the_ungraded_would_have_been(pairs: list[tuple[Repeated, Repeated]]) -> None:
    first, second = [one for one, _ in pairs], [other for _, other in pairs]
    bounds = difference_bounds(first, second)
    assert bounds is not None

    def mean(arm: list[Repeated], *, passes: bool) -> Fraction:
        return sum(Fraction(t.passed + t.ungraded * passes, t.planned) for t in arm) / len(arm)

    ends = [mean(first, passes=a) - mean(second, passes=b) for a in (False, True) for b in (False, True)]
    assert bounds == (min(ends), max(ends))
    if all(one.rate is not None and other.rate is not None for one, other in pairs):
        assert bounds[0] == bounds[1]
    assert difference_bounds([], []) is None
