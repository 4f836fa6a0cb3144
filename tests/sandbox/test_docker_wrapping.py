"""What wrappers say beside a command's own output."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.sandbox.docker.wrapping import Report, wrapped

MARK = "0123456789abcdef"


@given(st.lists(st.binary(max_size=40)), st.integers(0, 255), st.booleans(), st.integers(1, 60))
def test_a_report_is_found_however_it_is_cut_and_the_rest_is_the_commands(
    own: list[bytes], code: int, reported: bool, piece: int
) -> None:
    command = b"".join(own)
    said = command + (f"\n{MARK} ended {code}\n".encode() if reported else b"") + b"later"
    report = Report(MARK)
    kept = b"".join(report.take(said[at : at + piece]) for at in range(0, len(said), piece)) + report.rest()
    assert kept == command + b"later"
    assert report.code == (code if reported else None)


def test_what_only_begins_like_a_report_is_the_commands() -> None:
    report = Report(MARK)
    assert report.take(f"\n{MARK[:5]}".encode()) == b""
    assert report.take(b"x") == f"\n{MARK[:5]}x".encode()
    assert report.take(f"\n{MARK} ended".encode()) == b"" and report.rest() == f"\n{MARK} ended".encode()
    assert report.take(f"\n{MARK} ".encode() + b"x" * 20_000) == b"" and report.code is None and report.cannot is None


def test_what_nobody_else_says_is_why_it_cannot_start() -> None:
    report = Report(MARK, alone=True)
    assert report.take(b"exec format error\n") == b"exec format error" and report.cannot == "exec format error"
    other = Report(MARK)
    assert other.take(b"words") == b"words" and other.cannot is None


def run(*argv: str, joined: bool = True) -> tuple[int, bytes, Report]:
    done = subprocess.run(wrapped(argv, MARK, joined=joined, leaving=False), capture_output=True, cwd="/", timeout=600)
    report = Report(MARK)
    return done.returncode, done.stdout + report.take(done.stderr), report


def test_both_outputs_come_in_order_in_one_pipe() -> None:
    code, said, report = run("sh", "-c", "for i in 1 2 3; do echo out$i; echo err$i >&2; done; exit 3")
    assert (code, said) == (3, b"out1\nerr1\nout2\nerr2\nout3\nerr3\n") and report.cannot is None


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("no-such-program", "no-such-program: not found"),
        ("./no/such", "./no/such: not found"),
        ("/etc", "/etc: is a folder"),
        ("", ": not found"),
        ("a %s b", "a %s b: not found"),
    ],
)
def test_what_cannot_start_is_said(word: str, why: str) -> None:
    assert run(word, "x")[2].cannot == why


def test_a_file_that_is_no_program_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert run(str(tmp_path / "file"))[2].cannot == f"{tmp_path}/file: permission denied"


def test_a_command_that_needs_nothing_is_left_as_it_is() -> None:
    assert wrapped(["a", "b"], MARK, joined=False, leaving=False) == ["a", "b"]
