"""proctor prove: by id or by words, to a file or to standard output, and what it refuses."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from journal_parts import KEY
from proctor.evidence.notes import Checkpoint, parse
from run_parts import Story, Try, design, make_run

SRC = Path(__file__).resolve().parents[2] / "src"


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def notes(run: Path) -> list[Path]:
    return sorted((run / "checkpoints").glob("*.note"))


def test_a_trial_by_its_words_and_by_its_id(proctor, run: Path, tmp_path: Path) -> None:
    said = proctor("prove", run, "alpha/plain")
    assert said.status == 0 and said.out.startswith("c2sp.org/tlog-proof@v1\nextra ")
    record = proctor("prove", run, "alpha · plain · 1", "--json").json()
    assert record["proof"] == said.out and record["path"] is None
    assert record["trial"] == {"task": "alpha", "model": None, "arm": "plain", "epoch": 1}
    rows = proctor("results", run, "--jsonl").out.splitlines()
    trial = next(row.split('"trial": "')[1][:16] for row in rows if '"alpha"' in row and '"plain"' in row)
    for text in (trial, trial[:8], f"{trial}/0", trial.upper()):
        assert proctor("prove", run, text).out == said.out
    assert (tmp_path / "cache/proctor/proofs").is_dir()


def checks(proctor, said: str) -> None:
    """The command that is told to check a file does."""
    (line,) = said.splitlines()
    assert line.startswith("verify     proctor verify ")
    assert proctor(*shlex.split(line)[2:]).status == 0


def test_into_a_file_which_is_no_part_of_a_run(proctor, run: Path, tmp_path: Path) -> None:
    said = proctor("prove", run, "alpha/plain", "-o", tmp_path / "x.tlog-proof")
    assert said.status == 0 and said.out == f"{tmp_path}/x.tlog-proof\n"
    assert (tmp_path / "x.tlog-proof").read_text() == proctor("prove", run, "alpha/plain").out
    checks(proctor, said.err)
    checks(proctor, proctor("prove", run, "--since", notes(run)[0], "-o", tmp_path / "x.tlog-consistency").err)
    inside = proctor("prove", run, "alpha/plain", "-o", run / "x.tlog-proof")
    assert inside.status == 3 and "output_unwritable" in inside.err


def test_a_run_that_is_not_ours_to_write(proctor, run: Path) -> None:
    before = sorted(path for path in run.rglob("*"))
    run.chmod(0o555)
    assert proctor("prove", run, "beta/skilled").status == 0
    assert sorted(path for path in run.rglob("*")) == before
    run.chmod(0o755)


def test_since_an_older_checkpoint(proctor, run: Path, tmp_path: Path) -> None:
    said = proctor("prove", run, "--since", notes(run)[0])
    newest = notes(run)[-1].read_bytes()
    size = Checkpoint.parse(parse(notes(run)[0].read_bytes()).text).size
    assert said.status == 0 and said.out.startswith(f"old {size}\n")
    assert said.out.encode().endswith(b"\n\n" + newest)
    record = proctor("prove", run, "--since", notes(run)[0], "-o", tmp_path / "c", "--json").json()
    assert record["old"] == size and record["path"] == str(tmp_path / "c")


def test_words_that_do_not_fit(proctor, run: Path, tmp_path: Path) -> None:
    assert proctor("prove", run).status == 2
    assert proctor("prove", run, "alpha/plain", "--since", notes(run)[0]).status == 2
    unknown = proctor("prove", run, "gamma")
    assert unknown.status == 2 and "alpha · plain" in unknown.err
    assert proctor("prove", run, "alpha").status == 2
    assert proctor("prove", tmp_path / "nothing", "alpha").status == 2
    assert proctor("prove", run, "--since", tmp_path / "nothing").status == 2


def test_what_cannot_be_proven(proctor, run: Path, tmp_path: Path) -> None:
    unfinished = proctor("prove", run, "0123456789abcdef")
    assert unfinished.status == 3 and "trial_unfinished" in unfinished.err
    (tmp_path / "note").write_bytes(notes(run)[0].read_bytes().replace(b"proctor/run", b"proctor/ran"))
    assert "evidence_damaged" in proctor("prove", run, "--since", tmp_path / "note").err
    journal = run / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"seq":5,', b'"seq":6,'))
    damaged = proctor("prove", run, "alpha/plain")
    assert damaged.status == 3 and "evidence_damaged" in damaged.err


def test_what_is_proven_verifies(proctor, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SRC))
    for trial in ("alpha/plain", "alpha/skilled", "beta/plain", "beta/skilled"):
        file = tmp_path / "x.tlog-proof"
        assert proctor("prove", run, trial, "-o", file).status == 0
        said = proctor("verify", file, "--key", KEY.fingerprint, "--json").json()
        assert said["exit_status"] == 0
        assert said["facts"]["trial"].startswith(trial.replace("/", " · "))
        file.write_bytes(file.read_bytes().replace(b"\nindex ", b"\nindex 1"))
        assert proctor("verify", file, "--key", KEY.fingerprint).status == 1
    for note in notes(run):
        file = tmp_path / "x.tlog-consistency"
        assert proctor("prove", run, "--since", note, "-o", file).status == 0
        assert proctor("verify", file, "--key", KEY.vkey, "--since", note).status == 0
        assert proctor("verify", file, "--key", "sha256:" + "0" * 64, "--since", note).status == 1


def test_a_public_copy_proves_the_same(proctor, run: Path, tmp_path: Path) -> None:
    assert proctor("export", "public", run, "-o", tmp_path / "copy").status == 0
    for words in (["alpha/plain"], ["--since", notes(run)[0]]):
        assert proctor("prove", tmp_path / "copy", *words).out == proctor("prove", run, *words).out


async def test_a_made_up_model_is_said_beside_the_receipt(proctor, tmp_path: Path) -> None:
    frozen = design(("alpha",), ("only",), models=("sun",))
    await make_run(tmp_path / "run", frozen, Story(tries={("alpha", "only"): (Try(),)}))
    said = proctor("prove", tmp_path / "run", "alpha/sun/only")
    assert said.status == 0 and said.out.startswith("c2sp.org")
    assert said.err.startswith("SYNTHETIC: sun is made up by rules")
