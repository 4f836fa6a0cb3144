"""tests.json of an attempt, made anew from the verdict files that its verifier left."""

from __future__ import annotations

from typing import Any

from proctor.evidence.disk import unreadable
from proctor.evidence.runfolder import RunFolder
from proctor.grading.files import verdict_files
from proctor.grading.join import per_test_record
from proctor.grading.verdicts import read_verdicts
from proctor.report.tailing import inside


def tests_of(run: RunFolder, folder: str) -> dict[str, Any] | None:
    """The content of tests.json for an attempt's folder; None where no verifier left anything there.

    Raises:
        Refusal: `evidence_unreadable`, or `evidence_damaged` where a path leads out of the run.
    """
    output = inside(run, f"{folder}/verifier")
    if not output.is_dir():
        return None
    try:
        files = verdict_files(output)
    except OSError as error:
        raise unreadable("a verdict file", f"{folder}/verifier", error) from error
    return per_test_record(read_verdicts(files))
