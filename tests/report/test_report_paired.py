"""Pairs of arms: each task counts once, by its averaged repeats; what is ungraded is not compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.report.paired import paired_counts
from proctor.report.reading import Row, Tries
from proctor.study import Design, plan
from proctor.study.design import HypothesisDesign
from run_parts import design

GRADES = st.sampled_from(["pass", "fail", "ungraded"])


def rows(frozen: Design, grades: dict[tuple[str, str], Sequence[str]]) -> list[Row]:
    """Rows of a design by (task, arm): one grade an epoch."""
    return [
        Row(trial, grades[trial.task, trial.arm][trial.epoch - 1], None, None, True, Tries())
        for trial in plan(frozen).trials()
    ]


@pytest.mark.parametrize(
    ("skilled", "plain", "counted"),
    [
        (["pass"], ["pass"], "both"),
        (["pass"], ["fail"], "first_only"),
        (["fail"], ["pass"], "second_only"),
        (["fail"], ["fail"], "neither"),
        (["ungraded"], ["fail"], "not_compared"),
        (["pass"], ["ungraded"], "not_compared"),
        (["pass", "fail"], ["fail", "pass"], "even"),
        (["pass", "fail"], ["fail", "fail"], "first_only"),
        (["pass", "fail"], ["pass", "pass"], "second_only"),
        (["pass", "pass"], ["pass", "ungraded"], "not_compared"),
    ],
)
def test_one_task(skilled: list[str], plain: list[str], counted: str) -> None:
    frozen = design(("alpha",), epochs=len(plain))
    (pairs,) = paired_counts(frozen, rows(frozen, {("alpha", "skilled"): skilled, ("alpha", "plain"): plain}))
    assert (pairs.first, pairs.second, pairs.repeats) == ("skilled", "plain", len(plain))
    names = ("both", "first_only", "second_only", "neither", "even", "not_compared")
    assert {name: getattr(pairs, name) for name in names if getattr(pairs, name)} == {counted: 1}


@given(st.data())
def test_every_task_counts_once_and_arms_trade_places(data: st.DataObject) -> None:
    tasks = [f"t{number}" for number in range(data.draw(st.integers(1, 4)))]
    epochs = data.draw(st.integers(1, 3))
    frozen = design(tasks, epochs=epochs)
    one = {
        (task, arm): data.draw(st.lists(GRADES, min_size=epochs, max_size=epochs))
        for task in tasks
        for arm in ("plain", "skilled")
    }
    other = {(task, {"plain": "skilled", "skilled": "plain"}[arm]): grades for (task, arm), grades in one.items()}
    (pairs,), (mirrored,) = (paired_counts(frozen, rows(frozen, grades)) for grades in (one, other))
    counts = (pairs.both, pairs.first_only, pairs.second_only, pairs.neither, pairs.even, pairs.not_compared)
    assert sum(counts) == len(tasks)
    assert (mirrored.first_only, mirrored.second_only) == (pairs.second_only, pairs.first_only)
    assert (mirrored.both, mirrored.neither, mirrored.even) == (pairs.both, pairs.neither, pairs.even)


def test_hypotheses_say_which_arms_are_compared() -> None:
    claim = HypothesisDesign("H1", "solved", ("b", "c"), "mcnemar", "greater", 0.05)
    frozen = design(("alpha",), ("a", "b", "c"))
    grades = {("alpha", arm): ["pass"] for arm in "abc"}
    assert [(pairs.first, pairs.second) for pairs in paired_counts(frozen, rows(frozen, grades))] == [
        ("b", "a"),
        ("c", "a"),
    ]
    claimed = replace(frozen, hypotheses=(claim,))
    assert [(pairs.first, pairs.second) for pairs in paired_counts(claimed, rows(claimed, grades))] == [("b", "c")]
