"""The `proctor` command called as the shell calls it, in this process."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.main import main
from run_parts import Story, Try, make_run


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


CTRF = json.dumps(
    {
        "results": {
            "tool": {"name": "t"},
            "summary": {"tests": 2, "passed": 1, "failed": 1, "skipped": 0, "pending": 0, "other": 0},
            "tests": [{"name": "a::b[1 + 1]", "status": "passed"}, {"name": "c", "status": "failed"}],
        }
    }
).encode()
STORY = Story(
    tries={
        ("alpha", "plain"): (Try(outcome="infrastructure", exception="sandbox_lost"), Try(reward="0.5", ctrf=CTRF)),
        ("beta", "plain"): (Try(outcome="interrupted", exception="interrupted"), Try(reward=None)),
        ("beta", "skilled"): (Try(exception="agent_timeout"),),
    }
)

Proctor = Callable[..., Said]


@pytest.fixture
def proctor(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Proctor:
    """Call it with words; returns what it said."""

    def call(*words: object) -> Said:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["proctor", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capfd.readouterr()
        return Said(int(ended.value.code or 0), said.out, said.err)

    return call


@pytest.fixture(scope="session")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "run"
    asyncio.run(make_run(path, story=STORY, end=1))
    return path


@pytest.fixture
def run(_made: Path, tmp_path: Path) -> Path:
    """A run of two tasks in two arms: one trial replaced, one superseded and ungraded, one timed out and passed."""
    shutil.copytree(_made, tmp_path / "run")
    return tmp_path / "run"
