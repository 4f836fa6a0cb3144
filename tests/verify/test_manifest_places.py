"""Where a manifest may stand, and what is said of one that is said to stand elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from stories import full_story

from proctor_verify import Status, verify
from proctor_verify.checks.manifests import is_manifest_path


def test_places_are_numbered_from_one_with_four_digits_or_more() -> None:
    assert all(is_manifest_path(f"manifests/{number}.json") for number in ("0001", "9999", "10000", "100000000"))
    others = ("0000", "001", "00001", "1000000000", "000a")
    assert not any(is_manifest_path(f"manifests/{number}.json") for number in others)
    assert not is_manifest_path("0001.json") and not is_manifest_path("")


@pytest.mark.parametrize("path", ["", "manifests", "0002.json", "manifests/../manifests/0002.json"])
def test_what_is_no_place_leaves_the_verdict_open(path: str, tmp_path: Path) -> None:
    story = full_story()
    manifest = story.find("run.admitted").body["manifest"]
    story.find("run.admitted").body["manifest"] = {"path": path, "sha256": story.settled(manifest)["sha256"]}
    story.write(tmp_path)
    report = verify(tmp_path, story.signer.fingerprint)
    assert report.failed() == ["manifests.bound", "manifests.unbound"]
    verdict = next(result for result in report.results if result.check == "manifests.verdict")
    assert verdict.status is Status.CANNOT_TELL
