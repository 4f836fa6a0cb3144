"""A folder that may not be listed may hold anything, and is a finding."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
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
