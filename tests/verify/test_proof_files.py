"""Receipts and proofs: each fault is found by its own check and no other; nothing that is hostile gets further."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from primitives import Signer
from proof_plants import (
    PLANTS,
    RUN_ID,
    SOUND,
    STRANGER,
    WITNESS,
    Growth,
    Plant,
    Receipt,
    note,
    with_a_witness,
    wrongly_witnessed,
)

from proctor_verify import notes
from proctor_verify.cli import main
from proctor_verify.documents import CHECKS, verify_file
from proctor_verify.elsewhere import Asked
from proctor_verify.growth import CONSISTENCY_CHECKS, verify_growth
from proctor_verify.report import Status, render_json
from proctor_verify.standalone import FileReport, render_text
from proctor_verify.trial_receipts import NOTHING, RECEIPT_CHECKS, verify_receipt

VKEY = Signer().vkey
VECTORS = Path(__file__).parent.parent / "vectors" / "proofs.json"


def checked(
    made: Receipt | Growth, key: str | None = VKEY, without: str | None = None, asked: Asked = NOTHING
) -> FileReport:
    trust = notes.trust_root(key) if key is not None else None
    if isinstance(made, Receipt):
        return verify_receipt(made.make(), trust, asked, checks=[c for c in RECEIPT_CHECKS if c.id != without])
    kept = [c for c in CONSISTENCY_CHECKS if c.id != without]
    return verify_growth(made.make(), made.older(), trust, asked, checks=kept)


@pytest.mark.parametrize("plant", PLANTS, ids=[plant.id for plant in PLANTS])
def test_one_fault_one_finding(plant: Plant) -> None:
    report = checked(plant.made)
    assert report.failed() == [plant.check]
    assert report.exit_status == 1
    found = next(result for result in report.results if result.check == plant.check)
    assert found.count == 1 and found.findings[0].path and found.findings[0].seen
    assert checked(plant.made, without=plant.check).failed() == []
    assert "NOT VERIFIED" in render_text(report) and not report.to_json()["shown"]


def test_every_check_has_a_fault_of_its_own() -> None:
    elsewhere = {"receipt.anchored", "receipt.witnessed", "proof.anchored"}
    planted = {plant.check for plant in PLANTS} | elsewhere
    assert planted == {check.id for check in (*RECEIPT_CHECKS, *CONSISTENCY_CHECKS)}
    assert len({check.id for check in CHECKS}) == len(CHECKS)


@pytest.mark.parametrize("made", SOUND.values(), ids=SOUND)
def test_what_is_sound_holds(made: Receipt | Growth) -> None:
    report = checked(made)
    assert report.exit_status == 0, render_text(report)
    assert {result.status for result in report.results} <= {Status.PASS, Status.NOT_APPLICABLE}
    assert render_text(report).splitlines()[-1].startswith("VERIFIED")


ROOT = b"r" * 32
# what stands at a place, by its size; the receipt's checkpoint is where a size has None
ELSEWHERE: dict[str, tuple[dict[int, bytes | None], Status]] = {
    "the very checkpoint": ({11: None}, Status.PASS),
    "it and a later one": ({11: None, 15: note(Signer(), 15, ROOT)}, Status.PASS),
    "another root at that size": ({11: note(Signer(), 11, ROOT)}, Status.FAIL),
    "a checkpoint of another key": ({11: None, 12: note(STRANGER, 12, ROOT)}, Status.FAIL),
    "a checkpoint of another run": ({11: None, 12: note(Signer(), 12, ROOT, "proctor/run/other")}, Status.FAIL),
    "what is none": ({11: None, 12: b"hello"}, Status.FAIL),
    "nothing of the run": ({}, Status.FAIL),
    "only a later one": ({15: note(Signer(), 15, ROOT)}, Status.CANNOT_TELL),
}


MADE = {"receipt.anchored": Receipt(), "proof.anchored": Growth()}


def placed(folder: Path, made: Receipt | Growth, stands: dict[int, bytes | None]) -> Asked:
    """A folder with these checkpoints of the run, where None is the file's own."""
    own = made.make().partition(b"\n\n")[2]
    (folder / RUN_ID).mkdir()
    for size, content in stands.items():
        (folder / RUN_ID / f"{size:012d}.note").write_bytes(own if content is None else content)
    return Asked((str(folder),))


def status_of(report: FileReport, check: str) -> Status:
    return next(result.status for result in report.results if result.check == check)


@pytest.mark.parametrize("check", MADE)
@pytest.mark.parametrize(("stands", "status"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_file_is_held_against_an_anchor(
    check: str, stands: dict[int, bytes | None], status: Status, tmp_path: Path
) -> None:
    made = MADE[check]
    asked = placed(tmp_path, made, stands)
    report = checked(made, asked=asked)
    assert (status_of(report, check), report.exit_status) == (status, 0 if status is Status.PASS else 1)
    assert report.failed() == ([check] if status is Status.FAIL else [])
    assert checked(made, without=check, asked=asked).exit_status == 0
    says_when = any(caveat.startswith("since when checkpoints stand") for caveat in report.caveats)
    assert says_when == (status is Status.PASS)


def test_an_anchor_that_contradicts_the_older_checkpoint_of_a_proof(tmp_path: Path) -> None:
    asked = placed(tmp_path, Growth(), {6: note(Signer(), 6, ROOT), 11: None})
    report = checked(Growth(), asked=asked)
    assert report.failed() == ["proof.anchored"]
    assert "another root at 6 entries" in report.results[-1].findings[0].seen
    # what leads nowhere says nothing of a place: the one fault is found once
    for made in (Growth(said=5), Growth(old_origin="proctor/run/other")):
        assert checked(made, asked=asked).failed() == ["proof.consistent"]


def test_whose_checkpoints_stand_there_a_proof_does_not_say(tmp_path: Path) -> None:
    asked = placed(tmp_path, Growth(), {11: None})
    for key in (None, Signer().fingerprint):
        report = checked(Growth(), key, asked=asked)
        assert (status_of(report, "proof.anchored"), report.exit_status) == (Status.CANNOT_TELL, 1)


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_a_file_is_held_against_one_note_and_against_nothing(made: Receipt | Growth, tmp_path: Path) -> None:
    (tmp_path / "note").write_bytes(made.make().partition(b"\n\n")[2])
    assert checked(made, asked=Asked((str(tmp_path / "note"),))).exit_status == 0
    report = checked(made, asked=Asked((str(tmp_path / "nowhere"),)))
    assert (report.failed(), report.exit_status) == ([], 1)


def test_a_proof_at_an_anchor_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, data in {"x": Growth().make(), "old": Growth().older()}.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "at").mkdir()
    placed(tmp_path / "at", Growth(), {11: None})
    asked = [str(tmp_path / "x"), "--key", VKEY, "--since", str(tmp_path / "old"), "--anchor"]
    assert main([*asked, str(tmp_path / "at")]) == 0
    assert "the newer checkpoint stands at" in capsys.readouterr().out
    assert main([*asked, str(tmp_path / "nowhere")]) == 1


def test_a_receipt_is_held_against_its_witnesses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = Asked(witnesses=(notes.witness_key(WITNESS.vkey),))
    assert checked(SOUND["a receipt with a witness's signature"], asked=asked).exit_status == 0
    for made in (Receipt(), Receipt(make_note=wrongly_witnessed)):
        assert checked(made, asked=asked).failed() == ["receipt.witnessed"]
        assert checked(made, without="receipt.witnessed", asked=asked).exit_status == 0
    for name in (Signer().name, "somebody.else"):
        alias = Signer(name=name)
        made = Receipt(make_note=lambda s, n, r, alias=alias: with_a_witness(s, n, r, alias))
        own = Asked(witnesses=(notes.witness_key(alias.vkey),))
        assert checked(made, asked=own).failed() == ["receipt.witnessed"]
        assert checked(made, without="receipt.witnessed", asked=own).exit_status == 0
    (tmp_path / "x").write_bytes(SOUND["a receipt with a witness's signature"].make())
    assert main([str(tmp_path / "x"), "--key", VKEY, "--witness", WITNESS.vkey]) == 0
    assert "signed by witness.example" in capsys.readouterr().out
    assert main([str(tmp_path / "x"), "--witness", "none"]) == 2
    (tmp_path / "y").write_bytes(Growth().make())
    assert main([str(tmp_path / "y"), "--witness", WITNESS.vkey]) == 2


def test_a_fingerprint_is_enough_for_a_receipt_and_not_for_growth() -> None:
    assert checked(Receipt(), Signer().fingerprint).exit_status == 0
    assert checked(Receipt(), STRANGER.fingerprint).failed() == ["receipt.signed"]
    assert checked(Receipt(signer=STRANGER, extra={"vkey": STRANGER.vkey}), Signer().fingerprint).exit_status == 1
    told = checked(Growth(), Signer().fingerprint)
    assert (told.failed(), told.exit_status) == ([], 1)


@pytest.mark.parametrize("made", [Receipt(), Growth()])
def test_without_a_key_it_holds_with_a_warning(made: Receipt | Growth) -> None:
    report = checked(made, None)
    doubts = [result.check for result in report.results if result.status is Status.CANNOT_TELL]
    assert doubts == ["receipt.signed" if isinstance(made, Receipt) else "proof.signed"]
    assert report.exit_status == 0 and any("who signed" in caveat for caveat in report.caveats)
    wrong = Receipt(signer=STRANGER)
    assert checked(wrong, None).failed() == ["receipt.signed"], "it names a key that did not sign it"


def test_what_it_says_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_bytes(Receipt().make())
    assert main([str(tmp_path / "x"), "--key", VKEY]) == 0
    said = capsys.readouterr().out
    for words in ("tâche · base · 2", "pass, reward 0.5", "entry 6 of 11", "git at https://example.org/heads.git"):
        assert words in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 100
    assert main([str(tmp_path / "x"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["kind"] == "receipt of a trial" and record["facts"]["grade"] == "pass, reward 0.5"
    assert [check["check"] for check in record["checks"]] == [check.id for check in RECEIPT_CHECKS]


def test_growth_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_bytes(Growth().make())
    (tmp_path / "old").write_bytes(Growth().older())
    assert main([str(tmp_path / "x"), "--key", VKEY, "--since", str(tmp_path / "old")]) == 0
    assert main([str(tmp_path / "x"), "--key", VKEY]) == 1
    assert "name it with --since" in " ".join(capsys.readouterr().out.split())
    assert main([str(tmp_path / "x"), "--since", str(tmp_path / "none")]) == 2
    assert main([str(tmp_path / "x"), "--key", "nonsense"]) == 2


def test_what_is_no_file_that_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_text("hello\n")
    (tmp_path / "empty").write_bytes(b"")
    for name in ("pipe", "text", "empty", "\0"):
        assert verify_file(tmp_path / name if name != "\0" else name).exit_status == 2
    assert main([str(tmp_path / "pipe")]) == 2 and "not a plain file" in capsys.readouterr().out
    assert main(["/dev/zero"]) == 2


@pytest.mark.parametrize("start", [b"c2sp.org/tlog-proof@v1\n", b"old 5\n"])
def test_a_file_of_a_gigabyte_is_a_finding(start: bytes, tmp_path: Path) -> None:
    with (tmp_path / "x").open("wb") as file:
        file.write(start)
        file.truncate(1 << 30)
    report = verify_file(tmp_path / "x", VKEY)
    assert report.failed() == [report.results[0].check] and report.exit_status == 1
    assert "1,048,576" in report.results[0].findings[0].seen


def _signed_part(receipt: bytes) -> tuple[object, ...]:
    """All of a receipt but `anchored`."""
    first, extra, rest = receipt.split(b"\n", 2)
    said = json.loads(base64.b64decode(extra.removeprefix(b"extra ")))
    return first, rest, *(said[name] for name in ("line", "trial", "vkey"))


@settings(deadline=None)
@given(st.data())
def test_any_change_of_a_byte_is_found_or_changes_nothing_that_is_said(data: st.DataObject) -> None:
    made = data.draw(st.sampled_from([Receipt(), Receipt(size=1, at=0), Growth()]))
    right = made.make()
    at = data.draw(st.integers(0, len(right) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda b: b != right[at]))
    wrong = right[:at] + bytes([byte]) + right[at + 1 :]
    trust = notes.trust_root(VKEY)
    if isinstance(made, Receipt):
        report = verify_receipt(wrong, trust)
        # where a checkpoint was pushed is the receipt's own word, and nothing else is
        assert report.exit_status == 1 or _signed_part(wrong) == _signed_part(right)
    else:
        report = verify_growth(wrong, made.older(), trust)
        assert report.exit_status == 1
    json.loads(render_json(report))


@settings(deadline=None)
@given(st.binary(max_size=400), st.sampled_from([b"c2sp.org/tlog-proof@v1\n", b"old ", b"old 3\n\n", b""]))
def test_any_bytes_are_a_finding(tail: bytes, start: bytes) -> None:
    for report in (verify_receipt(start + tail, None), verify_growth(start + tail, tail, None)):
        assert report.exit_status == 1
        render_text(report)


def _vectors() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(VECTORS.read_text())
    return found


@pytest.mark.parametrize("case", _vectors()["cases"], ids=lambda case: case["name"])
def test_frozen_vectors(case: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(case["file"].encode())
    if case["since"] is not None:
        (tmp_path / "since").write_bytes(case["since"].encode())
    since = tmp_path / "since" if case["since"] is not None else None
    report = verify_file(tmp_path / "file", case["key"], since=since)
    assert {result.check: result.status.value for result in report.results} == case["checks"]
    assert report.exit_status == case["exit_status"]


def test_frozen_vectors_are_of_every_check_both_ways() -> None:
    elsewhere = {"receipt.anchored", "receipt.witnessed", "proof.anchored"}
    for status in ("pass", "fail", "cannot tell"):
        seen = {check for case in _vectors()["cases"] for check, said in case["checks"].items() if said == status}
        wanted = {check.id for check in (*RECEIPT_CHECKS, *CONSISTENCY_CHECKS)} - (
            set() if status == "cannot tell" else elsewhere
        )
        assert seen == wanted - ({"receipt.form", "proof.form"} if status == "cannot tell" else set())
