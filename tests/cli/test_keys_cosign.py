"""proctor keys cosign: a second person signs a checkpoint, and the second program believes that."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from journal_parts import KEY
from proctor.evidence.keys import load_or_create
from proctor_verify import Status, verify
from run_parts import make_run

SRC = Path(__file__).resolve().parents[2] / "src"


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROCTOR_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("PYTHONPATH", str(SRC))
    return tmp_path / "config"


def test_a_run_is_signed_and_the_witness_is_found(proctor, run: Path, tmp_path: Path) -> None:
    said = proctor("keys", "cosign", run, "-o", tmp_path / "seen.note", "--json").json()
    entries = len((run / "journal.jsonl").read_bytes().splitlines())
    assert said["entries"] == entries and said["origin"].startswith("proctor/run/")
    told = proctor(
        "verify", run, "--key", KEY.fingerprint, "--anchor", tmp_path / "seen.note", "--witness", said["vkey"]
    )
    assert told.status == 0
    assert re.search(rf"operator's:\s+\S+\s+signed\s+the\s+first\s+{entries}\s+entries\s+on\s+\d{{4}}-", told.out)


def test_a_note_is_signed_by_another_key_too(proctor, run: Path, tmp_path: Path) -> None:
    first = sorted((run / "checkpoints").glob("*.note"))[0]
    other, _ = load_or_create(tmp_path / "other")
    proctor("keys", "cosign", first, "-o", tmp_path / "a.note")
    said = proctor(
        "keys", "cosign", tmp_path / "a.note", "-o", tmp_path / "b.note", "--key", tmp_path / "other/operator.key"
    )
    assert said.status == 0 and other.vkey in said.out and "the first entry" in said.out
    mine = proctor("keys", "--json").json()["vkey"]
    report = verify(run, KEY.fingerprint, since=str(tmp_path / "b.note"), witnesses=[mine, other.vkey])
    found = {result.check: result for result in report.results}["key.witnessed"]
    assert found.status is Status.PASS and found.seen.count("signed the first entry on 20") == 2


def test_who_signed_the_run_is_told_that_he_is_no_witness_of_it(
    proctor, config: Path, run: Path, tmp_path: Path
) -> None:
    asyncio.run(make_run(tmp_path / "own", key=load_or_create(config)[0]))
    said = proctor("keys", "cosign", tmp_path / "own", "-o", tmp_path / "seen.note")
    assert said.status == 0 and "this key signed the run itself" in said.err
    assert "itself" not in proctor("keys", "cosign", run, "-o", tmp_path / "seen.note").err


def test_a_checkpoint_that_is_not_of_the_journal_is_not_signed(proctor, run: Path, tmp_path: Path) -> None:
    journal = run / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"prev":"', b'"prev":"0', 1))
    said = proctor("keys", "cosign", run, "-o", tmp_path / "seen.note")
    assert said.status == 3 and "evidence_damaged" in said.err and not (tmp_path / "seen.note").exists()


def test_what_is_no_checkpoint_is_not_signed(proctor, run: Path, tmp_path: Path) -> None:
    said = proctor("keys", "cosign", run / "journal.jsonl", "-o", tmp_path / "seen.note")
    assert said.status == 3 and "evidence_damaged" in said.err
    assert proctor("keys", "cosign", tmp_path / "nothing", "-o", tmp_path / "seen.note").status == 2


@pytest.mark.parametrize("what", ["missing", "no key"])
def test_a_file_that_is_no_key(proctor, run: Path, tmp_path: Path, what: str) -> None:
    if what == "no key":
        (tmp_path / "key").write_text("hello\n")
        (tmp_path / "key").chmod(0o600)
    said = proctor("keys", "cosign", run, "-o", tmp_path / "seen.note", "--key", tmp_path / "key")
    assert said.status == 3 and "key_unreadable" in said.err


def test_it_is_not_written_into_a_run(proctor, run: Path) -> None:
    said = proctor("keys", "cosign", run, "-o", run / "checkpoints/seen.note")
    assert said.status == 3 and "output_unwritable" in said.err


def test_what_is_no_checkpoint_says_what_to_name(proctor, run: Path, tmp_path: Path) -> None:
    said = proctor("keys", "cosign", run / "design.json", "-o", tmp_path / "seen.note")
    assert said.status == 3 and "this is no checkpoint" in said.err and "Name the file of a checkpoint" in said.err
    assert "Restore the run" not in said.err and not (tmp_path / "seen.note").exists()
