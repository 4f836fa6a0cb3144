"""A signal before the verdict, or right after it, is on the record; a folder that is no run is never written into."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from money_runs import Plan, sums, write_study
from proctor.core.reasons import Reason
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_entries
from proctor.runner.launch import resume

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import os, sys, threading
from pathlib import Path
from proctor.admission import admit
from proctor.runner.launch import Launch, launch

heard = threading.Event()

def gather(request, *rest):
    os.kill(os.getpid(), {number})
    heard.wait(1)  # the loop takes the signal while this looks at the machine
    return looked(request, *rest)

looked, admit.gather = admit.gather, gather
(finished,) = launch(Launch("run", study=Path({study!r}), out=Path({out!r})), quiet=True, say=print)
os.kill(os.getpid(), {late})  # its end is on the record already
sys.exit(int(finished.exit))
"""
BETWEEN = """
import os, sys
from pathlib import Path
from proctor.runner import session
from proctor.runner.launch import Launch, launch

class Session(session.Session):
    def __init__(self, *words):
        os.kill(os.getpid(), {number})
        super().__init__(*words)

session.Session = Session
how = Launch("run", study=Path({study!r}), out=Path({out!r}), waive=("git_dirty",))
(finished,) = launch(how, quiet=True, say=print)
sys.exit(int(finished.exit))
"""


def ended(program: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    environ = {"PYTHONPATH": str(ROOT / "src"), "PROCTOR_CONFIG_DIR": str(tmp_path / "keys"), "PATH": "/usr/bin:/bin"}
    return subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_verdict_is_a_refusal_with_its_status(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "study.toml").write_text('[study]\nname = "s"\n')
    out = tmp_path / "run"
    late = signal.SIGTERM if number is not signal.SIGTERM else signal.SIGHUP
    program = PROGRAM.format(number=int(number), late=int(late), study=str(tmp_path / "study.toml"), out=str(out))
    done = ended(program, tmp_path)
    assert done.returncode == 128 + number, done.stderr
    (manifest,) = (json.loads(path.read_bytes()) for path in (out / "manifests").iterdir())
    assert (manifest["verdict"], manifest["exit_status"]) == ("refused", 128 + number)
    assert [refusal["reason"] for refusal in manifest["refusals"]] == ["interrupted"]
    assert not (out / "journal.jsonl").exists()


@pytest.mark.parametrize("late", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_a_refusal_changes_nothing(tmp_path: Path, late: signal.Signals) -> None:
    out = tmp_path / "run"
    # 0: no signal, only whether there is such a process
    done = ended(PROGRAM.format(number=0, late=int(late), study=str(tmp_path / "none.toml"), out=str(out)), tmp_path)
    (manifest,) = (json.loads(path.read_bytes()) for path in (out / "manifests").iterdir())
    assert (done.returncode, manifest["verdict"], manifest["exit_status"]) == (3, "refused", 3), done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_between_verdict_and_work_ends_the_run_on_the_record(tmp_path: Path, number: signal.Signals) -> None:
    study = write_study(tmp_path / "study", rows=sums(2), money=Plan({"practice": "0.20"}))
    out = tmp_path / "run"
    done = ended(BETWEEN.format(number=int(number), study=str(study), out=str(out)), tmp_path)
    last = list(read_entries(out / "journal.jsonl"))[-1]
    assert (done.returncode, last.kind, last.body["exit_status"]) == (128 + number, Kind.RUN_ENDED, 128 + number)
    assert last.body["reason"] == "interrupted"


@pytest.mark.parametrize("there", ["nothing", "a folder", "a file"])
def test_resume_writes_nothing_where_no_run_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str) -> None:
    monkeypatch.setenv("PROCTOR_CONFIG_DIR", str(tmp_path / "keys"))
    place = tmp_path / "place"
    if there == "a folder":
        place.mkdir()
        (place / "notes.txt").write_text("mine\n")
    elif there == "a file":
        place.write_text("mine\n")
    before = sorted(path.name for path in tmp_path.rglob("*") if "keys" not in path.parts)
    finished = resume(place, study=None, jobs=None, waive=(), quiet=True, say=print)
    assert finished is not None
    assert [refusal.reason for refusal in finished.refusals] == [Reason.RUN_NOT_FOUND]
    assert sorted(path.name for path in tmp_path.rglob("*") if "keys" not in path.parts) == before
