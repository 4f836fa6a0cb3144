"""Scorers: every rule of trimming, case, extraction, units and tolerance, on both of its sides."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.models import Message, Role
from proctor.core.outcomes import GradeState
from proctor.core.questions import Question, Scorer, Tolerance
from proctor.core.reasons import Reason
from proctor.grading.scorers import function, pattern
from proctor.grading.scorers.base import Scored
from proctor.grading.scorers.score import check_row, score, target_text
from proctor.grading.solved import parse_solved

CHOICES = {"A": "Paris", "B": "London", "C": "New York", "D": "York"}


def question(scorer: str, target: Any, **more: Any) -> Question:
    given: dict[str, Any] = {
        "choices": {},
        "tolerance": None,
        "tools": None,
        "metadata": {},
        "cluster": None,
        "scorer_function": None,
    } | more
    return Question(
        id="q", messages=(Message(Role.USER, "?"),), target=target, scorer=Scorer(scorer), row={"id": "q"}, **given
    )


def passes(scorer: str, target: Any, answer: str, **more: Any) -> bool:
    asked = question(scorer, target, **more)
    assert check_row(asked) is None
    found = score(asked, answer)
    assert (found.reward, found.reason) == (
        (1.0, None) if found.state is GradeState.PASS else (0.0, Reason.WRONG_ANSWER)
    )
    assert found.detail and len(found.detail) <= 300
    return found.state is GradeState.PASS


@pytest.mark.parametrize(
    ("target", "answer", "right"),
    [
        ("Paris", "Paris", True),
        ("Paris", " \n Paris\t", True),
        (" Paris ", "Paris", True),
        ("Paris", "paris", False),
        ("Paris", "Paris.", False),
        ("Paris", "Answer: Paris", False),
        ("New York", "New  York", False),
        ("caf\u00e9", "cafe\u0301", True),
        ("cafe\u0301", "caf\u00e9", True),
        ("\ufb01", "fi", False),
        (42, "42", True),
        (42, "42.0", False),
        (1.5, "1.5", True),
        ("Paris", "", False),
        ("Paris", "\u0301\u0316" * 300_000, False),
    ],
)
def test_exact(target: Any, answer: str, right: bool) -> None:
    assert passes("exact", target, answer) is right


@pytest.mark.parametrize(
    ("answer", "chosen"),
    [
        # 1: the whole answer
        *[
            (each, "B")
            for each in ("B", "b", " B\n", "(B)", "[b]", "B.", "B)", "**B**", '"B"', "`B`", "$B$", "\\boxed{B}")
        ],
        ("E", None),
        ("BB", None),
        # 2: a text
        *[
            (each, "B")
            for each in ("London", "london", "LONDON.", " London \n", "B) London", "(B) london", "b. London")
        ],
        ("New   York", "C"),
        ("A) London", "A"),
        ("Londonderry", None),
        # 3: declared
        *[(each, "B") for each in ("ANSWER: B", "answer: b", "Answer = B", "The answer is (B).", "**Answer:** B")],
        ("the final answer is: **B**", "B"),
        ("thus $\\boxed{\\text{B}}$ holds", "B"),
        ("Answer: A\nNo. Answer: B", "B"),
        ("Answer: B\nA is wrong, and D", "B"),
        ("Answer: B and A is wrong", "B"),
        ("Answer: E", None),
        ("the answer is a bird", None),
        ("my answer is a", "A"),
        ("Answer: A or B", None),
        ("Answer: A/B", None),
        ("Answer: A, B", None),
        ("Answer: Because", None),
        # 4: the last line
        ("I choose B", "B"),
        ("A is nice.\nI choose B", "B"),
        ("A good choice is B", "B"),
        ("B. So B it is", "B"),
        ("A is right", "A"),
        ("it is *A* here", "A"),
        ("A or B", None),
        ("Both A and B.", None),
        ("B-side and B2", None),
        ("The answer is not B", None),
        # 5: a text in the last line
        ("It must be London!", "B"),
        ("I like\nthe one called london\n\n", "B"),
        ("It is New York", "C"),
        ("York, not the new one", "D"),
        ("Paris or London", None),
        ("New York or York", None),
        ("", None),
        ("none of these", None),
    ],
)
def test_choice(answer: str, chosen: str | None) -> None:
    for letter in CHOICES:
        assert passes("choice", letter, answer, choices=CHOICES) is (letter == chosen)


def test_an_ambiguous_choice_says_so() -> None:
    found = score(question("choice", "A", choices=CHOICES), "A or B")
    assert found.reason is Reason.WRONG_ANSWER and "ambiguous" in found.detail and "A, B" in found.detail


@pytest.mark.parametrize("target", ["B", "London", "london "])
def test_the_target_of_choice_is_a_letter_or_a_text(target: str) -> None:
    assert passes("choice", target, "B", choices=CHOICES)
    assert target_text(question("choice", target, choices=CHOICES)) == "B"


@pytest.mark.parametrize(
    ("target", "answer", "right"),
    [
        (42, "42", True),
        (42, "The answer is 42.", True),
        (42, "first 41, then **42**", True),
        (42, "42, not 41", False),
        (42, "$\\boxed{42}$", True),
        (42, "", False),
        (42, "forty-two", False),
        (42.0, "42", True),
        (100, "100.00", True),
        (0.1, "0.1", True),
        (0.1, "0.10000000000000001", False),
        (1e-7, "0.0000001", True),
        (0.5, ".5", True),
        (5, "5 apples", True),
        (5, "5th", True),
        # signs
        (-5, "-5", True),
        (-5, "−5", True),
        (5, "+5", True),
        (-5, "x=-5", True),
        (5, "8-5", True),
        (-5, "8-5", False),
        (5, "8−5", True),
        (-5, "-$5", True),
        (-5, "$-5", True),
        # commas
        (1234, "1,234", True),
        (1234567.5, "1,234,567.5", True),
        (234, "1,234", False),
        (3, "1,2,3", True),
        (2345, "1,2345", True),
        # exponents
        (1500, "1.5e3", True),
        (1500, "1.5E+3", True),
        (0.0015, "1.5e-3", True),
        (0.0015, "1.5e−3", True),
        (1500, "1.5 × 10^3", True),
        (1500, "1.5\\times 10^{3}", True),
        (1500, "1.5*10**3", True),
        (3, "1.5 × 10^3", False),
        (5, "5e", True),
        (5, "1e999999999999", False),
        # fractions
        (0.75, "3/4", True),
        (0.75, "It is 3/4.", True),
        ("1/3", "1/3", True),
        ("1/3", "2/6", True),
        ("1/3", "0.333333", False),
        (5, "5/0", False),
        # digits after letters begin none
        (2, "2 of H2O", True),
        (5, "A5", False),
        (5, "step_5", False),
        (5, "٥", False),
        # units
        (5, "5 km", True),
        ("5 km", "5 km", True),
        ("5 km", "5km.", True),
        ("5 km", "5\u00a0km", True),
        ("5km", "5 km", True),
        ("5 km", "5", False),
        ("5 km", "5 KM", False),
        ("5 km", "5 kmh", False),
        ("5 km", "5 km/h", False),
        ("5 km", "5 km²", False),
        ("5 km/h", "5 km/h", True),
        ("5 Å", "5 A\u030a", True),
        ("$5", "$5", True),
        ("$5", "5 $", True),
        ("$5", "€5", False),
        ("$5", "5", False),
        # percent
        (25, "25%", True),
        (0.25, "25%", False),
        ("25%", "25%", True),
        ("25%", "25 percent", True),
        ("25%", "25\\%", True),
        ("25%", "0.25", True),
        ("25%", "25", False),
    ],
)
def test_number(target: Any, answer: str, right: bool) -> None:
    assert passes("number", target, answer) is right


@pytest.mark.parametrize(
    ("target", "tolerance", "answer", "right"),
    [
        (10, Tolerance(Fraction("0.1"), False), "10.1", True),
        (10, Tolerance(Fraction("0.1"), False), "9.9", True),
        (10, Tolerance(Fraction("0.1"), False), "10.100000000000000000001", False),
        (10, Tolerance(Fraction("0.01"), True), "10.1", True),
        (10, Tolerance(Fraction("0.01"), True), "10.11", False),
        (-10, Tolerance(Fraction("0.01"), True), "-9.9", True),
        (0, Tolerance(Fraction("0.5"), True), "0.0001", False),
        (0, Tolerance(Fraction("0.5"), True), "-0", True),
        ("25%", Tolerance(Fraction("0.01"), False), "26%", True),
        ("25%", Tolerance(Fraction("0.01"), False), "27%", False),
    ],
)
def test_tolerance(target: Any, tolerance: Tolerance, answer: str, right: bool) -> None:
    assert passes("number", target, answer, tolerance=tolerance) is right


@given(st.one_of(st.integers(-(10**40), 10**40), st.floats(allow_nan=False, allow_infinity=False)), st.text())
def test_the_last_number_is_found_behind_any_text(number: int | float, text: str) -> None:
    asked = question("number", number)
    assert check_row(asked) is None
    assert score(asked, f"{text} {number!r}").state is GradeState.PASS


@given(st.text(), st.integers(0, 8), st.sampled_from(["7", "-7", "1,007", "7e2", "7/8"]))
def test_where_a_number_stands_in_a_long_answer_changes_nothing(text: str, spread: int, number: str) -> None:
    tail = "x" * (3_000 * spread)
    short, long = (score(question("number", 7), f"{text} {number} {after}") for after in ("", tail))
    assert (short.state, short.detail) == (long.state, long.detail)


OUTPUTS = {"x": 5, "name": "Ann", "ok": True}


@pytest.mark.parametrize(
    ("answer", "reward"),
    [
        ('{"x": 5, "name": "Ann", "ok": true}', 1),
        ('Here: {"x": 5.0, "name": " Ann ", "ok": true, "more": null}. Done', 1),
        ('```json\n{"x": 5, "name": "Ann", "ok": true}\n```', 1),
        ('{"x": 6}\n```\n{"x": 5, "name": "Ann", "ok": true}\n```\nso {y}', 1),
        ('first {"x": 1} then {"x": 5, "name": "Ann", "ok": true}', 1),
        ('{"x": 5, "name": "Ann", "ok": true} then {"x": 1}', 0),
        ('{"a": {"x": 5, "name": "Ann", "ok": true}}', 0),
        ('{"x": 5, "name": "ann", "ok": 1}', 1 / 3),
        ('{"x": "5", "name": "Ann", "ok": true}', 2 / 3),
        ('{"x": true, "name": "Ann", "ok": true}', 2 / 3),
        ('{"x": 5}', 1 / 3),
        ('{"x": 5, "x": 5, "name": "Ann", "ok": true}', 0),
        ('{"x": NaN, "name": "Ann", "ok": true}', 0),
        ('{"x": 1e400, "name": "Ann", "ok": true}', 0),
        ('[{"x": 5, "name": "Ann", "ok": true}]', 1),
        ("x = 5, Ann", 0),
        ("", 0),
        ('{"x": 5, "name": "Ann", "ok": true', 0),
        ('\\frac{1}{2} {"x": 5, "name": "Ann", "ok": true} \\frac{3}{4}', 1),
        ('{"x": 5, "name": "\\ud800", "ok": true}', 0),
    ],
)
def test_json(answer: str, reward: float) -> None:
    found = score(question("json", OUTPUTS), answer)
    assert found.reward == pytest.approx(reward)
    assert found.state is (GradeState.PASS if reward == 1 else GradeState.FAIL)


def test_json_says_which_outputs_are_right() -> None:
    found = score(question("json", OUTPUTS), '{"x": 5, "name": "ann"}')
    assert found.outputs == {"x": 1, "name": 0, "ok": 0} and "name, ok" in found.detail


@pytest.mark.parametrize(
    ("target", "given_", "right"),
    [
        ({"x": 1.0}, {"x": 1.05}, True),
        ({"x": 1.0}, {"x": 1.2}, False),
        ({"x": [1, [2]]}, {"x": [1.1, [1.9]]}, True),
        ({"x": [1, 2]}, {"x": [2, 1]}, False),
        ({"x": [1]}, {"x": [1, 2]}, False),
        ({"x": {"a": "b"}}, {"x": {"a": "b"}}, True),
        ({"x": {"a": "b"}}, {"x": {"a": "b", "c": 1}}, False),
        ({"x": None}, {"x": None}, True),
        ({"x": None}, {"x": False}, False),
        ({"x": False}, {"x": 0}, False),
    ],
)
def test_json_compares_values_deeply(target: Any, given_: Any, right: bool) -> None:
    asked = question("json", target, tolerance=Tolerance(Fraction("0.1"), False))
    assert (score(asked, json.dumps(given_)).state is GradeState.PASS) is right


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1, max_size=100).filter(lambda name: name != "reward"), PLAIN, min_size=1))
def test_the_oracle_passes_every_json_row(target: dict[str, Any]) -> None:
    assert check_row(question("json", target)) is None


@pytest.mark.parametrize(
    ("scorer", "target", "more"),
    [
        ("exact", "  ", {}),
        ("exact", {"a": 1}, {}),
        ("choice", "B", {}),
        ("choice", "E", {"choices": CHOICES}),
        ("choice", "Berlin", {"choices": CHOICES}),
        ("choice", 2, {"choices": CHOICES}),
        ("choice", "B", {"choices": {"A": "B", "B": "C"}}),
        ("choice", "A", {"choices": {"A": "yes", "B": "YES."}}),
        ("number", "five", {}),
        ("number", "5 6", {}),
        ("number", "1e9999", {}),
        ("number", {"a": 1}, {}),
        ("json", "{}", {}),
        ("json", {}, {}),
        ("json", {"reward": 1}, {}),
        ("json", {"": 1}, {}),
        ("regex", "(", {}),
        ("regex", "", {}),
        ("regex", 5, {}),
        ("regex", "^4[0-9]$", {}),
        ("regex", {"pattern": "^4[0-9]$"}, {}),
        ("regex", {"pattern": "^4[0-9]$", "example": "50"}, {}),
        ("regex", "a" * 5_000, {}),
        ("regex", "a{99999999999999}", {}),
    ],
)
def test_a_row_that_its_scorer_cannot_take(scorer: str, target: Any, more: dict[str, Any]) -> None:
    assert check_row(question(scorer, target, **more))


@pytest.mark.parametrize(
    ("target", "answer", "found"),
    [
        ("Paris", "so Paris it is", True),
        ("Paris", "paris", False),
        ("(?i)paris", "PARIS", True),
        ({"pattern": "^4[0-9]$", "example": "42"}, " 41\n", True),
        ({"pattern": "^4[0-9]$", "example": "42"}, "a 41", False),
        ({"pattern": "(a+)+$", "example": "aa"}, "aaa", True),
    ],
)
def test_regex(target: Any, answer: str, found: bool) -> None:
    assert check_row(question("regex", target)) is None
    assert pattern.search(pattern.pattern_of(target), answer) is found
    scored = pattern.scored(target, answer, found)
    assert scored.state is (GradeState.PASS if found else GradeState.FAIL)


@pytest.mark.parametrize(
    "hostile", [r"(a+)+b", r"(a|a)*b", r"a*a*a*a*a*a*a*a*b", "(a|aa)(a|aa)(a|aa)(a|aa)(a|aa)b" * 9]
)
def test_a_hostile_pattern_is_not_tried_while_rows_are_read(hostile: str) -> None:
    assert check_row(question("regex", {"pattern": hostile, "example": "a" * 190})) is None


@pytest.mark.parametrize(
    ("value", "reward", "state"),
    [
        (True, 1, "pass"),
        (False, 0, "fail"),
        (1, 1, "pass"),
        (0.5, 0.5, "fail"),
        (2.5, 2.5, "pass"),
        ({"reward": 1, "style": 0.5, "detail": "fine"}, 1, "pass"),
        ({"reward": False}, 0, "fail"),
        ({"style": 1}, None, "ungraded"),
        ({"reward": 1, "style": "good"}, None, "ungraded"),
        ({"reward": 1, "detail": 5}, None, "ungraded"),
        ({"reward": 1, "": 5}, None, "ungraded"),
        ("pass", None, "ungraded"),
        (None, None, "ungraded"),
        ([1], None, "ungraded"),
        (math.inf, None, "ungraded"),
    ],
)
def test_what_a_function_returns(value: Any, reward: float | None, state: str) -> None:
    found = function.scored(value)
    assert (found.reward, found.state) == (reward, state)
    assert found.reason is {"pass": None, "fail": Reason.WRONG_ANSWER, "ungraded": Reason.SCORER_FAILED}[state]


@pytest.mark.parametrize("scorer", list(Scorer))
def test_no_answer_is_wrong_whatever_the_scorer(scorer: str) -> None:
    found = score(question(scorer, "x", scorer_function="a:b"), None)
    assert (found.state, found.reason, found.reward) == (GradeState.FAIL, Reason.NO_ANSWER, 0)


@pytest.mark.parametrize(
    ("scored", "rule", "state", "reason"),
    [
        (function.scored(True), "reward >= 1.0", "pass", None),
        (function.scored(0.5), "reward >= 1.0", "fail", Reason.WRONG_ANSWER),
        (function.scored(0.5), "reward >= 0.5", "pass", None),
        (function.scored(1.5), "reward >= 2", "fail", Reason.BELOW_THRESHOLD),
        (function.scored({"reward": 0, "style": 1}), "style >= 1", "pass", None),
        (function.scored(1), "style >= 1", "ungraded", Reason.REWARD_KEY_MISSING),
        (function.scored("?"), "reward >= 1.0", "ungraded", Reason.SCORER_FAILED),
        (function.scored(True), "tests", "pass", None),
        (function.scored(False), "tests", "fail", Reason.WRONG_ANSWER),
    ],
)
def test_the_grade_follows_the_designs_rule(scored: Scored, rule: str, state: str, reason: Reason | None) -> None:
    grade = scored.grade(parse_solved(rule))
    assert (grade.state, grade.reason) == (state, reason)
    assert grade.as_record()["disclosures"]


@pytest.mark.parametrize("scorer", ["exact", "choice", "number", "json"])
@given(answer=st.text(st.characters(), max_size=300))
def test_no_answer_upsets_a_scorer(scorer: str, answer: str) -> None:
    target: Any = {"exact": "x", "choice": "A", "number": 3, "json": {"a": 1}}[scorer]
    found = score(question(scorer, target, choices=CHOICES if scorer == "choice" else {}), answer)
    assert found.state in (GradeState.PASS, GradeState.FAIL)
    found.detail.encode()


@pytest.mark.parametrize(
    "part", ['{"', '{"a":', "{", "1,", "1", "answer: ", "B ", "\\boxed{", "(", "\u0301\u0316", "```\n"]
)
@pytest.mark.parametrize("scorer", ["exact", "choice", "number", "json"])
def test_a_huge_answer_is_scored(scorer: str, part: str) -> None:
    """Ends: a rule of more than linear cost would take hours."""
    target: Any = {"exact": "x", "choice": "A", "number": 3, "json": {"a": 1}}[scorer]
    answer = part * (1_000_000 // len(part))
    assert score(question(scorer, target, choices=CHOICES if scorer == "choice" else {}), answer).reason is not None
