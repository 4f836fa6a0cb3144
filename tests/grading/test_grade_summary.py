"""grade_summary.json: fixed denominators, exact rates, bounds."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.canonical import encode
from proctor.core.outcomes import GradeState
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.grading import summary as summaries
from proctor.grading.summary import Counted


class PlannedTrial(NamedTuple):
    task: str
    model: str | None
    arm: str
    epoch: int


def summarize(planned: Sequence[PlannedTrial], finals: Mapping[PlannedTrial, Counted]) -> dict[str, Any]:
    return summaries.summarize((trial.model, trial.arm, finals.get(trial)) for trial in planned)


PASS, FAIL, UNGRADED = GradeState.PASS, GradeState.FAIL, GradeState.UNGRADED


def trials(count: int, arm: str = "a", model: str | None = None) -> list[PlannedTrial]:
    return [PlannedTrial(f"task-{number}", model, arm, 1) for number in range(count)]


def final(state: GradeState, reward: float | None = None) -> Counted:
    return Counted(state, {PASS: None, FAIL: "below_threshold", UNGRADED: "verifier_timeout"}[state], reward)


def test_errors_do_not_leave_the_denominator() -> None:
    planned = trials(8)
    states = [PASS] * 2 + [FAIL] * 4 + [UNGRADED] * 2
    summary = summarize(planned, {trial: final(state) for trial, state in zip(planned, states, strict=True)})
    group = summary["groups"][0]
    assert group["headline"] == {"num": 2, "den": 8, "decimal": "0.250000"}
    assert group["graded_only"] == {"num": 2, "den": 6, "decimal": "0.333333", "comparable": False}
    assert group["bounds"] == {
        "low": {"num": 2, "den": 8, "decimal": "0.250000"},
        "high": {"num": 4, "den": 8, "decimal": "0.500000"},
    }
    assert group["ungraded_by_reason"] == {"verifier_timeout": 2}


def test_a_trial_without_a_final_was_not_run() -> None:
    planned = trials(3)
    group = summarize(planned, {planned[0]: final(PASS, 1)})["all"]
    assert (group["planned"], group["pass"], group["ungraded"]) == (3, 1, 2)
    assert group["ungraded_by_reason"] == {Reason.NOT_RUN.id: 2}


def test_a_full_denominator_is_comparable() -> None:
    planned = trials(2)
    group = summarize(planned, {planned[0]: final(PASS, 1), planned[1]: final(FAIL, 0)})["all"]
    assert group["graded_only"]["comparable"]
    assert group["mean_reward"] == {"trials": 2, "num": "1", "den": "2", "decimal": "0.500000", "comparable": True}


def test_the_mean_reward_is_exact_in_the_decimals_that_were_written() -> None:
    planned = trials(3)
    finals = {planned[0]: final(FAIL, 0.1), planned[1]: final(FAIL, 0.2), planned[2]: final(UNGRADED, 1)}
    mean = summarize(planned, finals)["all"]["mean_reward"]
    assert mean == {"trials": 2, "num": "3", "den": "20", "decimal": "0.150000", "comparable": False}


@pytest.mark.parametrize(
    ("rewards", "decimal"),
    [
        ([-1], "-1.000000"),
        ([-0.5, 0.5], "0.000000"),
        ([-1e-9], "0.000000"),
        ([0.0000005], "0.000001"),
        ([-0.0000005], "0.000000"),
        ([-1.25], "-1.250000"),
        ([2, 1e3], "501.000000"),
        ([1e22], "10000000000000000000000.000000"),
    ],
)
def test_decimals_are_rounded_half_up(rewards: list[float], decimal: str) -> None:
    planned = trials(len(rewards))
    finals = {trial: final(FAIL, reward) for trial, reward in zip(planned, rewards, strict=True)}
    assert summarize(planned, finals)["all"]["mean_reward"]["decimal"] == decimal


def test_nothing_graded_has_rates_and_no_decimal() -> None:
    group = summarize(trials(2), {})["all"]
    assert group["graded_only"] == {"num": 0, "den": 0, "decimal": None, "comparable": False}
    assert group["mean_reward"] == {"trials": 0, "num": None, "den": None, "decimal": None, "comparable": False}
    assert group["bounds"]["high"]["decimal"] == "1.000000"


def test_nothing_planned_has_no_groups() -> None:
    summary = summarize([], {})
    assert summary["groups"] == []
    assert summary["all"]["headline"] == {"num": 0, "den": 0, "decimal": None}


def test_groups_stand_by_model_and_arm() -> None:
    planned = [*trials(1, "b", "m"), *trials(1, "a", "m"), *trials(1, "z"), *trials(1, "a", "")]
    groups = summarize(planned, {})["groups"]
    assert [(group["model"], group["arm"]) for group in groups] == [(None, "z"), ("", "a"), ("m", "a"), ("m", "b")]


def test_an_ungraded_final_without_a_reason_is_refused() -> None:
    planned = trials(2)
    with pytest.raises(Refusal) as caught:
        summarize(planned, {planned[1]: Counted(UNGRADED)})
    assert caught.value.reason is Reason.EVIDENCE_DAMAGED


PLANNED = st.lists(
    st.builds(
        PlannedTrial,
        st.sampled_from(["t1", "t2", "t3"]),
        st.sampled_from([None, "m", "n"]),
        st.sampled_from(["a", "b"]),
        st.integers(1, 3),
    ),
    unique=True,
    max_size=20,
)
FINALS = st.builds(
    final,
    st.sampled_from(GradeState),
    st.none() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False),
)


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[PlannedTrial], dict[PlannedTrial, Counted]]:
    planned = draw(PLANNED)
    done = [trial for trial in planned if draw(st.booleans())]
    return planned, {trial: draw(FINALS) for trial in done}


def _value(rate: dict[str, Any]) -> Fraction:
    return Fraction(rate["num"], rate["den"])


@given(runs())
def test_denominators_are_constant_and_bounds_are_ordered(
    run: tuple[list[PlannedTrial], dict[PlannedTrial, Counted]],
) -> None:
    planned, finals = run
    summary = summarize(planned, finals)
    groups = summary["groups"]
    for name in ("planned", "pass", "fail", "ungraded"):
        assert sum(group[name] for group in groups) == summary["all"][name]
    assert summary["all"]["planned"] == len(planned)
    for group in groups:
        assert group["planned"] == sum((t.model, t.arm) == (group["model"], group["arm"]) for t in planned)
        assert group["pass"] + group["fail"] + group["ungraded"] == group["planned"]
        assert sum(group["ungraded_by_reason"].values()) == group["ungraded"]
        low, high = group["bounds"]["low"], group["bounds"]["high"]
        assert {low["den"], high["den"], group["headline"]["den"]} == {group["planned"]}
        assert 0 <= _value(low) <= _value(group["headline"]) <= _value(high) <= 1
        if group["graded_only"]["den"]:
            assert _value(low) <= _value(group["graded_only"]) <= _value(high)
        assert group["graded_only"]["comparable"] is (group["ungraded"] == 0)


@given(runs(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_no_byte(
    run: tuple[list[PlannedTrial], dict[PlannedTrial, Counted]], shuffler: random.Random
) -> None:
    planned, finals = run
    before = encode(summarize(planned, finals))
    shuffled, items = list(planned), list(finals.items())
    shuffler.shuffle(shuffled)
    shuffler.shuffle(items)
    assert encode(summarize(shuffled, dict(items))) == before


@given(runs())
def test_a_final_more_narrows_the_bounds_and_moves_no_denominator(
    run: tuple[list[PlannedTrial], dict[PlannedTrial, Counted]],
) -> None:
    planned, finals = run
    open_trials = [trial for trial in planned if trial not in finals]
    before = summarize(planned, finals)["all"]
    for trial in open_trials[:1]:
        after = summarize(planned, finals | {trial: final(PASS)})["all"]
        assert after["headline"]["den"] == before["headline"]["den"]
        assert _value(after["bounds"]["low"]) > _value(before["bounds"]["low"])
        assert _value(after["bounds"]["high"]) == _value(before["bounds"]["high"])


def test_a_reward_reads_the_same_from_the_journal() -> None:
    planned = trials(1)
    as_graded = summarize(planned, {planned[0]: final(PASS, 1.0)})
    as_read = summarize(planned, {planned[0]: final(PASS, 1)})
    assert encode(as_graded) == encode(as_read)
