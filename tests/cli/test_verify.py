"""proctor verify: the second program in a process of its own, its exit status passed on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from journal_parts import KEY

SRC = Path(__file__).resolve().parents[2] / "src"


@pytest.fixture(autouse=True)
def source_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SRC))


def test_what_holds_verifies_against_its_key(proctor, run: Path) -> None:
    said = proctor("verify", run, "--key", KEY.fingerprint)
    assert said.status == 0 and "VERIFIED" in said.out


def test_another_key_fails(proctor, run: Path) -> None:
    said = proctor("verify", run, "--key", "sha256:" + "0" * 64, "--json")
    assert said.status == 1
    failed = [each["check"] for each in json.loads(said.out)["checks"] if each["status"] == "fail"]
    assert failed == ["key.trust"]


def test_a_flipped_byte_fails(proctor, run: Path) -> None:
    reward = next((run / "trials").rglob("reward.txt"))
    reward.write_bytes(b"9")
    said = proctor("verify", run)
    assert said.status == 1 and "files.digests" in said.out


def test_nothing_to_read(proctor, tmp_path: Path) -> None:
    assert proctor("verify", tmp_path / "nothing").status == 2


def test_a_run_folder_brings_no_code_of_its_own(proctor, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("json.py", "hashlib.py", "proctor_verify.py"):
        (run / name).write_text("raise SystemExit(0)")
    monkeypatch.chdir(run)
    said = proctor("verify", ".")
    assert said.status == 1 and "files.unlisted" in said.out


def test_a_folder_named_like_an_option(proctor, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run.rename(run.with_name("--json"))
    monkeypatch.chdir(run.parent)
    said = proctor("verify", "--", "--json")
    assert said.status == 0 and said.out.startswith("pass ")
