"""Lines: written canonical, read strictly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.canonical import encode
from proctor.core.refusal import Refusal
from proctor.evidence.entries import Chain, check_body, make_line, parse_line
from proctor.evidence.kinds import Kind
from proctor.evidence.merkle import leaf_hash, root
from proctor.evidence.reader import read_entries, read_lines

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_JSON = st.recursive(
    st.none() | st.booleans() | _NUMBERS | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=10,
)
TIME = "2026-01-02T03:04:05.678901Z"


@given(values=st.lists(_JSON, min_size=1, max_size=4), mono=st.integers(0, 2**53 - 1))
def test_a_line_is_the_canonical_form_of_its_entry_and_reads_back(values: list[Any], mono: int) -> None:
    written, read = Chain(), Chain()
    for number, value in enumerate(values, start=1):
        body = {"cause": value}
        prev = written.head
        line = make_line(written, TIME, mono, Kind.RUN_DRAINING, encode(body))
        whole = {"seq": number - 1, "prev": prev, "time": TIME, "mono": mono, "kind": "run.draining", "body": body}
        assert line == encode(whole)
        entry = parse_line(line, number, chain=read)
        assert (entry.seq, entry.prev, entry.mono, entry.kind) == (number - 1, prev, mono, Kind.RUN_DRAINING)
        assert encode(entry.body) == encode(body)
        written.advance(line)
        read.advance(line)
    assert (read.head, read.tree.root()) == (written.head, written.tree.root())


@given(lines=st.lists(st.binary(max_size=20), max_size=20), looks=st.sets(st.integers(0, 19)))
def test_a_tree_that_was_left_for_later_is_the_same_whenever_it_is_looked_at(
    lines: list[bytes], looks: set[int]
) -> None:
    at_once, later = Chain(), Chain()
    for number, line in enumerate(lines):
        at_once.advance(line)
        later.link(line)
        assert (later.size, later.head) == (number + 1, at_once.head)
        if number in looks:
            assert (later.tree.size, later.tree.root()) == (at_once.tree.size, at_once.tree.root())
    later.grow()
    assert (later.tree.size, later.tree.root()) == (at_once.tree.size, at_once.tree.root())
    assert at_once.tree.root() == root([leaf_hash(line) for line in lines])


@pytest.mark.parametrize("number", ["9007199254740994", "100000000000000000000", "1e+21"])
def test_numbers_that_are_canonical_only_as_doubles_are_read(number: str) -> None:
    line = make_line(Chain(), TIME, 0, Kind.RUN_DRAINING, b'{"cause":%b}' % number.encode())
    assert parse_line(line, 1).body == {"cause": float(number)}


@pytest.mark.parametrize("number", ["1.0", "-0", "1E5", "9007199254740993", "01", "NaN", "1e400"])
def test_numbers_in_another_form_are_damage(number: str) -> None:
    line = make_line(Chain(), TIME, 0, Kind.RUN_DRAINING, b'{"cause":%b}' % number.encode())
    with pytest.raises(Refusal):
        parse_line(line, 1)


def test_a_body_is_checked_by_name_and_not_by_number_of_fields() -> None:
    with pytest.raises(ValueError, match=r"missing \['boundary'\].*own \['border'\]"):
        check_body(Kind.ATTEMPT_BOUNDARY, {"attempt", "border"})


@given(
    lines=st.lists(st.binary(max_size=50).map(lambda b: b.replace(b"\n", b"")), max_size=20),
    rest=st.binary(max_size=50).map(lambda b: b.replace(b"\n", b"")),
)
def test_lines_are_split_at_newlines_only_and_the_rest_is_left(
    lines: list[bytes], rest: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("lines") / "file"
    path.write_bytes(b"".join(line + b"\n" for line in lines) + rest)
    with path.open("rb") as file:
        assert list(read_lines(file)) == lines


def test_lines_over_the_borders_of_reads_are_whole_and_endless_ones_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\n".join([b"a" * 1_048_570, b"b" * 20, b"c" * 5_000_000, b"d"]) + b"\n")
    with path.open("rb") as file:
        lines = list(read_lines(file))
    assert [line[:1] for line in lines] == [b"a", b"b", b"c", b"d"]
    assert [len(line) for line in lines[:2]] == [1_048_570, 20]
    assert 65_535 < len(lines[2]) < 3_000_000


def test_there_is_no_journal_in_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        list(read_entries(tmp_path / "journal.jsonl"))
    assert refused.value.reason.id == "run_not_found"
