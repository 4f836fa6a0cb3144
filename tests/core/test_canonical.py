"""Canonical JSON: the bytes of RFC 8785 for everything that has them, a refusal for everything else."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import math
import struct
import uuid
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from proctor.core.canonical import MAX_SAFE_INTEGER, encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
KEYS = TEXT | st.text(st.sampled_from('a\u00e9\ud7ff\ue000\uffff\U00010000\U0010ffff\x00"\\'))
NUMBERS = (
    st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-1000, 1000).map(lambda x: round(x, 3))
    | st.sampled_from([1e-4, 9.999999999999999e-5, 1e15, 1e15 - 0.125, 1e15 + 0.125, 1e16, 1e21, 1e-7, -0.0, 2.0**53])
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda children: st.lists(children) | st.dictionaries(KEYS, children) | st.lists(children).map(tuple),
    max_leaves=20,
)


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    ONE = 1


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Fraction(float):
    pass


@dataclass
class Record:
    a: int = 1


@given(VALUES)
@example({"\U00010000": 1, "\ue000": 2})
@example({"b": [0.5, {"\uffff": 1e21}], "a": -0.0})
def test_equals_the_reference_implementation(value: Any) -> None:
    assert encode(value) == rfc8785.dumps(value)


@given(VALUES)
def test_what_was_written_is_the_same_value_and_is_written_the_same_again(value: Any) -> None:
    written = encode(value)
    # To RFC 8785 every number is a double, and those from 2^53 to 10^21 are written like integers.
    read = json.loads(written, parse_int=lambda text: int(text) if abs(int(text)) <= MAX_SAFE_INTEGER else float(text))
    assert read == json.loads(json.dumps(value))
    assert encode(read) == written


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        [1, {"a": math.nan}],
        MAX_SAFE_INTEGER + 1,
        -MAX_SAFE_INTEGER - 1,
        2**64,
        10**400,
        "\ud800",
        {"\udfff": 1},
        {"\udfff": 1.5},
        {1: "a"},
        {None: 1},
        {True: 1},
        {1: 0.5},
        {b"a": 1},
        {(1,): 1},
        {Text("a"): 1},
        {Text("a"): 1e-9},
        {Colour.RED: 1},
        {"a": 1, 2: 3},
        b"bytes",
        bytearray(b"bytes"),
        {1, 2},
        frozenset(),
        range(3),
        object(),
        decimal.Decimal("1"),
        1j,
        uuid.UUID(int=0),
        datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        datetime.date(2026, 1, 1),
        Colour.RED,
        Level.ONE,
        [Colour.RED, 0.1, 1e-9],
        Text("a"),
        Number(1),
        Fraction(0.5),
        OrderedDict(a=1),
        Record(),
        orjson.Fragment(b"{"),
        Path("a"),
        {"deep": [{"in": ({"here": uuid.UUID(int=1)},)}]},
        {"with a float": [1e-9, uuid.UUID(int=1)]},
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_canonical_form_is_refused(value: Any) -> None:
    with pytest.raises(Refusal) as caught:
        encode(value)
    assert caught.value.reason is Reason.JSON_INVALID


def test_a_refusal_names_the_type_that_it_met() -> None:
    with pytest.raises(Refusal, match="UUID"):
        encode({"id": uuid.UUID(int=0)})
    with pytest.raises(Refusal) as caught:
        encode([Number(1)])
    assert caught.value.observed == "Number"


def test_an_integer_too_long_to_be_shown_is_refused() -> None:
    with pytest.raises(Refusal) as caught:
        encode([10**5000])
    assert caught.value.reason is Reason.JSON_INVALID


@pytest.mark.parametrize("leaf", [1, 1e-9], ids=["fast way", "reference"])
def test_a_value_within_itself_is_refused(leaf: Any) -> None:
    ring: list[Any] = [leaf]
    ring.append({"again": ring})
    with pytest.raises(Refusal, match="nested"):
        encode(ring)


@pytest.mark.parametrize("leaf", [1, 1e-9], ids=["fast way", "reference"])
def test_nesting_without_end_is_refused(leaf: Any) -> None:
    value = leaf
    for _ in range(100_000):
        value = [value]
    with pytest.raises(Refusal, match="nested"):
        encode(value)


def test_300_levels_are_written_although_the_fast_encoder_stops_at_254() -> None:
    value: list[Any] = []
    for _ in range(299):
        value = [value]
    assert encode(value) == b"[" * 300 + b"]" * 300


def test_a_value_that_stands_in_two_places_is_no_cycle() -> None:
    shared = {"a": [1]}
    assert encode([shared, shared]) == b'[{"a":[1]},{"a":[1]}]'


@pytest.mark.parametrize("name", ["arrays", "french", "structures", "values"])
def test_jcs_vectors(cases: Path, name: str) -> None:
    jcs = cases / "json" / "jcs"
    written = encode(json.loads((jcs / "input" / f"{name}.json").read_bytes()))
    assert written == (jcs / "output" / f"{name}.json").read_bytes()
    assert written == bytes.fromhex((jcs / "outhex" / f"{name}.txt").read_text())


def test_1000_numbers_as_ecmascript_writes_them(cases: Path) -> None:
    lines = (cases / "json" / "jcs" / "es6-numbers-1000.csv").read_text().splitlines()
    assert len(lines) == 1000
    for line in lines:
        ieee, expected = line.split(",")
        (number,) = struct.unpack(">d", bytes.fromhex(ieee.zfill(16)))
        assert encode(number).decode() == expected
