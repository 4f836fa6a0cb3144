"""What a person asks for and cannot have is said: an option of another kind of file, a part of a run, a wrong key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attestation_plants import seal, statement
from primitives import Signer
from proof_plants import WITNESS, Growth, Receipt, note
from stories import full_story

from proctor_verify import notes, verify
from proctor_verify.cli import main
from proctor_verify.documents import verify_file
from proctor_verify.errors import Unreadable
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


def test_what_is_no_key_is_told_by_what_it_is(tmp_path: Path) -> None:
    listing = tmp_path / "listing"
    listing.write_text(f"fingerprint  {KEY.fingerprint}\npublic key   {KEY.vkey}\n")
    for argument, words in (
        (str(listing), "holds something else than one vkey"),
        (KEY.fingerprint.removeprefix("sha256:"), "a fingerprint (sha256:…)"),
        ("nothing there", "No such file"),
    ):
        with pytest.raises(Unreadable, match=words.replace("(", r"\(").replace(")", r"\)")):
            notes.trust_root(argument)
    with pytest.raises(Unreadable, match="a fingerprint is not enough for a witness"):
        notes.witness_key(KEY.fingerprint)
    with pytest.raises(Unreadable, match="neither a vkey, nor a file"):
        notes.witness_key("nothing there")


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
