"""Reward files: what is a number, what is refused, and when two files disagree."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.grading.files import MAX_REWARD_BYTES, Absent, Content, NotAFile, TooLarge, VerdictFile
from proctor.grading.rewards import Number, parse_decimal, parse_reward_json, parse_reward_text, read_rewards

ABSENT = Absent()


@pytest.mark.parametrize(
    ("data", "number"),
    [
        (b"1", 1),
        (b"0\n", 0),
        (b"  0.8\r\n", 0.8),
        (b"1.0", 1.0),
        (b"+1", 1),
        (b".5", 0.5),
        (b"1.", 1.0),
        (b"1e-7", 1e-7),
        (b"-0", 0),
        (b"-0.0", 0.0),
        (b"007", 7),
        (b"9007199254740991", 2**53 - 1),
    ],
)
def test_reward_txt_is_one_decimal(data: bytes, number: Number) -> None:
    read = parse_reward_text(data)
    assert read == number
    assert type(read) is type(number)
    assert math.copysign(1, read) == math.copysign(1, number)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b" \n", id="only white space"),
        pytest.param(b"1 0", id="two numbers"),
        pytest.param(b"1\n0\n", id="two lines"),
        pytest.param(b"nan", id="nan"),
        pytest.param(b"inf", id="inf"),
        pytest.param(b"-Infinity", id="infinity"),
        pytest.param(b"1e400", id="overflows"),
        pytest.param(b"1e-400", id="vanishes"),
        pytest.param(b"9007199254740992", id="2^53"),
        pytest.param(b"1" * 5000, id="5000 digits"),
        pytest.param(b"1_0", id="underscore"),
        pytest.param(b"0x1", id="hexadecimal"),
        pytest.param(b"true", id="true"),
        pytest.param(b"1.0 passed", id="words"),
        pytest.param(b"\xef\xbb\xbf1", id="byte-order mark"),
        pytest.param("١".encode(), id="digit of another script"),
        pytest.param(b"\xff", id="no text"),
        pytest.param(b"1\x00", id="nul"),
        pytest.param("1\u2028".encode(), id="line separator"),
        pytest.param(b'{"reward": 1}', id="object"),
    ],
)
def test_reward_txt_that_is_no_decimal_is_unreadable(data: bytes) -> None:
    with pytest.raises(Refusal) as caught:
        parse_reward_text(data)
    assert caught.value.reason is Reason.REWARD_UNREADABLE
    encode(caught.value.as_record())


@given(st.one_of(st.integers(-(2**53) + 1, 2**53 - 1), st.floats(allow_nan=False, allow_infinity=False)))
def test_every_recordable_number_survives_its_own_text(number: Number) -> None:
    read = parse_decimal(repr(number))
    assert read == number
    assert type(read) is type(number)


@given(st.binary(max_size=12))
def test_reward_txt_gives_a_finite_number_or_a_refusal(data: bytes) -> None:
    try:
        number = parse_reward_text(data)
    except Refusal as refusal:
        assert refusal.reason is Reason.REWARD_UNREADABLE
    else:
        assert math.isfinite(number)


def test_reward_json_keeps_integers_and_doubles_apart() -> None:
    values = parse_reward_json(b'{"reward": 1.0, "tests": 12, "low": -0.0}')
    assert values == {"reward": 1.0, "tests": 12, "low": 0.0}
    assert [type(value) for value in values.values()] == [float, int, float]
    assert math.copysign(1, values["low"]) == 1


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{}", id="no keys"),
        pytest.param(b"1", id="bare number"),
        pytest.param(b"[1]", id="list"),
        pytest.param(b'{"reward": true}', id="true where 1 is meant"),
        pytest.param(b'{"reward": null}', id="null"),
        pytest.param(b'{"reward": "1"}', id="text"),
        pytest.param(b'{"reward": {"a": 1}}', id="nested"),
        pytest.param(b'{"reward": NaN}', id="NaN"),
        pytest.param(b'{"reward": 1e400}', id="1e400"),
        pytest.param(b'{"reward": 9007199254740993}', id="2^53 + 1"),
        pytest.param(b'{"reward": ' + b"9" * 5000 + b"}", id="5000 digits"),
        pytest.param(b'{"reward": 0, "reward": 1}', id="duplicate key"),
        pytest.param(b'{"\\ud800": 1}', id="lone surrogate"),
        pytest.param(b"[" * 40_000, id="deep nesting"),
        pytest.param(b'{"reward": 1', id="cut off"),
        pytest.param(b'{"reward": 1} {"reward": 0}', id="two objects"),
    ],
)
def test_reward_json_that_is_no_flat_object_of_numbers_is_unreadable(data: bytes) -> None:
    with pytest.raises(Refusal) as caught:
        parse_reward_json(data)
    assert caught.value.reason is Reason.REWARD_UNREADABLE
    encode(caught.value.as_record())


def _reason(reward_txt: VerdictFile, reward_json: VerdictFile) -> Reason:
    with pytest.raises(Refusal) as caught:
        read_rewards(reward_txt, reward_json)
    return caught.value.reason


def test_neither_file_is_reward_missing() -> None:
    assert _reason(ABSENT, ABSENT) is Reason.REWARD_MISSING


def test_files_that_say_different_things_disagree() -> None:
    assert _reason(Content(b"1"), Content(b'{"reward": 0}')) is Reason.VERDICTS_DISAGREE


@pytest.mark.parametrize(("text", "document"), [(b"1", b"1.0"), (b"0.10", b"0.1"), (b"1e0", b"1"), (b"-0.0", b"0")])
def test_the_same_number_written_differently_agrees(text: bytes, document: bytes) -> None:
    rewards = read_rewards(Content(text), Content(b'{"reward": ' + document + b', "other": 2}'))
    assert rewards.values["reward"] == float(document)
    assert rewards.values["other"] == 2


def test_reward_txt_adds_the_key_that_reward_json_lacks() -> None:
    assert read_rewards(Content(b"1"), Content(b'{"f1": 0.5}')).values == {"f1": 0.5, "reward": 1}


def test_one_unusable_file_is_enough() -> None:
    assert _reason(Content(b"1"), Content(b"")) is Reason.REWARD_UNREADABLE
    assert _reason(Content(b""), Content(b'{"reward": 1}')) is Reason.REWARD_UNREADABLE
    assert _reason(NotAFile("symbolic link"), Content(b'{"reward": 1}')) is Reason.REWARD_UNREADABLE
    assert _reason(NotAFile("fifo"), ABSENT) is Reason.REWARD_UNREADABLE


def test_a_verdict_without_bounds_is_too_large() -> None:
    assert _reason(TooLarge(2 * 2**30), ABSENT) is Reason.REWARD_TOO_LARGE
    assert _reason(Content(b"1" + b" " * MAX_REWARD_BYTES), ABSENT) is Reason.REWARD_TOO_LARGE
    assert _reason(ABSENT, TooLarge(2 * 2**30)) is Reason.REWARD_TOO_LARGE
    assert read_rewards(Content(b"1" + b" " * (MAX_REWARD_BYTES - 1)), ABSENT).values == {"reward": 1}


def test_rewards_that_no_journal_entry_can_hold_are_too_large() -> None:
    many = json.dumps({f"key-{number:05}": number for number in range(2500)}).encode()
    assert len(many) <= MAX_REWARD_BYTES
    assert _reason(ABSENT, Content(many)) is Reason.REWARD_TOO_LARGE
