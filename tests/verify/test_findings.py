"""What is wrong is said once, whatever comes after it, stands within it, or names it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builder import Story
from money_stories import money_story
from plants_folders import unplanned
from steps import Step
from stories import full_story
from verdicts import cut_short


def _result(story: Story, folder: Path, check: str) -> Any:
    # imported here and not before: the mutation run has many programs
    from proctor_verify import verify

    report = verify(folder, story.signer.fingerprint)
    return next(result for result in report.results if result.check == check)


def test_bytes_of_a_pack_that_are_not_as_named_are_one_finding(tmp_path: Path) -> None:
    story = full_story()
    story.write(tmp_path)
    body = story.find("agent.started").body["instruction"]
    assert [step.body["instruction"] for step in story.entries() if step.kind == "agent.started"].count(body) > 1
    pack = tmp_path / "packs" / body["pack"]
    data = bytearray(pack.read_bytes())
    data[body["offset"]] ^= 1
    pack.write_bytes(data)
    assert _result(story, tmp_path, "packs.frames").seen == "1 finding"


def test_findings_are_words_and_no_python(tmp_path: Path) -> None:
    story = full_story()
    story.find("run.ended", -1).body["totals"] |= {"pass": 7, "fail": 0}
    story.find("trial.final").body["reward"] = None
    story.write(tmp_path)
    [totals] = _result(story, tmp_path, "totals.agree").findings
    assert totals.seen == "says pass 7, fail 0, and the journal holds pass 4, fail 2"
    [final] = _result(story, tmp_path, "finals.agree").findings
    assert final.seen.startswith("says pass, and ") and final.seen.endswith(" pass, reward 1")


@pytest.mark.parametrize("all_after", [False, True])
def test_a_number_that_is_left_out_is_one_finding(all_after: bool, tmp_path: Path) -> None:
    story = full_story()
    first = story.find("block.admitted", block=3)
    for step in story.steps[story.at(first) : -1] if all_after else [first]:
        assert isinstance(step, Step)
        step.after = lambda entry: entry.update(seq=entry["seq"] + 1)
    story.write(tmp_path)
    assert _result(story, tmp_path, "journal.sequence").seen == "1 finding"


def test_a_quarantined_file_is_looked_at_once(tmp_path: Path) -> None:
    story = full_story()
    first, second = story.find("run.recovered"), story.find("run.recovered", 1)
    before = _result(story, story.write(tmp_path / "before"), "files.digests").seen
    second.body["quarantined"] = first.body["quarantined"]
    assert _result(story, story.write(tmp_path / "after"), "files.digests").seen == before


def test_a_folder_of_a_row_is_one_finding(tmp_path: Path) -> None:
    story = money_story()
    attempt = next(step for step in story.entries() if step.kind == "attempt.admitted" and step.body["task"] == "row-0")
    folder = story.write(tmp_path) / attempt.body["folder"]
    folder.mkdir(parents=True)
    (folder / "more").touch()
    found = _result(story, tmp_path, "files.unlisted").findings
    assert [finding.path for finding in found] == [attempt.body["folder"].rpartition("/")[0]]


def test_a_file_in_the_place_of_a_trial_is_called_so(tmp_path: Path) -> None:
    story = full_story()
    unplanned(story, "trials/task-00000000/0")
    story.write(tmp_path)
    (tmp_path / "trials/task-00000000").touch()
    found = _result(story, tmp_path, "files.unlisted").findings
    assert ("trials/task-00000000", "is a file that no entry names") in [(each.path, each.seen) for each in found]


def test_an_attempt_in_flight_at_the_end_is_one_finding(tmp_path: Path) -> None:
    story = cut_short()
    story.stop(130, "interrupted")
    assert _result(story, story.write(tmp_path), "flight.empty").seen == "1 finding"


def test_a_line_that_is_no_json_is_of_no_kind(tmp_path: Path) -> None:
    """Which is no doubt of what its kind may be."""
    story = full_story()
    story.find("run.paused").raw = lambda line: b"{"
    assert _result(story, story.write(tmp_path), "journal.kinds").status.name == "PASS"


def test_a_run_that_is_open_is_told_with_its_last_entry(tmp_path: Path) -> None:
    story = full_story()
    story.steps.remove(story.find("run.ended", -1))
    story.write(tmp_path)
    [finding] = _result(story, tmp_path, "run.ended").findings
    assert finding.seen.startswith("run_open: the last entry is ")
    (tmp_path / "journal.jsonl").write_bytes(b"")
    [finding] = _result(story, tmp_path, "run.ended").findings
    assert finding.seen.startswith("run_open: there is no entry: ")
