"""A verifier in another language, written from docs/evidence-format.md alone, comes to what the second program does.

Over runs made here, sound and tampered with, and over the vectors: the same exit status, the same checks that fail, and
the same that cannot tell.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "third-party-verifier"
VECTORS = ROOT / "tests" / "vectors"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")

Outcome = tuple[int, frozenset[str], frozenset[str]]
Tamper = Callable[[Path], None]


def spoken(command: list[str], env: dict[str, str] | None = None) -> tuple[int, dict[str, Any]]:
    """The exit status of a verifier, and the object that it prints."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=env, check=False)
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        pytest.fail(f"{command[0]} printed no JSON: {done.stdout[-400:]}{done.stderr[-2000:]}")
    return done.returncode, report


def outcome(command: list[str]) -> Outcome:
    """Exit status, the checks that fail, and those that cannot tell."""
    status, report = spoken(command)
    assert report["exit_status"] == status
    found = {one["check"]: one["status"] for one in report["checks"]}
    fails = frozenset(name for name, seen in found.items() if seen == "fail")
    unknown = frozenset(name for name, seen in found.items() if seen == "cannot tell")
    return status, fails, unknown


def second(run: Path, *options: str) -> Outcome:
    return outcome([sys.executable, "-m", "proctor_verify", str(run), "--json", *options])


def third(run: Path, *options: str) -> Outcome:
    return outcome([str(NODE), str(FOLDER / "verify.mjs"), str(run), "--json", *options])


def agreed(run: Path, *options: str) -> Outcome:
    """What both come to; a difference is an error."""
    one = second(run, *options)
    assert third(run, *options) == one
    return one


class Shop:
    """Studies and runs of one module, with a key and a home of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config")}
        self.study = folder / "study"
        shutil.copytree(ROOT / "examples" / "quickstart", self.study)

    def proctor(self, *words: str) -> int:
        command = [str(Path(sys.executable).parent / "proctor"), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=self.env, check=False)
        self.said = done.stdout + done.stderr
        return done.returncode

    def run(self, name: str, *options: str) -> Path:
        run = self.folder / name
        status = self.proctor("run", str(self.study), "--out", str(run), "--yes", "--quiet", *options)
        if status == 3 and "sandbox" in self.said:
            pytest.skip(f"no sandbox here: {self.said[-300:]}")
        assert status in (0, 1, 4), self.said
        return run

    def resume(self, run: Path) -> None:
        assert self.proctor("resume", str(run), "--yes", "--quiet") in (0, 1, 4), self.said

    @property
    def key(self) -> str:
        assert self.proctor("keys", "--json") == 0, self.said
        return str(json.loads(self.said)["fingerprint"])


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    yield Shop(tmp_path_factory.mktemp("third"))


@pytest.fixture(scope="module")
def whole(shop: Shop) -> Path:
    return shop.run("whole")


def test_a_part_of_a_stage_is_marked_by_both(shop: Shop) -> None:
    run = shop.run("part", "--limit", "2")
    told = [spoken([sys.executable, "-m", "proctor_verify", str(run), "--json"])[1]["marks"]]
    told += [spoken([str(NODE), str(FOLDER / "verify.mjs"), str(run), "--json"])[1]["marks"]]
    assert told == [["PART", "SYNTHETIC"]] * 2


def test_what_it_cannot_read_is_called_by_name(tmp_path: Path) -> None:
    (tmp_path / "x.dsse.json").write_bytes(b'{"payload":""}')
    for name, words in (("x.dsse.json", "attestations are for proctor verify"), ("nowhere", "nothing stands there")):
        status, report = spoken([str(NODE), str(FOLDER / "verify.mjs"), str(tmp_path / name), "--json"])
        assert status == 2 and words in report["unreadable"]


def copied(run: Path, name: str) -> Path:
    return Path(shutil.copytree(run, run.parent / name))


def lines(run: Path) -> list[bytes]:
    return (run / "journal.jsonl").read_bytes().split(b"\n")[:-1]


def entries(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(run)]


def write(run: Path, kept: list[dict[str, Any]]) -> None:
    """Write entries as a journal whose chain holds; no checkpoint is made anew."""
    prev = "0" * 64
    with (run / "journal.jsonl").open("wb") as journal:
        for entry in kept:
            entry["prev"] = prev
            line = json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
            prev = hashlib.sha256(line).hexdigest()
            journal.write(line + b"\n")


def checkpoints(run: Path) -> list[Path]:
    return sorted((run / "checkpoints").glob("*.note"))


# --- sound runs


def test_a_run_that_went_through(shop: Shop, whole: Path) -> None:
    assert agreed(whole, "--key", shop.key) == (0, frozenset(), frozenset())
    assert agreed(whole) == (0, frozenset(), frozenset({"key.trust"}))


def test_a_run_by_another_key(whole: Path) -> None:
    assert agreed(whole, "--key", "sha256:" + "0" * 64) == (1, frozenset({"key.trust"}), frozenset())


def test_a_run_that_was_prepared_and_then_resumed(shop: Shop) -> None:
    run = shop.run("prepared", "--prepare-only")
    assert agreed(run, "--key", shop.key) == (0, frozenset(), frozenset())
    shop.resume(run)
    assert len([entry for entry in entries(run) if entry["kind"] == "run.ended"]) == 2
    assert agreed(run, "--key", shop.key) == (0, frozenset(), frozenset())


def test_a_run_whose_money_ran_out(shop: Shop) -> None:
    short = Shop(shop.folder / "short")
    study = short.study / "study.toml"
    scarce = study.read_text()
    for old, new in (('allocation = "0.02"', 'allocation = "0.004"'), ('cap = "0.02"', 'cap = "0.004"')):
        assert old in scarce
        scarce = scarce.replace(old, new)
    study.write_text(scarce.replace('practice = "0.02"', 'practice = "0.004"'))
    run = short.run("scarce")
    assert any(entry["kind"] == "ceiling.reached" for entry in entries(run))
    assert agreed(run, "--key", short.key) == (0, frozenset(), frozenset())


def test_a_run_that_died_and_was_taken_up_again(shop: Shop, whole: Path) -> None:
    run = copied(whole, "died")
    die(run)
    status, fails, _ = agreed(run)
    assert status == 1 and "journal.lines" in fails
    shop.resume(run)
    recovered = next(entry for entry in entries(run) if entry["kind"] == "run.recovered")
    assert recovered["body"]["lost"] and recovered["body"]["quarantined"]
    assert agreed(run, "--key", shop.key) == (0, frozenset(), frozenset())


def die(run: Path) -> None:
    """Leave what a process leaves that is killed in the middle of a line, with attempts in flight."""
    kept, bytes_ = entries(run), lines(run)
    end = next(i for i, entry in enumerate(kept) if i > 100 and entry["kind"] == "agent.started") + 1
    (run / "journal.jsonl").write_bytes(b"\n".join(bytes_[:end]) + b"\n" + bytes_[end][:40])
    begun = {entry["body"]["folder"].split("/")[1] for entry in kept[:end] if entry["kind"] == "attempt.admitted"}
    for folder in (run / "trials").iterdir():
        if folder.name not in begun:
            shutil.rmtree(folder)
    for note in checkpoints(run):
        if int(note.stem) > end:
            note.unlink()
    for name in ("summary.json", "grade_summary.json", "lock"):
        (run / name).unlink(missing_ok=True)


# --- runs that somebody tampered with


def edit_an_entry(run: Path) -> None:
    """A fail becomes a pass, and the chain is made again; what signs it cannot be."""
    kept = entries(run)
    final = next(entry for entry in kept if entry["kind"] == "trial.final" and entry["body"]["grade"] == "fail")
    final["body"].update(grade="pass", reason=None)
    write(run, kept)


def cut_the_tail(run: Path) -> None:
    write(run, entries(run)[:-3])


def remove_the_last_checkpoint(run: Path) -> None:
    checkpoints(run)[-1].unlink()


def alter_a_pack(run: Path) -> None:
    pack = run / "packs" / "0001.pack"
    changed = bytearray(pack.read_bytes())
    changed[len(changed) // 2] ^= 1
    pack.write_bytes(changed)


def alter_a_reward(run: Path) -> None:
    """A file of a reward of 1 or 0 says the other."""
    reward = min((run / "trials").rglob("verifier/reward.txt"))
    reward.write_text("0\n" if reward.read_text().strip().startswith("1") else "1\n")


def drop_an_entry(run: Path) -> None:
    kept = [entry for entry in entries(run) if entry["kind"] != "block.ended"]
    for seq, entry in enumerate(kept):
        entry["seq"] = seq
    write(run, kept)


def break_a_line(run: Path) -> None:
    broken = lines(run)
    broken[50] = b'{"kind": "trial.final"}'
    (run / "journal.jsonl").write_bytes(b"\n".join(broken) + b"\n")


def leave_without_newline(run: Path) -> None:
    (run / "journal.jsonl").write_bytes(b"\n".join(lines(run)))


def change_the_design(run: Path) -> None:
    design = run / "design.json"
    design.write_bytes(design.read_bytes().replace(b'"steps":12', b'"steps":13'))


def remove_the_design(run: Path) -> None:
    (run / "design.json").unlink()


def remove_the_journal(run: Path) -> None:
    (run / "journal.jsonl").unlink()


def leave_a_link(run: Path) -> None:
    (run / "packs" / "0002.pack").symlink_to("0001.pack")


TAMPERINGS: list[tuple[Tamper, set[str]]] = [
    (edit_an_entry, {"checkpoints.head", "finals.agree"}),
    (cut_the_tail, {"checkpoints.head", "run.ended"}),
    (remove_the_last_checkpoint, {"checkpoints.last"}),
    (alter_a_pack, {"packs.frames"}),
    (alter_a_reward, {"files.digests", "grades.recomputed"}),
    (drop_an_entry, {"blocks.ended", "checkpoints.head"}),
    (break_a_line, {"journal.lines", "journal.chain"}),
    (leave_without_newline, {"journal.lines"}),
    (change_the_design, {"design.digest", "agents.planned"}),
    (remove_the_design, {"design.digest"}),
    (remove_the_journal, {"journal.there"}),
    (leave_a_link, {"files.unlisted"}),
]


@pytest.mark.parametrize(("tamper", "found"), TAMPERINGS, ids=lambda one: getattr(one, "__name__", None))
def test_tampered(shop: Shop, whole: Path, tamper: Tamper, found: set[str]) -> None:
    run = copied(whole, tamper.__name__)
    tamper(run)
    status, fails, _ = agreed(run, "--key", shop.key)
    assert status == 1 and found <= fails


def test_no_run_at_all(tmp_path: Path) -> None:
    assert agreed(tmp_path)[0] == 2
    assert agreed(tmp_path / "nowhere")[0] == 2


# --- anchors


def test_receipts_of_an_anchor(shop: Shop, whole: Path) -> None:
    run = copied(whole, "anchored")
    (shop.folder / "drop").mkdir()
    assert shop.proctor("anchor", str(run), "--drop", str(shop.folder / "drop")) == 0, shop.said
    assert agreed(run, "--key", shop.key) == (0, frozenset(), frozenset())
    receipt = next((run / "checkpoints").glob("*.drop.json"))
    receipt.write_bytes(receipt.read_bytes().replace(b'"return_code":0', b'"return_code":1'))
    assert agreed(run, "--key", shop.key) == (1, frozenset({"anchors.pushed"}), frozenset())


# --- vectors


def test_vectors() -> None:
    done = subprocess.run(
        [str(NODE), str(FOLDER / "vectors.mjs"), str(VECTORS)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert int(done.stdout.split()[0]) > 300


def test_a_receipt_of_a_trial(tmp_path: Path) -> None:
    case = json.loads((VECTORS / "proofs.json").read_text())["cases"][0]
    receipt = tmp_path / "trial.tlog-proof"
    receipt.write_text(case["file"])
    assert agreed(receipt, "--key", case["key"]) == (0, frozenset(), frozenset())
    receipt.write_text(case["file"].replace("index 6", "index 7"))
    assert agreed(receipt, "--key", case["key"])[1] == {"receipt.included", "receipt.record"}


def test_a_proof_of_consistency(tmp_path: Path) -> None:
    cases = json.loads((VECTORS / "proofs.json").read_text())["cases"]
    case = next(one for one in cases if one["name"] == "a proof of consistency")
    proof, older = tmp_path / "proof", tmp_path / "older.note"
    older.write_text(case["since"])
    proof.write_text(case["file"])
    options = ("--since", str(older), "--key", case["key"])
    assert agreed(proof, *options) == (0, frozenset(), frozenset())
    proof.write_text(case["file"].replace("old 6", "old 5"))
    assert agreed(proof, *options)[1] == {"proof.consistent"}


RUNS: list[dict[str, Any]] = json.loads((VECTORS / "runs.json").read_text())


@pytest.mark.parametrize("case", RUNS, ids=lambda case: case["name"])
def test_small_whole_runs(tmp_path: Path, case: dict[str, Any]) -> None:
    for path, content in case["files"].items():
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(base64.b64decode(content))
    status, fails, _ = agreed(tmp_path, "--key", case["key"])
    assert status == case["exit_status"] and set(case["failed"]) <= fails
