"""Whoever waits for an image to be built is told so, and for how long it took; not where nothing is to be told."""

from __future__ import annotations

import json
import secrets
import subprocess
from pathlib import Path

import pytest
from each_kind import kind_or_skip
from real_runs import ENOUGH_SEC, Proctor, proctor

from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_probe

__all__ = ["proctor"]
pytestmark = pytest.mark.real

BASE = "debian:bookworm-slim"
DOING = "building the image of slow (environment/Dockerfile)"


@pytest.fixture(autouse=True)
def engine() -> None:
    found = kind_or_skip("docker").images([BASE], seal_probe(30), pull="never")
    if isinstance(found[BASE], Refusal):
        pytest.skip(f"the engine lacks {BASE}: .ci/images.sh makes it")


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A task whose image takes two seconds to build, and stands nowhere yet."""
    files = {
        "task.toml": "",
        "instruction.md": "Write the answer.\n",
        # what is built for a while is the point here
        "environment/Dockerfile": f"FROM {BASE}\nRUN sleep 2; echo {secrets.token_hex(8)} > /made\nWORKDIR /w\n",
        "tests/test.sh": "test -e answer && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n",
        "solution/solve.sh": "touch answer\n",
    }
    for name, text in files.items():
        (tmp_path / "slow" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "slow" / name).write_text(text)
    return tmp_path / "slow"


def said(proctor: Proctor, *words: object) -> tuple[str, str]:
    """What a command that ends well prints to standard output, and to standard error."""
    with proctor.start(*words, stderr=subprocess.PIPE) as process:
        out, err = process.communicate(timeout=ENOUGH_SEC)
    assert process.returncode == 0, err
    return out, err


def test_tasks_check_tells_of_a_build(proctor: Proctor, task: Path) -> None:
    lines = said(proctor, "tasks", "check", task, "--sandbox", "docker")[1].splitlines()
    assert lines.count(DOING) == 1, "its second run finds the image at once"
    assert [line for line in lines if line.startswith(f"{DOING} took ")]


@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_nothing_is_told_where_nothing_is_asked_for(proctor: Proctor, task: Path, option: str) -> None:
    out, err = said(proctor, "tasks", "check", task, "--sandbox", "docker", option)
    assert err == ""
    if option == "--json":
        assert json.loads(out)[0]["verdict"] == "ok"


def test_a_run_tells_of_a_build(proctor: Proctor, task: Path) -> None:
    _, err = said(proctor, "run", "--task", task, "--sandbox", "docker", "--waive", "git_dirty")
    assert DOING in err.splitlines()
