"""The strict reader: exactly what stands there, or a refusal that says where it stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.strictjson import MAX_BYTES, loads, loads_canonical

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda children: st.lists(children) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), children),
    max_leaves=20,
)
# i_ cases may be read or not, but it must stay as it is: these are read, all others refused.
I_READ = {"i_number_too_big_neg_int.json": [-123123123123123123123123123123]}


def refusal(data: bytes, **bounds: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        loads(data, **bounds)
    assert caught.value.reason is Reason.JSON_INVALID
    return caught.value


def test_every_file_of_the_json_test_suite(cases: Path) -> None:
    files = sorted((cases / "json" / "JSONTestSuite").iterdir())
    assert len(files) == 169
    for file in files:
        data = file.read_bytes()
        duplicate = file.name == "y_object_duplicated_key.json"
        if file.name.startswith("y_") and not duplicate:
            assert loads(data) == json.loads(data), file.name
        elif file.name in I_READ:
            assert loads(data) == I_READ[file.name], file.name
        else:
            refusal(data)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number_-9223372036854775808", [-(2**63)]),
        ("number_-9223372036854775809", [-(2**63) - 1]),
        ("number_1.0", [1.0]),
        ("number_1.000000000000000005", [1.0]),
        ("number_1000000000000000", [10**15]),
        ("number_10000000000000000999", [10000000000000000999]),
        ("number_1e6", [1e6]),
        ("number_9223372036854775807", [2**63 - 1]),
        ("number_9223372036854775808", [2**63]),
        ("object_key_nfc_nfd", {"\u00e9": "NFC", "e\u0301": "NFD"}),
        ("object_key_nfd_nfc", {"\u00e9": "NFC", "e\u0301": "NFD"}),
        ("string_with_escaped_NULL", ["A\x00B"]),
    ],
)
def test_transform_files_that_are_read_exactly(cases: Path, name: str, value: Any) -> None:
    read = loads((cases / "json" / "JSONTestSuite-transform" / f"{name}.json").read_bytes())
    assert repr(read) == repr(value) or read == value
    assert [type(x) for x in read] == [type(x) for x in value]


def test_transform_files_that_are_refused(cases: Path) -> None:
    files = sorted((cases / "json" / "JSONTestSuite-transform").iterdir())
    refused = [f for f in files if f.name.startswith(("object_same_key", "string_1", "string_2", "string_3"))]
    refused += [f for f in files if f.name == "number_1e-999.json"]
    assert len(files) == 22 and len(refused) == 10
    for file in refused:
        refusal(file.read_bytes())


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b'{"a": }', 6),
        ('"é" x'.encode(), 5),
        (b'"ab\xff"', 3),
        (b"[1,]", 3),
        (b"", 0),
        (b'{"a":1}{}', 7),
        (b"[" * 65 + b"]" * 65, 64),
        (b'["]]]]\\"[[",' + b"[" * 64, 12 + 63),
    ],
)
def test_a_refusal_says_at_which_byte(data: bytes, offset: int) -> None:
    assert refusal(data).observed == {"offset": offset}


def test_a_refusal_carries_the_path_and_what_was_seen() -> None:
    caught = refusal(b'{"id":"wrong","id":"right"}', path="answers.json")
    assert caught.path == "answers.json"
    assert caught.observed == {"text": "id"}


@pytest.mark.parametrize(
    "data", [b'{"\\ud800":1,"\\ud800":2}', b'["\\udfff"]', b"[" + b"1" * 60_000 + b"]", b"\xff" * 100, b'"\\ud800']
)
def test_a_refusal_can_itself_be_recorded(data: bytes) -> None:
    assert len(encode(refusal(data).as_record())) < 1000


def test_length_is_bounded_and_the_bound_is_the_callers() -> None:
    longest = b'"' + b"a" * (MAX_BYTES - 2) + b'"'
    assert len(loads(longest)) == MAX_BYTES - 2
    assert refusal(longest + b" ").observed == {"bytes": MAX_BYTES + 1}
    assert len(loads(longest + b" ", max_bytes=MAX_BYTES + 1)) == MAX_BYTES - 2


def test_depth_is_bounded_and_the_bound_is_the_callers() -> None:
    assert loads(b"[[[]]]", max_depth=3) == [[[]]]
    refusal(b"[[[]]]", max_depth=2)
    assert loads(b'{"a":[1],"b":[2],"c":["[[[["]}', max_depth=2) == {"a": [1], "b": [2], "c": ["[[[["]}
    assert loads(b"[" * 200 + b"]" * 200, max_depth=200)
    refusal(b"[" * 200_000, max_bytes=200_000, max_depth=200_000)


def test_hostile_quotes_in_front_of_many_brackets_are_passed_in_linear_time() -> None:
    refusal(b'"' + b'\\"' * 30_000 + b"[" * 100 + b"\\", max_depth=64)
    assert loads(b'["' + b'\\"[' * 20_000 + b'"]') == ['"[' * 20_000]


@given(VALUES)
def test_reads_back_what_was_written(value: Any) -> None:
    written = encode(value)
    assert loads(written) == json.loads(written)
    assert encode(loads_canonical(written)) == written


@given(VALUES, st.data())
def test_another_spelling_is_not_canonical(value: Any, data: st.DataObject) -> None:
    canonical = encode(value)
    other = data.draw(
        st.sampled_from(
            [
                canonical + b" ",
                b"\n" + canonical,
                json.dumps(value, indent=1).encode(),
                json.dumps(value, sort_keys=False, separators=(",", ":")).encode(),
                canonical.replace(b":", b": "),
                canonical.replace(b"a", b"\\u0061"),
                canonical.replace(b"e", b"E"),
            ]
        )
    )
    if other == canonical:
        assert encode(loads_canonical(other)) == canonical
        return
    try:
        same = encode(loads_canonical(other)) == other
    except Refusal as refused:
        assert refused.reason is Reason.JSON_INVALID
    else:
        assert same


@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:\\ud80 \n-+.eE019aNtrufls\ufeff').map(str.encode))
@example(b"-")
@example(b"[-]")
@example(b"-Infinity")
def test_any_bytes_are_a_value_or_a_refusal(data: bytes) -> None:
    try:
        value = loads(data)
    except Refusal as refused:
        assert refused.reason is Reason.JSON_INVALID
        encode(refused.as_record())
    else:
        assert json.loads(data) == value


@pytest.mark.parametrize(
    ("line", "offset"),
    [
        (b'{"b":1,"a":2}', 2),
        (b'{"a": 1}', 5),
        (b"[1.0]", 2),
        (b'{"a":1}\n', 7),
        (b"1e7", 1),
        (b'"\\u00e9"', 1),
        (b"-0", 0),
    ],
)
def test_a_refusal_of_another_form_says_where_it_differs(line: bytes, offset: int) -> None:
    with pytest.raises(Refusal) as caught:
        loads_canonical(line, path="journal.jsonl:7")
    assert caught.value.reason is Reason.JSON_INVALID
    assert caught.value.path == "journal.jsonl:7"
    assert caught.value.observed["offset"] == offset


def test_a_canonical_integer_beyond_2_to_53_is_the_float_it_stands_for() -> None:
    assert repr(loads_canonical(b"100000000000000000000")) == "1e+20"
    assert loads(b"100000000000000000001") == 10**20 + 1
    with pytest.raises(Refusal):
        loads_canonical(b"100000000000000000001")
    with pytest.raises(Refusal):
        loads_canonical(b"9007199254740993")
