"""What a report claims, and what it owns to: no more than the signed part of the evidence says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from anchored import anchored_story, drop_beside, write_anchors
from builder import Story
from designs import make_design
from money_stories import money_story
from plants_withheld import withhold
from primitives import canonical
from stories import full_story, preregistered_story

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


def test_of_attempts_that_do_not_count_those_that_had_a_grade_are_told_with_it(tmp_path: Path) -> None:
    story = Story(make_design())
    story.admit()
    story.checkpoint()
    story.block(0)
    arm = story.arms(0)[0]
    lost = story.start(0, arm)
    story.grade(lost, "fail", 0.25, "below_threshold")
    story.resume(previous_ended=False)
    story.add("run.recovered", quarantined=[], lost=[lost])
    story.end(lost, "lost", "lost")
    story.checkpoint()
    story.block(0)
    story.run_attempt(0, arm, "pass", supersedes=lost)
    story.add("run.draining", cause="SIGINT")
    story.stop(130, "interrupted")
    story.checkpoint(named=False)
    report = verify(story.write(tmp_path))
    assert report.exit_status == 0
    (said,) = started_with(report, "why attempts do not count")
    assert "(1 lost or interrupted; 1 of them had been graded fail)" in said


def test_refusals_that_were_waived_are_named(tmp_path: Path) -> None:
    story = full_story()
    assert started_with(verify(story.write(tmp_path / "none")), "what was let pass") == []
    refusal = {"reason": "git_dirty", "guard": "git.clean", "message": "dirty", "waivable": True}
    bound = [each for each in story.manifests.values() if each["verdict"] == "admitted"]
    for manifest in bound[:2]:
        manifest["refusals"] = [refusal]
        manifest["waivers"] = {"requested": ["git_dirty", "disk_low"], "used": ["git_dirty"]}
    bound[2]["waivers"] = {"requested": ["disk_low"], "used": ["disk_low"]}
    report = verify(story.write(tmp_path / "run"))
    assert report.exit_status == 0
    (said,) = started_with(report, "what was let pass")
    assert "waived that: disk_low, git_dirty (2);" in said


@pytest.mark.parametrize("assurance", ["shared", "live"])
def test_grades_that_were_given_in_the_agent_s_world_are_counted(assurance: str, tmp_path: Path) -> None:
    story = full_story()
    story.design["grading"]["assurance"] = assurance
    assert started_with(verify(story.write(tmp_path / "own")), "what a verifier of its own") == []
    for ended in [step for step in story.entries() if step.kind == "verifier.ended"][:2]:
        attempt = ended.body["attempt"]
        story.drop(story.find("sandbox.started", attempt=attempt, role="verifier"))
        ended.body["assurance"] = story.find("attempt.graded", attempt=attempt).body["assurance"] = assurance
    report = verify(story.write(tmp_path / "run"))
    assert report.exit_status == 0
    (said,) = started_with(report, "what a verifier of its own would have said: 2 grades were given in")
    assert f"({assurance})" in said


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


def test_what_is_not_scored_or_read_again_stands_below_what_cannot_be_shown(tmp_path: Path) -> None:
    files = verify(full_story().write(tmp_path / "files"))
    assert started_with(files, "what answers are worth") == started_with(files, "what test reports say") == []
    assert started_with(files, "grades: ")[0].endswith("as far as no test report decides")
    rows = verify(money_story().write(tmp_path / "rows"))
    [said] = started_with(rows, "what answers are worth")
    assert "question row" in said and said in rows.caveats
    story = full_story()
    story.design["grading"]["solved"] = "tests"
    assert started_with(verify(story.write(tmp_path / "reports")), "what test reports say")


def test_what_nobody_looks_at_is_not_claimed_to_be_absent(tmp_path: Path) -> None:
    run = full_story().write(tmp_path / "run")
    (run / ".leak").write_text("y")
    report = verify(run)
    assert report.exit_status == 0
    assert "names that begin with a dot" in started_with(report, "files: ")[0]


def test_of_files_no_more_is_claimed_than_entries_name(tmp_path: Path) -> None:
    story = full_story()
    report = verify(story.write(tmp_path))
    (said,) = started_with(report, "files: ")
    assert "nothing else stands there but refusals' manifests, receipts of the last checkpoint" in said


@pytest.mark.parametrize("make", [preregistered_story, money_story, anchored_story])
def test_no_sentence_is_cut(make: Callable[[], Story], tmp_path: Path) -> None:
    story = make()
    run, copy = story.write(tmp_path / "run"), story.write(tmp_path / "copy")
    withhold(copy)
    for report in (verify(run, story.signer.vkey), verify(copy, story.signer.vkey)):
        assert started_with(report, "files: ")
        assert not [said for said in (*report.shown, *report.caveats) if said.endswith("…")]
