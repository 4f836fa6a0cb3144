"""Output that cannot be written is one typed line and exit status 5; what is printed to be typed can be typed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from proctor.core.exits import Exit

SRC = Path(__file__).resolve().parents[2] / "src"
DEADLINE_SEC = 60
FULL = Path("/dev/full")

needs_full = pytest.mark.skipif(not FULL.is_char_device(), reason="this system has no /dev/full")


def proctor_to(
    out: object, err: object, *words: object, unbuffered: bool = False
) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    env.pop("PYTHONUNBUFFERED", None)
    if unbuffered:
        env["PYTHONUNBUFFERED"] = "1"
    command = [sys.executable, "-m", "proctor", *map(str, words)]
    return subprocess.run(command, env=env, stdout=out, stderr=err, timeout=DEADLINE_SEC, check=False)


@needs_full
@pytest.mark.parametrize("unbuffered", [False, True], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("words", [("results", "--csv"), ("show", "--json"), ("logs",), ("logs", "alpha/plain")])
def test_a_full_disk_below_the_output(run: Path, words: tuple[str, ...], unbuffered: bool) -> None:
    with FULL.open("wb") as full:
        said = proctor_to(full, subprocess.PIPE, words[0], run, *words[1:], unbuffered=unbuffered)
    assert said.returncode == Exit.INFRASTRUCTURE
    (line,) = said.stderr.decode().splitlines()
    assert line.startswith("output_unwritable: ") and os.strerror(28) in line


@needs_full
def test_help_too(run: Path) -> None:
    with FULL.open("wb") as full:
        said = proctor_to(full, subprocess.PIPE, "--help")
    assert said.returncode == Exit.INFRASTRUCTURE and said.stderr.startswith(b"output_unwritable")


@needs_full
def test_nowhere_to_say_it(tmp_path: Path) -> None:
    with FULL.open("wb") as full:
        assert proctor_to(full, full, "explain").returncode == Exit.INFRASTRUCTURE
        assert proctor_to(subprocess.PIPE, full, "logs", tmp_path / "none").returncode == Exit.INFRASTRUCTURE


def test_commands_are_printed_as_they_were_started(run: Path) -> None:
    said = proctor_to(subprocess.PIPE, subprocess.PIPE, "results", run)
    (verify,) = [line.split(maxsplit=1)[1] for line in said.stdout.decode().splitlines() if line.startswith("verify ")]
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    again = subprocess.run(verify, shell=True, env=env, capture_output=True, timeout=DEADLINE_SEC, check=False)
    assert again.returncode == 0 and again.stdout.decode().splitlines()[-1].startswith("VERIFIED")
