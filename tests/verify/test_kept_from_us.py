"""A folder that may not be listed may hold anything, and is a finding."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from steps import Step
from stories import full_story

from proctor_verify import verify

NOBODY = 65534


@pytest.mark.parametrize("name", ["manifests", "blobs"])
def test_a_folder_that_may_not_be_listed_is_a_finding(name: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        story = full_story()
        run = story.write(Path(place) / "run")
        assert verify(run, story.signer.fingerprint).exit_status == 0
        (run / name).chmod(0)
        root = os.geteuid() == 0
        if root:
            os.seteuid(NOBODY)
        try:
            report = verify(run, story.signer.fingerprint)
        finally:
            if root:
                os.seteuid(0)
            (run / name).chmod(0o755)
    found = next(result for result in report.results if result.check == "files.unlisted")
    assert [finding.path.rstrip("/") for finding in found.findings] == [name]


def test_who_else_stands_in_the_folder_of_an_attempt_that_is_not_planned(tmp_path: Path) -> None:
    story = full_story()
    admitted = {**story.find("attempt.admitted").body, "attempt": f"{'0' * 16}/0", "trial": "0" * 16}
    admitted["folder"] = "trials/another-00000000/0"
    ended = {**story.find("attempt.ended", outcome="infrastructure").body, "attempt": admitted["attempt"]}
    first = story.find("block.admitted")
    story.insert_before(first, Step("attempt.admitted", admitted), Step("attempt.ended", ended))
    story.files["trials/another-00000000/0/stranger"] = b"?"
    story.write(tmp_path)
    assert verify(tmp_path, story.signer.fingerprint).failed() == ["attempts.joined", "files.unlisted"]
