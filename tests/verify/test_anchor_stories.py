"""An operator with the key, and what catches him: anchors, the fingerprint, checkpoints that people kept, witnesses."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from anchored import (
    AnchoredStory,
    anchored_story,
    at_anchors,
    drop_beside,
    repository_beside,
    write_anchors,
)
from plants import STRANGER
from plants_anchors import WITNESS, cosigned_beside, from_kept, kept
from primitives import Signer
from steps import Step

from proctor_verify import Report, Status, repository, verify
from proctor_verify.cli import main
from proctor_verify.report import render_text


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run, and what it pushed beside it."""
    story = anchored_story()
    write_anchors(story, story.write(tmp_path / "run"))
    return tmp_path / "run"


def made_anew(folder: Path, alter: Callable[[AnchoredStory], None], signer: Signer | None = None) -> str:
    """The run folder once more, altered and sealed as if it always had been so; the anchors stay. Whose key it has."""
    shutil.rmtree(folder)
    story = anchored_story()
    if signer is not None:
        story = signed_by(signer)
    alter(story)
    story.write(folder)
    return story.signer.fingerprint


def signed_by(signer: Signer) -> AnchoredStory:
    story = anchored_story()
    story.signer = signer
    for kind in ("run.admitted", "run.resumed"):
        story.find(kind).body["key"] = {"vkey": signer.vkey, "fingerprint": signer.fingerprint}
    return story


def result(report: Report, check: str) -> tuple[Status, str]:
    found = next(each for each in report.results if each.check == check)
    return found.status, " ".join([found.seen, *(finding.seen for finding in found.findings)])


def all_pass(s: AnchoredStory) -> None:
    """A trial that took another time, as the journal has it now."""
    s.find("attempt.ended").body["timing"] = {"agent": 6}


def test_history_that_is_made_anew_is_caught_by_the_anchor_alone(run: Path) -> None:
    key = made_anew(run, all_pass)
    alone = verify(run, key)
    assert alone.exit_status == 0
    assert any("nobody looked (--anchor)" in caveat and "could not be known here" in caveat for caveat in alone.caveats)
    assert not any(each.startswith("anchored") for each in alone.shown)
    for where in at_anchors(run)["anchors"]:
        report = verify(run, key, anchors=[where])
        assert report.failed() == ["anchors.remote"] and report.exit_status == 1
        assert "has root" in result(report, "anchors.remote")[1]


def test_a_place_with_nothing_of_the_run_is_not_where_the_run_says_it_is(run: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    report = verify(run, anchored_story().signer.fingerprint, anchors=[str(tmp_path / "empty")])
    assert report.failed() == ["anchors.remote"]
    assert any(
        "no anchor shows" in each and "../heads" in each.partition("the run names ")[2] for each in report.caveats
    )


def test_a_run_that_never_was_anchored_says_that_nobody_could_know(tmp_path: Path) -> None:
    story = anchored_story(required=False)
    del story.design["anchor"]
    story.steps = [
        s for s in story.steps if not (isinstance(s, Step) and s.kind.startswith(("checkpoint.", "anchor.")))
    ]
    story.afterwards.clear()
    report = verify(story.write(tmp_path), story.signer.fingerprint)
    assert report.exit_status == 0
    assert any("no anchor shows" in caveat and "could not be known here" in caveat for caveat in report.caveats)


def test_another_key_is_caught_by_the_fingerprint(run: Path) -> None:
    mine = anchored_story().signer.fingerprint
    made_anew(run, lambda s: None, STRANGER)
    assert verify(run).exit_status == 0
    assert verify(run, mine).failed() == ["key.trust"]
    assert verify(run, anchors=at_anchors(run)["anchors"]).failed() == ["anchors.remote"]


def test_a_journal_that_is_cut_back_to_an_earlier_end_is_caught_by_the_anchor_alone(tmp_path: Path) -> None:
    """As if what came after a clean end of an opening had never been."""

    def twice() -> AnchoredStory:
        s = anchored_story(required=False)
        again = s.find("run.resumed")
        again.body["previous_ended"] = True
        s.drop(s.find("run.recovered"))
        later, s.steps = s.steps[s.at(again) :], s.steps[: s.at(again)]
        finals, so_far = s.finals, {step.body["trial"] for step in s.entries() if step.kind == "trial.final"}
        s.finals = {trial: final for trial, final in finals.items() if trial in so_far}
        s.add("run.draining", cause="deadline")
        # it names no derived files: those that stand are of the end after it
        s.stop(4, "stage_deadline").body["files"] = []
        s.checkpoint(named=False)
        s.finals = finals
        s.steps += [later[0], Step("checkpoint.made", {}), *later[1:]]
        return s

    folder, story = tmp_path / "run", twice()
    write_anchors(story, story.write(folder))
    key = story.signer.fingerprint
    assert verify(folder, key, **at_anchors(folder)).exit_status == 0

    cut_back(folder)
    alone = verify(folder, key)
    assert alone.exit_status == 0 and any("could not be known here" in caveat for caveat in alone.caveats)
    for where in at_anchors(folder)["anchors"]:
        report = verify(folder, key, anchors=[where])
        assert report.failed() == ["anchors.remote"]
        assert "stand in the journal" in result(report, "anchors.remote")[1]


def cut_back(folder: Path) -> None:
    """Keep what stood when the first opening ended, and nothing else."""
    lines = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["kind"] for line in lines]
    size = kinds.index("run.ended") + 1
    (folder / "journal.jsonl").write_bytes(b"".join(lines[:size]))
    kept_folders = {json.loads(line)["body"].get("folder") for line in lines[:size]}
    for path in folder.glob("trials/*/*"):
        if str(path.relative_to(folder)) not in kept_folders:
            shutil.rmtree(path)
    for path in folder.glob("trials/*"):
        if not any(path.iterdir()):
            path.rmdir()
    for path in folder.glob("checkpoints/*"):
        if int(path.name[:12]) > size:
            path.unlink()
    for name in ("manifests/0002.json", "summary.json", "grade_summary.json"):
        (folder / name).unlink()


def test_what_was_kept_is_extended_and_said_so(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = anchored_story()
    first = sorted((run / "checkpoints").glob("*.note"))[1]
    kept(run).write_bytes(first.read_bytes())
    report = verify(run, story.signer.fingerprint, since=str(kept(run)))
    size = int(first.name[:12])
    assert report.exit_status == 0
    status, seen = result(report, "since.extends")
    assert status is Status.PASS and f"{report.entries - size:,} since then" in seen
    assert any(f"the first {size:,} entries was changed since you kept" in each for each in report.shown)
    said = [each.partition(":")[0] for each in report.caveats[:3]]
    assert said == [
        f"when, of the last {report.entries - size:,} of all entries",
        "what came before",
        "what was left out",
    ]
    made_anew(run, all_pass)
    assert verify(run, since=str(kept(run))).failed() == ["since.extends"]
    kept(run).write_bytes(b"{}")
    assert main([str(run), "--since", str(kept(run))]) == 2
    assert capsys.readouterr().out.startswith("could not read: --since: ")


def test_a_witness_says_up_to_where_and_since_when(run: Path) -> None:
    story = anchored_story()
    story.write(run.with_name("again"))
    cosigned_beside(story, run)
    report = verify(run, story.signer.fingerprint, **from_kept(run), witnesses=[WITNESS.vkey])
    assert report.exit_status == 0
    assert result(report, "key.witnessed")[1] == f"{WITNESS.vkey.rpartition('+')[0]} signed the first entry"
    timed = WITNESS.cosigned(story.pushes[0].note, 1_924_992_100)
    kept(run).write_bytes(timed)
    for vkey in (WITNESS.vkey, WITNESS.cosigner_vkey):
        report = verify(run, story.signer.fingerprint, anchors=[str(kept(run))], witnesses=[vkey])
        assert report.exit_status == 0
        assert result(report, "key.witnessed")[1].endswith("on 2031-01-01 00:01:40 UTC")
        assert any(
            each.startswith(f"witnessed by another key than the operator's: {vkey.rpartition('+')[0]} signed")
            for each in report.shown
        )
    plain = Signer(7, "another.example")
    assert verify(run, anchors=[str(kept(run))], witnesses=[plain.vkey]).failed() == ["key.witnessed"]


def test_a_plain_signature_is_none_of_a_key_that_only_cosigns(run: Path) -> None:
    story = anchored_story()
    story.write(run.with_name("again"))
    cosigned_beside(story, run)
    assert verify(run, **from_kept(run), witnesses=[WITNESS.cosigner_vkey]).failed() == ["key.witnessed"]


def test_a_cosignature_with_another_time_is_none(run: Path) -> None:
    story = anchored_story()
    story.write(run.with_name("again"))
    note = WITNESS.cosigned(story.pushes[0].note, 5)
    head, _, line = note.rpartition(b" ")
    raw = bytearray(base64.b64decode(line))
    raw[11] ^= 1
    kept(run).write_bytes(head + b" " + base64.b64encode(raw) + b"\n")
    assert verify(run, anchors=[str(kept(run))], witnesses=[WITNESS.vkey]).failed() == ["key.witnessed"]


def test_an_anchor_that_need_not_have_the_end_is_said_not_to_have_it(tmp_path: Path) -> None:
    story = anchored_story(required=False)
    story.made_at("drop")[-1].written = False
    report = verify(story.write(tmp_path), story.signer.fingerprint)
    assert report.exit_status == 0
    said = [caveat for caveat in report.caveats if caveat.startswith("when, of the end")]
    assert len(said) == 1 and "../heads took the last checkpoint" in said[0]


def test_what_is_shown_says_where_and_when_and_what_came_later(run: Path) -> None:
    story = anchored_story()
    (repository_beside(run) / f"refs/proctor/{story.run_id}").unlink()
    shutil.rmtree(drop_beside(run))
    first = sorted((run / "checkpoints").glob("*.note"))[0]
    kept(run).write_bytes(first.read_bytes())
    report = verify(run, story.signer.fingerprint, anchors=[str(kept(run))])
    assert report.exit_status == 0
    size = int(first.name[:12])
    # the rest of the line depends on how long the place's name is
    stands = "was changed since their checkpoint was made that stands in "
    assert any(each.startswith("anchored: nothing in the first entry ") and stands in each for each in report.shown)
    assert any(each.startswith(f"when, of the last {report.entries - size} of all entries") for each in report.caveats)
    assert any(
        each.startswith("what came before: the first checkpoint that was read covers the first entry;")
        for each in report.caveats
    )
    assert any("could have put all of them there at once" in each for each in report.caveats)
    assert any("were pushed by then is the operator's word" in each for each in report.shown)


def test_of_a_drop_the_receipt_says_when(run: Path) -> None:
    story = anchored_story()
    report = verify(run, story.signer.fingerprint, anchors=[str(drop_beside(run))])
    assert any(
        each.startswith("anchored: ") and "on 2031-01-01 00:07 UTC by a receipt that nobody signed" in each
        for each in report.shown
    )
    assert max(map(len, render_text(report).splitlines())) <= max(100, len(str(drop_beside(run))) + 5)


@pytest.mark.parametrize("how", ["address", "work tree", "bundle", "sha256"])
def test_a_repository_is_read_however_it_is_named(run: Path, how: str, tmp_path: Path) -> None:
    story, there = anchored_story(), repository_beside(run)
    ref = f"refs/proctor/{story.run_id}"
    where = str(there)
    if how == "address":
        where = there.as_uri()
    elif how == "work tree":
        where = str(tmp_path / "tree")
        git("init", "--quiet", where)
        git("-C", where, "fetch", "--quiet", str(there), f"{ref}:{ref}")
    elif how == "bundle":
        where = str(tmp_path / "anchors.bundle")
        git("-C", str(there), "bundle", "create", "--quiet", where, ref)
    else:
        where = str(tmp_path / "sha256.git")
        git("init", "--quiet", "--bare", "--object-format=sha256", where)
        note = sorted((run / "checkpoints").glob("*.note"))[0].read_bytes()
        feed = b"commit %b\ncommitter a <b> 1 +0000\ndata 1\nx\nM 100644 inline checkpoint\ndata %d\n%b\n"
        git("-C", where, "fast-import", "--quiet", feed=feed % (ref.encode(), len(note), note))
    report = verify(run, story.signer.fingerprint, anchors=[where])
    assert result(report, "anchors.remote")[0] is Status.PASS and report.exit_status == 0


def git(*arguments: str, feed: bytes = b"") -> None:
    subprocess.run(["git", *arguments], input=feed, check=True, capture_output=True, timeout=60)


def test_nothing_of_the_persons_own_configuration_is_used(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = run.with_name("home")
    home.mkdir()
    other = (home / "other").as_uri()
    (home / ".gitconfig").write_text(f'[url "{other}"]\n\tinsteadOf = {repository_beside(run).as_uri()}\n')
    monkeypatch.setenv("HOME", str(home))
    for name, value in {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "fetch.fsckObjects",
        "GIT_CONFIG_VALUE_0": "?",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GIT_DIR", str(home))
    report = verify(run, anchors=[repository_beside(run).as_uri()])
    assert result(report, "anchors.remote")[0] is Status.PASS


def test_several_anchors_are_all_looked_at(run: Path) -> None:
    story = anchored_story()
    shutil.rmtree(drop_beside(run) / story.run_id)
    report = verify(run, story.signer.fingerprint, **at_anchors(run))
    assert report.failed() == ["anchors.remote"]
    assert result(report, "anchors.remote")[1].find("no checkpoint of this run stands there; either") > 0


def test_other_runs_beside_it_are_counted(run: Path) -> None:
    story = anchored_story()
    (drop_beside(run) / "another").mkdir()
    refs = repository_beside(run) / "refs/proctor"
    for name in ("another", "third"):
        (refs / name).write_bytes((refs / story.run_id).read_bytes())
    report = verify(run, story.signer.fingerprint, **at_anchors(run))
    assert report.exit_status == 0
    left_out = [caveat for caveat in report.caveats if caveat.startswith("what was left out there: ")]
    assert ["2 other runs" in each for each in left_out] == [True, False] and "1 other run with" in left_out[1]


NOWHERE = {
    "nothing there": "/nonexistent/anchors.git",
    "no server": "git://127.0.0.1:1/anchors.git",
    "a transport that runs programs": "ext::sh -c touch% /tmp/never",
    "a transport without a signature": "http://127.0.0.1:1/anchors.git",
    "an option": "--upload-pack=touch /tmp/never",
    "a device": "/dev/zero",
    "a NUL": "a\0b",
    "a long name": "x" * 5000,
}


@pytest.mark.parametrize("where", NOWHERE.values(), ids=NOWHERE)
def test_what_cannot_be_reached_cannot_be_told(run: Path, where: str) -> None:
    report = verify(run, anchored_story().signer.fingerprint, anchors=[where])
    assert result(report, "anchors.remote")[0] is Status.CANNOT_TELL
    assert report.failed() == [] and report.exit_status == 1


def test_a_server_that_never_answers_is_not_waited_for(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"git://127.0.0.1:{silent.getsockname()[1]}/anchors.git"
        status, seen = result(verify(run, anchors=[where]), "anchors.remote")
    assert status is Status.CANNOT_TELL and "did not end within 0.3 seconds" in seen


def test_the_last_checkpoint_may_stand_in_another_folder_too(run: Path) -> None:
    """Put there afterwards, it is alone; where anything else that receipts name is there, all of it must be."""
    here = drop_beside(run)
    other = here.with_name("another")
    notes = sorted((here / anchored_story().run_id).iterdir())
    below = other / anchored_story().run_id
    below.mkdir(parents=True)
    shutil.copy(notes[-1], below)
    assert verify(run, anchors=[str(here), str(other)]).exit_status == 0
    shutil.copy(notes[0], below)
    assert verify(run, anchors=[str(other)]).failed() == ["anchors.remote"]


@pytest.mark.parametrize("where", ["checkpoints/{}", "anchors/../checkpoints/{}", ".kept.git", "."])
def test_what_lies_in_the_run_itself_is_neither_an_anchor_nor_kept(
    run: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that start with a dot are nobody's concern in a run: a whole repository may lie there."""
    shutil.move(repository_beside(run), run / ".kept.git")
    last = max(path.name for path in (run / "checkpoints").glob("*.note"))
    place = where.format(last)
    monkeypatch.chdir(run)
    for name in (place, str(run / place), f"file://{run}/{place}"):
        report = verify(".", anchors=[name])
        assert report.exit_status == 2 and "lies in the run itself" in str(report.unreadable)
    report = verify(run, since=str(run / "checkpoints" / last))
    assert report.exit_status == 2 and "lies in the run itself" in str(report.unreadable)


def test_a_place_without_a_name_is_refused(run: Path) -> None:
    report = verify(run, anchors=[""])
    assert report.exit_status == 2 and "--anchor" in str(report.unreadable)


def test_without_a_first_entry_nothing_elsewhere_can_be_told(run: Path) -> None:
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (run / "journal.jsonl").write_bytes(b"{}\n" + b"".join(lines[1:]))
    shutil.copy(sorted((run / "checkpoints").glob("*.note"))[0], kept(run))
    report = verify(run, **at_anchors(run), since=str(kept(run)))
    assert result(report, "anchors.remote")[0] is Status.CANNOT_TELL
    assert result(report, "since.extends")[0] is Status.CANNOT_TELL


def test_pipes_and_folders_where_notes_should_be(run: Path) -> None:
    story = anchored_story()
    below = drop_beside(run) / story.run_id
    os.mkfifo(below / f"{8:012d}.note")
    (below / f"{9:012d}.note").mkdir()
    report = verify(run, story.signer.fingerprint, anchors=[str(drop_beside(run))])
    seen = result(report, "anchors.remote")[1]
    assert report.failed() == ["anchors.remote"] and "is a FIFO" in seen and "is a folder" in seen
    os.mkfifo(run.with_name("pipe"))
    report = verify(run, story.signer.fingerprint, anchors=[str(run.with_name("pipe"))])
    assert result(report, "anchors.remote")[0] is Status.CANNOT_TELL


def test_drafts_in_a_folder_are_passed_over(run: Path) -> None:
    (drop_beside(run) / anchored_story().run_id / ".000000000009.note.draft").write_text("half")
    report = verify(run, anchored_story().signer.fingerprint, anchors=[str(drop_beside(run))])
    assert report.exit_status == 0
