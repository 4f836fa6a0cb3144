"""Which receipts are looked for at a place: those of its kind, where the place is the receipts' own."""

from __future__ import annotations

from pathlib import Path

from anchored import AnchoredStory, anchored_story, at_anchors, drop_beside, repository_beside, write_anchors

from proctor_verify import Report, Status, verify


def looked_at(story: AnchoredStory, folder: Path, *where: Path) -> Report:
    """What is said of a run that was written, with these places, or both of its own."""
    anchors = [str(each) for each in where] or at_anchors(folder)["anchors"]
    return verify(folder, story.signer.fingerprint, anchors=anchors)


def seen(report: Report) -> str:
    found = next(result for result in report.results if result.check == "anchors.remote")
    assert found.status is Status.PASS and report.failed() == []
    return found.seen


def test_all_that_stands_is_counted(tmp_path: Path) -> None:
    story, folder = anchored_story(), tmp_path / "run"
    write_anchors(story, story.write(folder))
    assert seen(looked_at(story, folder)) == f"checkpoints at anchors: {len(story.pushes)}"


def test_what_one_anchor_alone_took_is_not_looked_for_at_the_other(tmp_path: Path) -> None:
    story, folder = anchored_story(required=False), tmp_path / "run"
    push = story.made_at("drop")[1]
    push.written = False
    story.drop(story.find("checkpoint.anchored", 1, anchor="drop"))
    write_anchors(story, story.write(folder))
    (drop_beside(folder) / story.run_id / Path(push.path).name.replace("drop.json", "note")).unlink()
    assert seen(looked_at(story, folder)) == f"checkpoints at anchors: {len(story.pushes) - 1}"


def test_a_repository_with_the_last_commit_alone_lacks_the_others(tmp_path: Path) -> None:
    story, folder = anchored_story(), tmp_path / "run"
    story.made_at("git")[-1].before = None
    write_anchors(story, story.write(folder))
    report = looked_at(story, folder, repository_beside(folder))
    found = next(result for result in report.results if result.check == "anchors.remote")
    assert report.failed() == ["anchors.remote"] and found.count == len(story.made_at("git")) - 1


def test_a_folder_with_the_last_note_alone_may_be_anybodys(tmp_path: Path) -> None:
    story, folder = anchored_story(), tmp_path / "run"
    write_anchors(story, story.write(folder))
    for note in sorted((drop_beside(folder) / story.run_id).iterdir())[:-1]:
        note.unlink()
    assert seen(looked_at(story, folder, drop_beside(folder))) == "checkpoints at anchors: 1"


def test_a_folder_with_the_last_note_alone_that_is_called_so_is_theirs(tmp_path: Path) -> None:
    story, folder = anchored_story(), tmp_path / "run"
    own = str(drop_beside(folder))
    story.design["anchor"]["drop"] = own
    for push in story.made_at("drop"):
        push.receipt = lambda body: body.update(location=own)
    write_anchors(story, story.write(folder))
    assert seen(looked_at(story, folder)) == f"checkpoints at anchors: {len(story.pushes)}"
    for note in sorted((drop_beside(folder) / story.run_id).iterdir())[:-1]:
        note.unlink()
    assert looked_at(story, folder, drop_beside(folder)).failed() == ["anchors.remote"]


def test_receipts_of_a_journal_that_cannot_be_read_are_not_looked_for(tmp_path: Path) -> None:
    for name, unreadable in (("read", False), ("unread", True)):
        story, folder = anchored_story(), tmp_path / name
        if unreadable:
            story.find("block.ended", 1).raw = lambda line: line[:-1]
        write_anchors(story, story.write(folder))
        sorted((drop_beside(folder) / story.run_id).iterdir())[1].unlink()
        failed = looked_at(story, folder, drop_beside(folder)).failed()
        assert ("journal.lines" in failed, "anchors.remote" in failed) == (unreadable, not unreadable)
