"""The second program, in a process that shares nothing with this one: how it is started, and what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_SAID = 400
_TABLE_SEC = 60


class NoReport(RuntimeError):
    """The second program ended without a report; `said` is the end of what it said instead."""

    def __init__(self, said: str) -> None:
        super().__init__(f"the second program made no report: {said}")
        self.said = said


def second_program(
    run: Path,
    key: str | None,
    *,
    as_json: bool,
    anchors: Sequence[str] = (),
    since: str | None = None,
    witnesses: Sequence[str] = (),
) -> list[str]:
    """The command that re-checks a run; exit status 0 all hold, 1 something fails, 2 could not read."""
    # one word each: a value may look like an option
    told = [("key", key), *(("anchor", where) for where in anchors), ("since", since)]
    told += [("witness", witness) for witness in witnesses]
    options = [f"--{name}={value}" for name, value in told if value is not None]
    options += ["--json"] if as_json else []
    # -P: a run folder that is the current one must not bring modules of its own
    return [sys.executable, "-P", "-m", "proctor_verify", *options, "--", str(run)]


def on_design(file: Path, *, as_json: bool) -> list[str]:
    """The command that checks a frozen design alone; exit status as of a run."""
    return [sys.executable, "-P", "-m", "proctor_verify", *(["--json"] if as_json else []), f"--design={file}"]


def list_checks(*, as_json: bool) -> list[str]:
    """The command that says what is checked."""
    return [sys.executable, "-P", "-m", "proctor_verify", *(["--json"] if as_json else []), "--checks"]


def table_of_checks() -> list[dict[str, str]]:
    """What the second program checks: `check`, what it is `about`, and when it holds (`holds_when`).

    Raises:
        NoReport: it did not say.
    """
    try:
        ended = subprocess.run(list_checks(as_json=True), capture_output=True, check=True, timeout=_TABLE_SEC)
        rows: list[dict[str, str]] = json.loads(ended.stdout)
    except (subprocess.SubprocessError, ValueError) as fault:
        raise NoReport(str(fault)[-_SAID:]) from fault
    return rows


def report_of(command: Sequence[str], deadline_sec: float | None = None) -> tuple[int, dict[str, Any]]:
    """The exit status of a command with `--json`, and its report.

    Raises:
        TimeoutError: it did not come to an end by the deadline.
        NoReport: it ended without one.
    """
    try:
        ended = subprocess.run(command, capture_output=True, timeout=deadline_sec, check=False)
    except subprocess.TimeoutExpired as fault:
        raise TimeoutError(f"the second program did not end within {deadline_sec} s") from fault
    try:
        report: dict[str, Any] = json.loads(ended.stdout)
    except ValueError as fault:
        raise NoReport(ended.stderr.decode(errors="replace").strip()[-_SAID:]) from fault
    return ended.returncode, report
