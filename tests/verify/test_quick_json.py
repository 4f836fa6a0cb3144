"""The quick ways of reading and of writing JSON say what the slow ones say, at the edges of what they may tell."""

from __future__ import annotations

from typing import Any

import pytest

from proctor_verify import canonical
from proctor_verify.errors import Unreadable
from proctor_verify.strictjson import MAX_BYTES, MAX_DEPTH, encode, loads, loads_canonical, loads_plain

# What is canonical, and whether the quick way can tell.
CANONICAL: list[tuple[str, Any, bool]] = [
    ("{}", {}, True),
    ('{"a":[1,-2,null,true],"b":"c"}', {"a": [1, -2, None, True], "b": "c"}, True),
    ("0.5", 0.5, True),
    ("-0.0001", -0.0001, True),
    ("0.0001", 0.0001, True),
    ('"\u00e9\uffff"', "\u00e9\uffff", True),
    ('"\U00010000"', "\U00010000", False),
    ("99999999999999", 99999999999999, True),
    ("999999999999999", 999999999999999, True),
    ("-99999999999999", -99999999999999, True),
    ("1000000000000000", 10**15, False),
    ("9007199254740991", 2**53 - 1, False),
    ("-9007199254740991", 1 - 2**53, False),
    ("9007199254740992", 2.0**53, False),
    ("1e-7", 1e-7, False),
    ("1e+21", 1e21, False),
    ("1.5e-10", 1.5e-10, False),
    ("10000000000000000", 1e16, False),
    ('{"1e+16":"1.0"}', {"1e+16": "1.0"}, True),
    ("[1e-7,7]", [1e-7, 7], False),
    ('{"\U00010000":1,"\uffff":2}', {"\U00010000": 1, "\uffff": 2}, False),
]
OTHERWISE = [
    "1.0",
    "1e16",
    "1e+16",
    "1e-07",
    "0.00001e1",
    "-0",
    "-0.0",
    " 1",
    "1 ",
    "1 2",
    "[1, 2]",
    '{"b":1,"a":2}',
    '{"a":1,"a":1}',
    '"\\u0061"',
    '"\\/"',
    '{"\uffff":2,"\U00010000":1}',
    "[1.5e0]",
    "9007199254740993",
    "10000000000000000000000",
    "",
]


@pytest.mark.parametrize(("text", "value", "plainly"), CANONICAL)
def test_what_is_canonical(text: str, value: Any, plainly: bool) -> None:
    data = text.encode()
    assert repr(loads_canonical(data)) == repr(value)
    assert encode(value) == canonical.encode(value) == data
    assert loads_plain(data) == (value if plainly else None)


@pytest.mark.parametrize("text", OTHERWISE)
def test_what_is_not(text: str) -> None:
    with pytest.raises(Unreadable):
        loads_canonical(text.encode())
    assert loads_plain(text.encode()) is None


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        [0.0],
        {"a": -0.0},
        1e16,
        [1e-5, 2],
        1e-7,
        {"a": 1e22},
        {"\uffff": 1, "\U00010000": 2},
        "1e+16",
        "a:1.0}",
        [[1.0]],
    ],
)
def test_how_what_the_quick_way_cannot_tell_is_written(value: Any) -> None:
    assert encode(value) == canonical.encode(value)


@pytest.mark.parametrize("read", [loads, loads_canonical])
def test_how_deep_and_how_long(read: Any) -> None:
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    beside = f"[{'[],' * MAX_DEPTH}{deep[1:-1]}]"
    assert read(deep.encode()) is not None and read(beside.encode()) is not None
    for text in (f"[{deep}]", beside.replace("[]]", "[[]]]"), f'{{"a":{deep}}}'):
        with pytest.raises(Unreadable):
            read(text.encode())
    assert read(b'"%b"' % (b"a" * (MAX_BYTES - 2))) == "a" * (MAX_BYTES - 2)
    with pytest.raises(Unreadable):
        read(b'"%b"' % (b"a" * (MAX_BYTES - 1)))
    assert loads_plain(b'"%b"' % (b"a" * (MAX_BYTES - 1))) is None
    assert loads_plain(b"\xff") is None


def test_what_cannot_be_written() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for value in (deep, float("nan"), [float("inf")], "\ud800", {"\udfff": 1}):
        with pytest.raises(Unreadable):
            encode(value)
