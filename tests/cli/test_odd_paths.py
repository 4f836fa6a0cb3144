"""Paths that lead nowhere, or to what waits: each command says so, and none crashes or waits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOOPS = ("loop", "loop/x")


def _proctor(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "proctor", *words],
        cwd=folder,
        env={**os.environ, "XDG_CONFIG_HOME": str(folder / "config")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("path", LOOPS)
@pytest.mark.parametrize("command", ["run", "check", "plan", "new"])
def test_links_that_lead_round_in_a_circle(command: str, path: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    ended = _proctor(tmp_path, command, path)
    assert ended.returncode in (2, 3) and "Traceback" not in ended.stderr, ended.stderr
    assert path in ended.stdout + ended.stderr


@pytest.mark.skipif(not os.access("/proc/kmsg", os.R_OK), reason="nothing here is plain and waits")
def test_a_plain_file_that_waits_holds_nothing(tmp_path: Path) -> None:
    ended = _proctor(tmp_path, "check", "/proc/kmsg")
    assert ended.returncode == 3 and "Traceback" not in ended.stderr
    assert "is needed and not there" in ended.stdout + ended.stderr


# it is gone before the command looks: a process may be started in no folder at all
_GONE = "import os, runpy; os.rmdir(os.getcwd()); runpy.run_module('proctor', run_name='__main__', alter_sys=True)"


@pytest.mark.parametrize(
    "words", [("doctor",), ("tasks", "list", "t"), ("run", "s"), ("results", "r"), ("verify", "r")]
)
def test_in_a_folder_that_is_gone(words: tuple[str, ...], tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    ended = subprocess.run(
        [sys.executable, "-c", _GONE, *words],
        cwd=here,
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode in (2, 3) and "Traceback" not in ended.stderr, ended.stderr
    assert ended.stderr or ended.stdout
