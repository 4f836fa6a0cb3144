"""tests.json of an attempt, made anew from the verdict files that its verifier left."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

from proctor.grading.files import MAX_REPORT_BYTES, Absent, Content, NotAFile, TooLarge, VerdictFile, VerdictFiles
from proctor.grading.join import per_test_record
from proctor.grading.verdicts import read_verdicts


def tests_of(attempt: Path) -> dict[str, Any] | None:
    """The content of tests.json for an attempt's folder; None where no verifier left anything there.

    Raises:
        OSError: a verdict file is there and cannot be read.
    """
    output = attempt / "verifier"
    return per_test_record(read_verdicts(verdict_files(output))) if output.is_dir() else None


def verdict_files(output: Path) -> VerdictFiles:
    """The verdict files in a verifier's output folder."""
    return VerdictFiles(
        reward_txt=_file(output / "reward.txt"),
        reward_json=_file(output / "reward.json"),
        ctrf=_file(output / "ctrf.json"),
        junit=_file(output / "junit.xml"),
    )


def _file(path: Path) -> VerdictFile:
    try:
        seen = path.lstat()
    except FileNotFoundError:
        return Absent()
    if not stat.S_ISREG(seen.st_mode):
        return NotAFile("a special file")
    if seen.st_size > MAX_REPORT_BYTES:
        return TooLarge(seen.st_size)
    return Content(path.read_bytes())
