"""What a value of JSON must be: each shape at its edges, and what is nearly of it."""

from __future__ import annotations

from typing import Any

import pytest

from proctor_verify.shapes import (
    COUNT,
    FLAG,
    FROM_ONE,
    MONEY,
    NUMBER,
    OBJECT,
    SHA256,
    TEXT,
    TIME,
    Shape,
    among,
    either,
    integer,
    list_of,
    matches,
    one_of,
    or_null,
    record,
    where,
    with_optional,
)

_PAIR = record(a=COUNT, b=TEXT)
_MAYBE = with_optional(_PAIR, c=FLAG, d=FLAG)
_ODD = Shape("an odd number", lambda v: type(v) is int and v % 2 == 1)
_SMALL = Shape("a number below 3", lambda v: type(v) is int and v < 3)


class _Word(str):
    """Text of another type, which is not what JSON is read as."""


HOLD: list[tuple[Shape, list[Any], list[Any]]] = [
    (TEXT, ["", "a"], [None, 1, b"a", [], _Word("a")]),
    (COUNT, [0, 1, 10**30], [-1, 0.0, 1.0, True, "1", None]),
    (FROM_ONE, [1, 2], [0, -1, 1.0, True, None]),
    (NUMBER, [0, -1, 0.5], [True, "1", None]),
    (FLAG, [True, False], [0, 1, None, "true"]),
    (OBJECT, [{}, {"a": 1}], [[], None, "{}"]),
    (integer(-1, 2), [-1, 0, 2], [-2, 3, 0.0, True, None]),
    (one_of("a", "b"), ["a", "b"], ["c", "", None, _Word("a"), ["a"]]),
    (among("a letter", frozenset("ab")), ["a"], ["c", "ab", None, _Word("a"), []]),
    (matches("[0-9]+", "digits"), ["1", "12"], ["", "1a", "a1", "1\n", "٣", 1, None, b"1"]),
    (or_null(COUNT), [None, 0], [-1, "", False]),
    (list_of(COUNT), [[], [0], [1, 2]], [[-1], [0, "a"], ["a", 0], {}, (1,), None, ""]),
    (_PAIR, [{"a": 0, "b": ""}, {"b": "", "a": 1}], [{"a": 0}, {"a": 0, "b": "", "c": 1}, {"a": 0, "b": 0}]),
    (_PAIR, [], [{"a": -1, "b": ""}, {}, [], None, "ab"]),
    (_MAYBE, [{"a": 0, "b": ""}, {"a": 0, "b": "", "c": True}, {"a": 0, "b": "", "d": False, "c": True}], []),
    (_MAYBE, [], [{"a": 0, "b": "", "c": 1}, {"a": 0, "b": "", "c": True, "d": None}, {"a": 0, "c": True}]),
    (_MAYBE, [], [{"a": 0, "b": "", "e": True}, {"a": -1, "b": "", "c": True}, None, [], "cd", ["c"]]),
    (either(COUNT, TEXT), [0, "a"], [-1, None, 0.5]),
    (where(_ODD, "that is small", _SMALL.holds), [1, -1], [2, 3, "1", None]),
    (
        MONEY,
        ["0.000000000000", "1234567890123456.000000000001"],
        ["01.000000000000", "1.00000000000", "-1.000000000000"],
    ),
    (MONEY, [], ["12345678901234567.000000000000", "1.0000000000000", "1", ".000000000000", "1.000000000000 ", None]),
    (SHA256, ["0" * 64, "af" * 32], ["0" * 63, "0" * 65, "A" * 64, "g" * 64, None]),
]


@pytest.mark.parametrize(("shape", "those", "others"), HOLD, ids=[shape.words[:40] for shape, _, _ in HOLD])
def test_what_is_of_a_shape_and_what_is_not(shape: Shape, those: list[Any], others: list[Any]) -> None:
    for value in those:
        assert shape.holds(value), value
    for value in others:
        assert not shape.holds(value), value


def _time(day: str, clock: str = "00:00:00.000000Z") -> str:
    return f"{day}T{clock}"


_LAST_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@pytest.mark.parametrize(("month", "last"), list(enumerate(_LAST_DAYS, 1)))
def test_months_have_their_days(month: int, last: int) -> None:
    for day in (1, 9, 10, 19, 20, last):
        assert TIME.holds(_time(f"2031-{month:02d}-{day:02d}")), day
    for day in (0, last + 1, 32):
        assert not TIME.holds(_time(f"2031-{month:02d}-{day:02d}")), day


@pytest.mark.parametrize(
    ("year", "leap"), [(2024, True), (2000, True), (1900, False), (2031, False), (4, True), (9999, False)]
)
def test_a_leap_day_is_in_a_leap_year_alone(year: int, leap: bool) -> None:
    assert TIME.holds(_time(f"{year:04d}-02-29")) is leap
    assert TIME.holds(_time(f"{year:04d}-02-28")) and not TIME.holds(_time(f"{year:04d}-02-30"))


@pytest.mark.parametrize("clock", ["23:59:59.999999Z", "19:00:00.000001Z"])
def test_a_time_of_day(clock: str) -> None:
    assert TIME.holds(_time("2031-01-01", clock))


@pytest.mark.parametrize("clock", ["24:00:00.000000Z", "00:60:00.000000Z", "00:00:60.000000Z", "00:00:00.00000Z", ""])
def test_no_time_of_day(clock: str) -> None:
    assert not TIME.holds(_time("2031-01-01", clock))


def test_no_time() -> None:
    assert not TIME.holds(_time("0000-01-01"))
    assert not TIME.holds(None)
    assert not TIME.holds(1)
