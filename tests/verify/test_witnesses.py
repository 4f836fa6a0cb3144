"""Up to where a second person signed, and when: the largest checkpoint of this journal, wherever it stands."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from anchored import AnchoredStory, anchored_story
from plants_anchors import WITNESS
from primitives import Signer

from proctor_verify import Report, Status, verify

CALLED = WITNESS.vkey.rpartition("+")[0]
OTHER = Signer(8, "another.example")


@pytest.fixture
def story(tmp_path: Path) -> AnchoredStory:
    """A run that nobody else signed."""
    story = anchored_story()
    story.write(tmp_path / "run")
    return story


def signed(note: bytes, time: int | None = None, signer: Signer = WITNESS) -> bytes:
    """The note with a signature more, timed where a time is given."""
    if time is not None:
        return signer.cosigned(note, time)
    text = note.partition(b"\n\n")[0].decode() + "\n"
    return note + signer.note(text).rpartition(b"\n\n")[2]


def asked(tmp_path: Path, anchor: bytes | None, since: bytes | None, *witnesses: Signer) -> Report:
    """What is said of the run where these notes were given with `--anchor` and with `--since`."""
    notes = {"anchor": anchor, "since": since}
    for name, note in notes.items():
        if note is not None:
            (tmp_path / f"{name}.note").write_bytes(note)
    return verify(
        tmp_path / "run",
        anchored_story().signer.fingerprint,
        anchors=[] if anchor is None else [str(tmp_path / "anchor.note")],
        since=None if since is None else str(tmp_path / "since.note"),
        witnesses=[witness.vkey for witness in witnesses or (WITNESS,)],
    )


def said(report: Report) -> str:
    found = next(result for result in report.results if result.check == "key.witnessed")
    assert found.status is Status.PASS and report.exit_status == 0
    return found.seen


def test_the_largest_that_was_signed_counts(story: AnchoredStory, tmp_path: Path) -> None:
    small, large = signed(story.pushes[0].note), signed(story.pushes[2].note)
    up_to_large = f"{CALLED} signed the first {story.pushes[2].size:,} entries"
    assert (
        said(asked(tmp_path, small, None)) == said(asked(tmp_path, None, small)) == f"{CALLED} signed the first entry"
    )
    assert said(asked(tmp_path, small, large)) == said(asked(tmp_path, large, small)) == up_to_large
    # whatever a smaller one says of its time
    assert said(asked(tmp_path, signed(story.pushes[0].note, 7), large)) == up_to_large
    assert said(asked(tmp_path, large, signed(story.pushes[0].note, 7))) == up_to_large


def test_of_one_size_the_latest_time_counts(story: AnchoredStory, tmp_path: Path) -> None:
    note = story.pushes[2].note
    plain, early, late = signed(note), signed(note, 5), signed(note, 9)
    for anchor, since in ((early, late), (late, early), (plain, late), (late, plain)):
        assert said(asked(tmp_path, anchor, since)).endswith("entries on 1970-01-01 00:00:09 UTC")
    assert said(asked(tmp_path, plain, plain)).endswith("entries")


def test_each_witness_is_told_apart(story: AnchoredStory, tmp_path: Path) -> None:
    note = signed(story.pushes[0].note, signer=OTHER)
    called = OTHER.vkey.rpartition("+")[0]
    words = said(asked(tmp_path, note, signed(story.pushes[2].note), WITNESS, OTHER))
    assert words == f"{CALLED} signed the first {story.pushes[2].size:,} entries; {called} signed the first entry"
    report = asked(tmp_path, note, None, OTHER, WITNESS)
    found = next(result for result in report.results if result.check == "key.witnessed")
    assert report.failed() == ["key.witnessed"] and [each.path for each in found.findings] == [CALLED]


def test_what_is_not_of_this_journal_does_not_count(story: AnchoredStory, tmp_path: Path) -> None:
    text = f"proctor/run/{story.run_id}\n999\n{base64.b64encode(bytes(32)).decode()}\n"
    other = signed(story.signer.note(text), 7)
    assert asked(tmp_path, other, None).failed() == ["key.witnessed", "anchors.remote"]
    report = asked(tmp_path, other, signed(story.pushes[0].note))
    assert report.failed() == ["anchors.remote"]
    found = next(result for result in report.results if result.check == "key.witnessed")
    assert found.seen == f"{CALLED} signed the first entry"


def test_without_a_witness_nothing_is_said(story: AnchoredStory, tmp_path: Path) -> None:
    report = verify(tmp_path / "run", story.signer.fingerprint)
    found = next(result for result in report.results if result.check == "key.witnessed")
    assert found.status is Status.NOT_APPLICABLE


def test_the_runs_own_key_is_no_witness(story: AnchoredStory, tmp_path: Path) -> None:
    report = asked(tmp_path, None, story.pushes[0].note, story.signer)
    found = next(result for result in report.results if result.check == "key.witnessed")
    assert report.failed() == ["key.witnessed"] and "the run's own key" in found.findings[0].seen


@pytest.mark.parametrize(("time", "odd"), [(9, True), (1_924_991_940, True), (1_924_991_941, False), (2**63, False)])
def test_a_time_before_what_was_signed_is_said(story: AnchoredStory, tmp_path: Path, time: int, odd: bool) -> None:
    report = asked(tmp_path, signed(story.pushes[2].note, time), None)
    words = "signatures of witnesses are dated before an entry that they cover"
    assert any(words in caveat for caveat in report.caveats) == odd
