"""proctor verify: the second program in a process of its own, its exit status passed on."""

from __future__ import annotations

import hashlib
import json
import signal
import socket
import subprocess
import sys
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
    assert said.status == 0 and "  pass " in said.out


def test_a_design_alone(proctor, run: Path) -> None:
    digest = hashlib.sha256((run / "design.json").read_bytes()).hexdigest()
    said = proctor("verify", "--design", run / "design.json")
    assert said.status == 0 and said.out.startswith(f"design {digest}\n")
    assert proctor("verify", "--design", run / "design.json", "--json").status == 0
    (run / "design.json").write_bytes(b"{}")
    assert proctor("verify", "--design", run / "design.json").status == 2
    assert proctor("verify", "--design", run / "nothing").status == 2


def test_a_run_or_a_design(proctor, run: Path) -> None:
    key = ["--key", KEY.fingerprint]
    for wrong in ([], [run, "--design", run / "design.json"]):
        said = proctor("verify", *wrong)
        assert said.status == 2 and "either RUN" in said.err
    said = proctor("verify", "--design", run / "design.json", *key)
    assert said.status == 2 and "signed by nobody" in said.err


def test_the_table_of_checks(proctor, run: Path) -> None:
    assert "| `anchors.remote` | what stands at each place" in proctor("verify", "--checks").out
    said = proctor("verify", run, "--checks")
    assert said.status == 2 and "either RUN" in said.err


@pytest.mark.parametrize("option", ["--key", "--since"])
def test_two_answers_to_one_question_are_refused_by_both_programs(option: str, proctor, run: Path) -> None:
    said = proctor("verify", run, option, "a", option, "b")
    assert said.status == 2 and f"{option} is given twice" in said.err
    command = [sys.executable, "-m", "proctor_verify", str(run), option, "a", option, "b"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and f"{option} is given twice" in done.stderr


def test_an_attestation_comes_before_its_run(proctor, run: Path, tmp_path: Path) -> None:
    (tmp_path / "x.dsse.json").write_bytes(b"{}")
    said = proctor("verify", run, tmp_path / "x.dsse.json")
    assert said.status == 2 and "the attestation comes first" in said.err


def test_a_signal_ends_the_work_and_not_only_the_command(run: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"git://127.0.0.1:{silent.getsockname()[1]}/anchors"
        command = [sys.executable, "-m", "proctor", "verify", str(run), "--anchor", place]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as asked:
            connection, _ = silent.accept()
            [worker] = Path(f"/proc/{asked.pid}/task/{asked.pid}/children").read_text().split()
            asked.terminate()
            assert asked.wait(timeout=60) == 128 + signal.SIGTERM
            assert not Path(f"/proc/{worker}").exists()
            connection.close()
