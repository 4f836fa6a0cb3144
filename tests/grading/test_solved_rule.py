"""The rule of what counts as solved."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.grading.rewards import Number
from proctor.grading.solved import ReportRule, RewardRule, parse_solved


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("reward >= 1.0", RewardRule("reward", ">=", 1.0)),
        ("reward>=1", RewardRule("reward", ">=", 1)),
        ("  f1 > 0.95 ", RewardRule("f1", ">", 0.95)),
        ("tests passed == 12", RewardRule("tests passed", "==", 12)),
        ("tests >= 1", RewardRule("tests", ">=", 1)),
        ("tests", ReportRule()),
        ("\t\n\v\f\r reward\v>=\f1\r", RewardRule("reward", ">=", 1)),
        ("größe > 1", RewardRule("größe", ">", 1)),
    ],
)
def test_a_rule_is_read(text: str, rule: RewardRule | ReportRule) -> None:
    assert parse_solved(text) == rule


@pytest.mark.parametrize(
    "text",
    [
        "",
        "reward",
        ">= 1",
        "reward >=",
        "reward <= 1",
        "reward = 1",
        "reward >= one",
        "reward >= nan",
        "reward >= 1e999",
        "reward >= 1 and f1 >= 1",
        "reward >= >= 1",
        "reward >== 1",
        "reward >= 1 2",
        "1 < reward",
        "reward >= 1_0",
        "tests".ljust(1_001),
        *(f"{key} >= 1" for key in ("reward\x1c", "\ufeffreward", "re\xa0ward", "reward\x85", "reward\0")),
        "tests\x1f",
    ],
)
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(Refusal) as caught:
        parse_solved(text)
    assert caught.value.reason is Reason.INVALID_VALUE


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("reward >= 1.0", 1, True),
        ("reward >= 1.0", 0.9999999999999999, False),
        ("reward >= 0.3", 0.3, True),
        ("reward > 0.3", 0.3, False),
        ("reward == 1", 1.0, True),
        ("reward == 1", 2, False),
        ("reward >= -1", -1, True),
    ],
)
def test_numbers_compare_as_they_are_written(text: str, value: Number, holds: bool) -> None:
    rule = parse_solved(text)
    assert isinstance(rule, RewardRule)
    assert rule.holds(value) is holds


@given(
    st.from_regex(r"[a-z_]{1,9}( [a-z]{1,5})?", fullmatch=True),
    st.sampled_from([">=", ">", "=="]),
    st.one_of(st.integers(-999, 999), st.floats(allow_nan=False, allow_infinity=False)),
)
def test_a_rule_reads_back_from_its_own_text(key: str, op: str, threshold: Number) -> None:
    rule = RewardRule(key, op, threshold)
    assert parse_solved(str(rule)) == rule
