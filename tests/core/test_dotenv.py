from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.dotenv import parse_dotenv, pick_keys, with_dotenv
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A=1\nB = two words \n", {"A": "1", "B": "two words"}),
        ("export A=1\n\texport\tB=2", {"A": "1", "B": "2"}),
        ("# A=1\n  # B=2\nC=3 # three\nD=a#b\nE=# nothing", {"C": "3", "D": "a#b", "E": ""}),
        ('A="x # y" # z\nB=\'$A \\n\'\nC="q\\"\\\\\\nr"', {"A": "x # y", "B": "$A \\n", "C": 'q"\\\nr'}),
        ("A=$B\nC=${D}", {"A": "$B", "C": "${D}"}),
        ("A=1\nA=2", {"A": "2"}),
        ("\ufeffA=1\r\nB=2\r\n", {"A": "1", "B": "2"}),
        ("A\n=1\n1A=2\nA-B=3\nif x; then\n", {}),
        ('A="never closed', {"A": '"never closed'}),
        ("A=a=b==", {"A": "a=b=="}),
    ],
)
def test_lines_of_a_dotenv_file(text: str, found: dict[str, str]) -> None:
    assert parse_dotenv(text) == found


@given(
    st.dictionaries(
        st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True), st.text(max_size=20).filter(str.isprintable)
    )
)
def test_quoted_values_come_back(values: dict[str, str]) -> None:
    lines = [f'{name}="{value.translate({34: chr(92) + chr(34), 92: chr(92) * 2})}"' for name, value in values.items()]
    assert parse_dotenv("\n".join(lines)) == values


def test_the_environment_goes_first(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=file\nB=file\nC=file\n")
    assert with_dotenv({"A": "set", "B": " "}, tmp_path) == {"A": "set", "B": "file", "C": "file"}
    assert with_dotenv({"A": "set"}, tmp_path / "none") == {"A": "set"}


@pytest.mark.parametrize("content", [b"A=\xff", b"A=" + b"x" * (1 << 20)])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".env").write_bytes(content)
    with pytest.raises(Refusal) as caught:
        with_dotenv({}, tmp_path)
    assert caught.value.reason is Reason.FILE_UNREADABLE


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / ".env")
    with pytest.raises(Refusal) as caught:
        with_dotenv({}, tmp_path)
    assert caught.value.reason is Reason.FILE_UNREADABLE


def test_keys_that_are_missing_are_listed() -> None:
    assert pick_keys(["A", "B", "A", "C"], {"A": " k\n", "B": "  "}) == ({"A": "k"}, ("B", "C"))
