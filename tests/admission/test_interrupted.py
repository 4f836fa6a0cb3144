"""A signal before the verdict is on the record; a folder that is no run is never written into."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from proctor.core.reasons import Reason
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
sys.exit(int(finished.exit))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_verdict_is_a_refusal_with_its_status(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "study.toml").write_text('[study]\nname = "s"\n')
    out = tmp_path / "run"
    program = PROGRAM.format(number=int(number), study=str(tmp_path / "study.toml"), out=str(out))
    environ = {"PYTHONPATH": str(ROOT / "src"), "PROCTOR_CONFIG_DIR": str(tmp_path / "keys"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 128 + number, done.stderr
    (manifest,) = (json.loads(path.read_bytes()) for path in (out / "manifests").iterdir())
    assert (manifest["verdict"], manifest["exit_status"]) == ("refused", 128 + number)
    assert [refusal["reason"] for refusal in manifest["refusals"]] == ["interrupted"]
    assert not (out / "journal.jsonl").exists()


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
