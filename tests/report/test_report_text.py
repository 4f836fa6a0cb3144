"""What is printed cannot steer a terminal, and columns align."""

from __future__ import annotations

import re
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.report.text import (
    amount,
    command,
    count,
    field,
    fitted,
    moment,
    plain,
    program,
    safe,
    safe_output,
    seconds,
    table,
    typable,
    width,
)

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


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.report.text.screen", lambda: 40)


ROWS = [["pass", "one/task", "a reason in many words, too many for a line"], ["fail", "other", None]]


@pytest.mark.usefixtures("terminal")
def test_on_a_terminal_cells_go_on_below_themselves() -> None:
    assert table(["grade", "task", "why"], ROWS) == [
        "grade  task      why",
        "pass   one/task  a reason in many words,",
        "                 too many for a line",
        "fail   other     -",
    ]


@pytest.mark.usefixtures("terminal")
@given(st.lists(st.lists(st.text(st.sampled_from("ab漢 "), max_size=60), min_size=3, max_size=3), max_size=4))
def test_no_word_is_broken_and_none_is_lost(rows: list[list[str]]) -> None:
    lines = table(["x", "y", "z"], rows)
    words = [word for row in rows for cell in row for word in cell.split()]
    assert sorted(" ".join(lines[1:]).split()) == sorted(words)
    longest = max([8, *map(width, words)])
    assert all(width(line) <= max(40, 3 * longest + 4) for line in lines)


def test_elsewhere_a_row_is_a_line() -> None:
    assert len(table(["grade", "task", "why"], ROWS)) == 3


@pytest.mark.usefixtures("terminal")
def test_a_field_goes_on_below_itself() -> None:
    lines = field("outcome", "completed, after a while and many words")
    assert lines == ["outcome    completed, after a while and", "           many words"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "true"),
        ({"grade": "fail", "reason": None, "reward": 0}, "grade: fail; reward: 0"),
        (["a", 2, None], "a, 2, none"),
        ([], "none"),
        ("2", "2"),
        ({"paths": ["x", "y"]}, "paths: x, y"),
    ],
)
def test_values_in_words(value: object, shown: str) -> None:
    assert plain(value) == shown


def test_plurals() -> None:
    assert [count(number, "trial") for number in (0, 1, 2)] == ["0 trials", "1 trial", "2 trials"]
    assert count(2, "entry", "entries") == "2 entries"


def test_moments_are_told_to_the_second() -> None:
    assert moment("2026-11-30T01:47:37.981044Z") == "2026-11-30T01:47:37Z"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program `proctor` in a folder that is not on PATH; the current folder is above it."""
    folder = tmp_path / "my venv/bin"
    folder.mkdir(parents=True)
    (folder / "proctor").write_text("#!/bin/sh\n")
    (folder / "proctor").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    return folder / "proctor"


def test_a_command_that_is_not_on_path_is_named_by_its_path(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(installed), "run"])
    assert command("proctor", "verify", "a run") == "'my venv/bin/proctor' verify 'a run'"
    assert typable("See `proctor logs RUN`, of proctor.") == "See `'my venv/bin/proctor' logs RUN`, of proctor."
    monkeypatch.chdir(installed.parent)
    assert program() == "./proctor"


def test_a_command_on_path_is_named_as_such(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(installed), "run"])
    monkeypatch.setenv("PATH", str(installed.parent))
    assert program() == "proctor"


def test_another_command_of_that_name_on_path_is_not_meant(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nowhere").mkdir()
    (tmp_path / "nowhere/proctor").write_text("#!/bin/sh\n")
    (tmp_path / "nowhere/proctor").chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(installed), "run"])
    assert program() == "'my venv/bin/proctor'"


def test_a_module_is_named_with_its_python(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/src/proctor/__main__.py", "run"])
    monkeypatch.setattr(sys, "executable", str(installed.with_name("python3")))
    assert program() == "'my venv/bin/python3' -m proctor"
    monkeypatch.setenv("PATH", str(installed.parent))
    assert program() == "proctor"


def test_a_line_goes_on_between_words_and_keeps_what_it_begins_with(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fitted("    four five six", 4) == ["    four five six"]
    monkeypatch.setattr("proctor.report.text.screen", lambda: 20)
    assert fitted("    four five six", 4) == ["    four five", "    six"]
    assert fitted("short", 4) == ["short"]
    assert fitted("x" * 40, 4) == ["x" * 40], "a word is never broken"
