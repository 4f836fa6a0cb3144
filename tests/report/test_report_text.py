"""What is printed cannot steer a terminal, and columns align."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.report.text import amount, safe, safe_output, seconds, table, width

any_text = st.text(st.characters(codec=None, exclude_categories=()))


@given(any_text)
def test_nothing_in_a_safe_text_is_acted_upon(text: str) -> None:
    shown = safe(text)
    assert not any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in shown)
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", shown)
    assert shown.encode().decode() == shown


@given(any_text)
def test_safe_output_keeps_lines_and_tabs_and_nothing_else(text: str) -> None:
    assert [safe(line) for line in re.split("[\t\n]", text)] == re.split("[\t\n]", safe_output(text))


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert safe(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [("\x1b[2J", "\\x1b[2J"), ("a\nb", "a\\nb"), ("\u202etxt", "\\u202etxt"), ("\udcff", "\\udcff"), ("é漢", "é漢")],
)
def test_what_steers_is_shown(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_columns_align_whatever_the_width_of_characters() -> None:
    lines = table(["name", "n"], [["漢字", 1], ["e\u0301", 22], [None, 333]], right=[1])
    assert lines == ["name    n", "漢字    1", "e\u0301      22", "-     333"]
    assert {width(line) for line in lines} == {9}


def test_a_newline_in_a_name_adds_no_line() -> None:
    assert table(["a"], [["x\ny"]]) == ["a", "x\\ny"]


@pytest.mark.parametrize(
    ("ns", "shown"),
    [(None, None), (0, "0.00 s"), (1_234_567_890, "1.23 s"), (61 * 10**9, "1m01s"), (3_661 * 10**9, "1h01m01s")],
)
def test_durations(ns: int | None, shown: str | None) -> None:
    assert seconds(ns) == shown


@pytest.mark.parametrize(("size", "shown"), [(0, "0 bytes"), (1536, "1.5 KiB"), (2**50, "1024.0 TiB")])
def test_amounts(size: int, shown: str) -> None:
    assert amount(size) == shown
