"""What a checkpoint that a person kept may cover, and what is said of one that is none of this run."""

from __future__ import annotations

from pathlib import Path

from builder import Story
from plants import STRANGER
from stories import full_story


def _said(tmp_path: Path, kept_of: Story) -> str:
    """Of a whole run, where the last checkpoint of that story was kept."""
    # imported here and not before: the mutation run has many programs
    from proctor_verify import verify

    story = full_story()
    folder = story.write(tmp_path / "run")
    kept = sorted((kept_of.write(tmp_path / "other") / "checkpoints").iterdir())[-1]
    report = verify(folder, story.signer.fingerprint, since=str(kept))
    [result] = [result for result in report.results if result.check == "since.extends"]
    return result.findings[0].seen if result.findings else result.seen


def test_one_of_all_that_stands(tmp_path: Path) -> None:
    assert _said(tmp_path, full_story()).endswith(": 0 since then")


def test_one_of_another_run(tmp_path: Path) -> None:
    other = full_story()
    other.run_id = "another"
    assert _said(tmp_path, other) == f"is of proctor/run/another, not of proctor/run/{full_story().run_id}"


def test_one_by_another_key(tmp_path: Path) -> None:
    assert _said(tmp_path, full_story(STRANGER)) == "is not signed by the run's key"
