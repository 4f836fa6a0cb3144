"""What a report claims, and what it owns to: no more than the signed part of the evidence says."""

from __future__ import annotations

import json
from pathlib import Path

from anchored import anchored_story, drop_beside, write_anchors
from primitives import canonical
from stories import full_story

from proctor_verify import verify
from proctor_verify.report import Report


def started_with(report: Report, words: str) -> list[str]:
    return [each for each in (*report.shown, *report.caveats) if each.startswith(words)]


def test_attempts_that_do_not_count_are_owned_to(tmp_path: Path) -> None:
    story = full_story()
    ends = [step.body["outcome"] for step in story.entries() if step.kind == "attempt.ended"]
    again = [step.body["replaces"] for step in story.entries() if step.kind == "attempt.admitted"]
    superseded = ends.count("lost") + ends.count("interrupted")
    replaced = len(again) - again.count(None)
    assert superseded and replaced
    (said,) = started_with(verify(story.write(tmp_path)), "why attempts do not count")
    counts = f"({superseded} lost or interrupted, {replaced} replaced after a fault of infrastructure)"
    assert counts in said and "the operator's word" in said


def test_where_all_count_nothing_is_said(tmp_path: Path) -> None:
    report = verify(anchored_story().write(tmp_path / "run"))
    assert started_with(report, "why attempts do not count") == []


def test_when_is_of_the_run_s_clock_where_an_entry_names_the_receipt(tmp_path: Path) -> None:
    story, run = anchored_story(), tmp_path / "run"
    story.write(run)
    write_anchors(story, run)
    *_, before, last = sorted(drop_beside(run).rglob("*.note"))
    receipt = run / f"checkpoints/{last.stem}.drop.json"
    content = json.loads(receipt.read_bytes())
    receipt.write_bytes(canonical({**content, "ended": "2036-01-01T00:00:00.000000Z"}))
    (said,) = started_with(verify(run, anchors=[str(drop_beside(run))]), "anchored: ")
    assert said.endswith("on 2036-01-01 00:00 UTC by a receipt that nobody signed")
    (said,) = started_with(verify(run, anchors=[str(before)]), "anchored: ")
    assert "UTC" not in said
    last.unlink()
    receipt.unlink()
    (said,) = started_with(verify(run, anchors=[str(drop_beside(run))]), "anchored: ")
    assert said.endswith("UTC by the run's clock") and "2031-01-01" in said


def test_of_files_no_more_is_claimed_than_entries_name(tmp_path: Path) -> None:
    story = full_story()
    report = verify(story.write(tmp_path))
    (said,) = started_with(report, "files: ")
    assert "but for manifests of refusals and receipts of the last checkpoint, which no entry names" in said
