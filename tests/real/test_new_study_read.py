"""What `proctor new` writes runs in a real sandbox, and everything that reads a run reads it, live and after."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real
SRC = Path(__file__).resolve().parents[2] / "src"
DEADLINE_SEC = 600
SLOW = """
[study]
name = "slow"
[tasks]
path = "tasks"
[agent]
name = "command"
command = "echo started; while [ ! -e /app/never ]; do sleep 0.1; done"
timeout = "10m"
[arms.a]
[arms.b]
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the new study in it, and a configuration of its own; skips where no sandbox can be had."""
    path = tmp_path_factory.mktemp("new")
    doctor = proctor(path, "doctor")
    if doctor.returncode:
        pytest.skip(f"no sandbox here: {doctor.stdout.decode()}")
    assert proctor(path, "new", "first").returncode == 0
    return path


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SRC), "PROCTOR_CONFIG_DIR": str(home / "config")}


def proctor(home: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "proctor", *words]
    return subprocess.run(command, cwd=home, env=environment(home), capture_output=True, timeout=DEADLINE_SEC)


@pytest.fixture(scope="module")
def run(home: Path) -> str:
    checked = proctor(home, "check", "first")
    assert checked.returncode == 0, checked.stderr
    ran = proctor(home, "run", "first")
    assert ran.returncode == 0, ran.stderr
    assert b"1/1 = 100.0 %" in ran.stdout
    (typed,) = [line.split()[1:] for line in ran.stdout.decode().splitlines() if line.startswith("verify ")]
    # as it is printed, whether `proctor` is on PATH or not
    assert subprocess.run(typed, cwd=home, env=environment(home), capture_output=True).returncode == 0
    return typed[typed.index("verify") + 1]


def test_its_task_passes_its_own_check(home: Path) -> None:
    checked = proctor(home, "tasks", "check", "first/tasks/unique-words")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_everything_that_reads_a_run_reads_it(home: Path, run: str) -> None:
    rows = [json.loads(line) for line in proctor(home, "results", run, "--jsonl").stdout.splitlines()]
    assert [row["grade"] for row in rows] == ["pass", "pass"]
    rebuilt = proctor(home, "show", run, "--rebuild", "--json")
    assert rebuilt.returncode == 0 and {each["copy"] for each in json.loads(rebuilt.stdout)} == {"same"}
    shown = proctor(home, "show", run, "unique-words/plain").stdout.decode()
    assert "oracle" in shown and "isolated" in shown and "memory" in shown
    assert b"run ended: done" in proctor(home, "logs", run).stdout
    assert b"done, and every trial is graded" in proctor(home, "status", run).stdout


def test_a_live_run_is_read_paused_and_interrupted(home: Path) -> None:
    (home / "slow").mkdir()
    (home / "slow/tasks").symlink_to(home / "first/tasks")
    (home / "slow/study.toml").write_text(SLOW)
    words = [sys.executable, "-m", "proctor", "run", "slow", "--out", "live"]
    with subprocess.Popen(words, cwd=home, env=environment(home), stderr=subprocess.PIPE) as running:
        assert running.stderr is not None
        assert b"2 trials planned" in running.stderr.readline()
        follow = [sys.executable, "-m", "proctor", "logs", "live", "-f"]
        with subprocess.Popen(follow, cwd=home, env=environment(home), stdout=subprocess.PIPE) as logs:
            assert logs.stdout is not None
            assert any(b"agent command starts" in line for line in logs.stdout)
            paused = proctor(home, "pause", "live", "--json")
            assert json.loads(paused.stdout) == {"paused": True}
            told = json.loads(proctor(home, "status", "live", "--json").stdout)
            assert told["live"] and told["paused"] and told["planned"] == 2 and len(told["in_flight"]) == 1
            assert b"in flight" in proctor(home, "show", "live").stdout
            running.terminate()
            rest = logs.stdout.read()
        assert b"ends: interrupted" in rest and b"run ended: interrupted by SIGTERM" in rest
    assert running.returncode == 143
    assert proctor(home, "verify", "live").returncode == 0
    assert b"proctor resume live" in proctor(home, "status", "live").stdout
