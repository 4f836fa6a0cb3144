"""What a person asks for and cannot have is said: an option of another kind of file, a part of a run, a wrong key."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from anchored import anchored_story, drop_beside, write_anchors
from attestation_plants import seal, statement
from primitives import Signer
from proof_plants import WITNESS, Growth, Receipt, note
from stories import full_story

from proctor_verify import verify, verify_design
from proctor_verify.cli import main
from proctor_verify.documents import verify_file
from proctor_verify.report import render_text
from proctor_verify.standalone import FileReport
from proctor_verify.standalone import render_text as render_file

KEY = Signer()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return full_story().write(tmp_path_factory.mktemp("asked") / "run")


@pytest.fixture
def files(run: Path, tmp_path: Path) -> dict[str, Path]:
    made = {"receipt": Receipt().make(), "growth": Growth().make(), "older": Growth().older()}
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    return {name: tmp_path / name for name in made}


def asked(path: Path, option: str, files: dict[str, Path], run: Path) -> FileReport:
    if option == "--since":
        return verify_file(path, KEY.vkey, since=files["older"])
    if option == "--witness":
        return verify_file(path, KEY.vkey, witnesses=[WITNESS.vkey])
    return verify_file(path, KEY.vkey, run=str(run))


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        ("receipt", "--since"),
        ("receipt", "a second RUN"),
        ("growth", "--witness"),
        ("growth", "a second RUN"),
    ],
)
def test_an_option_that_would_not_be_looked_at_is_refused(
    kind: str, option: str, files: dict[str, Path], run: Path
) -> None:
    report = asked(files[kind], option, files, run)
    assert report.exit_status == 2 and report.unreadable is not None
    assert report.unreadable.startswith(f"{option} goes with ")


def test_of_an_attestation_too(run: Path, tmp_path: Path, files: dict[str, Path]) -> None:
    path = tmp_path / "envelope.json"
    path.write_text(json.dumps(seal(json.dumps(statement(run)).encode(), KEY)))
    for option in ("--since", "--witness"):
        report = asked(path, option, files, run)
        assert report.exit_status == 2 and str(report.unreadable).startswith(f"{option} goes with ")
    assert asked(path, "a second RUN", files, run).unreadable is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("design.json", "--design checks one alone"),
        ("journal.jsonl", "name the folder that it stands in"),
        ("summary.json", "name the folder that it stands in"),
    ],
)
def test_a_file_of_a_run_is_told_from_one_that_stands_alone(
    name: str, words: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(run / name)]) == 2
    assert words in capsys.readouterr().out


def test_a_checkpoint_is_no_proof(run: Path) -> None:
    first = sorted((run / "checkpoints").iterdir())[0]
    assert "--since or --anchor" in str(verify_file(first).unreadable)


def test_an_envelope_may_be_called_as_it_likes(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "design.json"
    path.write_text(json.dumps(seal(json.dumps(statement(run)).encode(), KEY)))
    assert verify_file(path, KEY.vkey).unreadable is None


def test_a_place_that_may_be_another_than_was_meant(tmp_path: Path) -> None:
    story, run = anchored_story(), tmp_path / "run"
    story.write(run)
    write_anchors(story, run)
    drop, empty = drop_beside(run), tmp_path / "empty"
    empty.mkdir()
    seen = {}
    for where in (drop / story.run_id, empty, tmp_path / "nowhere", tmp_path / "no where:but with a colon"):
        report = verify(run, KEY.vkey, anchors=[str(where)])
        assert report.exit_status == 1
        remote = next(result for result in report.results if result.check == "anchors.remote")
        seen[where.name] = remote.findings[0].seen if remote.findings else remote.seen
    assert seen[story.run_id].endswith("name the folder above it, in which the run's own lies")
    assert "another place was meant: the run names" in seen["empty"]
    assert seen["nowhere"].endswith("nowhere: nothing stands there")
    assert seen["no where:but with a colon"].endswith("nothing stands there")


def test_what_is_no_checkpoint_is_told_to_be_none(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "study.toml"
    other.write_text('[study]\nname = "x"\n\n[more]\n')
    report = verify(run, KEY.vkey, since=str(other))
    assert report.exit_status == 2 and "is no checkpoint (" in str(report.unreadable)
    assert "`checkpoints/`" in str(report.unreadable)


@pytest.mark.parametrize("option", ["--key", "--since", "--witness", "--anchor", "--design"])
def test_a_value_that_ends_options_names_nothing(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([f"{option}=--", *([] if option == "--design" else ["RUN"])])
    assert ended.value.code == 2 and "usage: " in capsys.readouterr().err


@pytest.mark.skipif(not os.access("/proc/kmsg", os.R_OK), reason="no such file may be read here")
def test_a_plain_file_that_has_nothing_just_now_is_no_crash(tmp_path: Path) -> None:
    # read to its end, it answers that it has nothing now
    with open("/proc/kmsg", "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        while file.read(1 << 16):
            pass
    assert verify_design("/proc/kmsg").exit_status == 2
    assert verify_file("/proc/kmsg").exit_status == 2


def test_what_is_not_there_is_said_before_how_many(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for first, words in (("typo.json", "typo.json: nothing stands there"), (str(run), "one run at a time")):
        with pytest.raises(SystemExit):
            main([first, str(run)])
        assert words in capsys.readouterr().err


def test_one_folder_too_high_names_the_runs_below(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "runs/main")
    (tmp_path / "runs/other").mkdir()
    said = str(verify(tmp_path / "runs", KEY.vkey).unreadable)
    assert said.endswith("this is no run folder; of those in it, these are: main")


def test_the_last_line_says_that_nobody_said_whose_key_it_is(run: Path, files: dict[str, Path]) -> None:
    for said in (render_text(verify(run)), render_file(verify_file(files["receipt"]))):
        assert said.splitlines()[-1].startswith("VERIFIED, but not who signed: ")
    for said in (render_text(verify(run, KEY.vkey)), render_file(verify_file(files["receipt"], KEY.vkey))):
        assert said.splitlines()[-1].startswith("VERIFIED: ")
    for said in (render_text(verify(run, WITNESS.vkey)), render_file(verify_file(files["growth"]))):
        assert said.splitlines()[-1].startswith("NOT VERIFIED: ")


def test_what_was_not_asked_for_says_so(run: Path) -> None:
    seen = {result.check: result.seen for result in verify(run).results}
    assert seen["since.extends"] == "no checkpoint was given with --since"
    assert seen["key.witnessed"] == "no key was given with --witness"


def test_a_receipt_says_what_an_anchor_leaves_open(tmp_path: Path, files: dict[str, Path]) -> None:
    """Where the checkpoint stands, other runs are not shown; where it does not, neither is the time."""
    place = tmp_path / "at.note"
    place.write_bytes(Receipt().make().partition(b"\n\n")[2])
    stands = verify_file(files["receipt"], KEY.vkey, anchors=[str(place)])
    assert stands.exit_status == 0
    assert [each.partition(":")[0] for each in stands.caveats[:2]] == [
        "since when checkpoints stand at an anchor",
        "what was left out",
    ]
    place.write_bytes(note(KEY, 3, bytes(32), "proctor/run/another"))
    not_there = verify_file(files["receipt"], KEY.vkey, anchors=[str(place)])
    assert not_there.failed() == ["receipt.anchored"] and not_there.caveats[0].startswith("when: ")
