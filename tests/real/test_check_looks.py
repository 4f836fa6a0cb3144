"""`proctor check` looks, and that is all: nothing is written anywhere, and nothing is left running."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fake_worlds import write_study
from proctor.core.tokens import seal_probe
from proctor.evidence.keys import load_or_create
from proctor.sandbox.namespace.kind import NamespaceKind

pytestmark = pytest.mark.real
SRC = Path(__file__).resolve().parents[2] / "src"


class Home:
    """Everything that a program of a user could write to lies below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("home", "tmp", "run", "config", "cache", "work"):
            (folder / name).mkdir(mode=0o700)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder / "tmp"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PYTHONPATH": str(SRC),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def check(self, *words: object) -> tuple[int, Any, str]:
        """The exit status, what is said as JSON, and the rest."""
        command = [sys.executable, "-m", "proctor", "check", *map(str, words), "--json"]
        done = subprocess.run(
            command, env=self.env, cwd=self.folder / "work", capture_output=True, text=True, timeout=600, check=False
        )
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr

    def seen(self) -> dict[str, tuple[Any, ...]]:
        """All that stands there: what it is, since when, and what is in it.

        The temporary folder is only looked into: a probe tries there what can be had, and removes it again.
        """
        found = {}
        for path in sorted(self.folder.rglob("*")):
            if path == self.folder / "tmp":
                continue
            seen = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(seen.st_mode) else b""
            name = str(path.relative_to(self.folder))
            found[name] = (seen.st_mode, seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns, content)
        return found


@pytest.fixture
def home(tmp_path: Path) -> Home:
    seen = NamespaceKind().probe(seal_probe(30))
    if not seen.available:
        pytest.skip(f"no namespaces here: {[str(refusal) for refusal in seen.refusals]}")
    return Home(tmp_path)


@pytest.fixture
def study(home: Home) -> Path:
    return write_study(home.folder / "work/study", tasks=2, arms=2)


def left_running(folder: Path) -> list[str]:
    """Processes that name the folder, in their words or in what they have open as their working directory."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            try:
                words, place = (process / "cmdline").read_bytes(), (process / "cwd").readlink()
            except OSError:
                continue
            if str(folder).encode() in words or place.is_relative_to(folder):
                found.append(words.decode(errors="replace"))
    return found


def committed(folder: Path) -> None:
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-C", str(folder)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *words], check=True, timeout=60, capture_output=True)
    # what git has noted of this file is out of date: looking must not bring it up to date
    (folder / "study.toml").write_bytes((folder / "study.toml").read_bytes())


def test_a_study_that_would_be_admitted(home: Home, study: Path) -> None:
    before = home.seen()
    status, said, aside = home.check(study)
    assert status == 0, aside
    assert [verdict["verdict"] for verdict in said] == ["admitted"]
    assert home.seen() == before
    assert left_running(home.folder) == []
    assert not list((home.folder / "config").iterdir()), "no key is made"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_study_in_a_repository(home: Home, study: Path) -> None:
    committed(study.parent)
    before = home.seen()
    status, said, _ = home.check(study)
    assert said[0]["probes"]["git"]["state"] == "clean"
    (study.parent / "new").write_text("")
    dirty = home.seen()
    status, said, _ = home.check(study)
    assert (status, said[0]["probes"]["git"]["state"]) == (3, "dirty")
    (study.parent / "new").unlink()
    after = home.seen()
    assert home.seen().keys() == before.keys() < dirty.keys()
    of_git = [name for name in before if name.startswith("work/study/.git")]
    assert of_git and [name for name in of_git if after[name] != before[name]] == []


@pytest.mark.parametrize(
    "words",
    [
        ("nowhere",),
        ("study", "--stage", "none"),
        ("study", "--waive", "nonsense"),
        ("study", "--arm", "none"),
        ("study", "--out", "a/new/folder"),
        ("study/tasks",),
    ],
    ids=" ".join,
)
def test_whatever_is_asked(home: Home, study: Path, words: tuple[str, ...]) -> None:
    before = home.seen()
    status, _, aside = home.check(*words)
    assert status == (0 if "--out" in words else 3), aside
    assert home.seen() == before


def test_an_operator_s_key_is_left_alone(home: Home, study: Path) -> None:
    load_or_create(home.folder / "config/proctor")
    before = home.seen()
    home.check(study)
    assert home.seen() == before
