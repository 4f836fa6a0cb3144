"""What git says of a study's folder, with a real git."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from proctor.admission.provenance import GitState, git_facts
from proctor.core.tokens import seal_probe

PROBE = seal_probe(20.0)

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *args: str) -> None:
    env = {"HOME": str(folder), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.invalid")
    subprocess.run(["git", *identity, *args], cwd=folder, check=True, capture_output=True, env=env)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "study.toml").write_text("[study]\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_no_repository_is_a_recorded_value(tmp_path: Path) -> None:
    facts = git_facts(tmp_path, [], PROBE)
    assert (facts.state, facts.head) == (GitState.ABSENT, None)


def test_a_committed_state_is_clean_and_has_its_head(repository: Path) -> None:
    facts = git_facts(repository, [], PROBE)
    assert facts.state is GitState.CLEAN
    assert facts.head is not None and len(facts.head) == 40


@pytest.mark.parametrize("name", ["study.toml", "new file"])
def test_a_changed_or_new_file_is_dirty_and_only_its_digest_is_told(repository: Path, name: str) -> None:
    clean = git_facts(repository, [], PROBE)
    (repository / name).write_text("SECRET = 1\n")
    facts = git_facts(repository, [], PROBE)
    assert (facts.state, facts.changes, facts.head) == (GitState.DIRTY, 1, clean.head)
    assert facts.status_sha256 != clean.status_sha256
    assert "SECRET" not in str(facts.as_record())


def test_run_folders_do_not_make_it_dirty(repository: Path) -> None:
    runs = repository / "runs"
    runs.mkdir()
    (runs / "journal.jsonl").write_text("{}\n")
    assert git_facts(repository, [runs], PROBE).state is GitState.CLEAN
    assert git_facts(repository, [], PROBE).state is GitState.DIRTY


def test_a_repository_without_a_commit_is_dirty(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    facts = git_facts(tmp_path, [], PROBE)
    assert (facts.state, facts.head) == (GitState.DIRTY, None)


def test_a_repository_that_git_cannot_read_is_broken(repository: Path) -> None:
    (repository / ".git" / "HEAD").write_text("garbage")
    facts = git_facts(repository, [], PROBE)
    assert facts.state is GitState.BROKEN
    assert facts.why


def test_a_lost_object_is_broken(repository: Path) -> None:
    shutil.rmtree(repository / ".git" / "objects")
    assert git_facts(repository, [], PROBE).state is GitState.BROKEN


def test_hooks_and_monitors_of_the_checkout_are_not_run(repository: Path) -> None:
    witness = repository.parent / "ran"
    hook = repository / "monitor.sh"
    hook.write_text(f"#!/bin/sh\ntouch {witness}\n")
    hook.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(hook))
    git_facts(repository, [], PROBE)
    assert not witness.exists()


def test_run_folders_anywhere_do_not_make_it_dirty(repository: Path) -> None:
    run = repository / "elsewhere" / "out"
    (run / "manifests").mkdir(parents=True)
    (run / "lock").write_text("")
    (run / "manifests" / "0001.json").write_text("{}")
    assert git_facts(repository, [], PROBE).state is GitState.CLEAN
    (repository / "elsewhere" / "notes").write_text("")
    assert git_facts(repository, [], PROBE).named == ("elsewhere/notes",)


def test_a_renamed_file_is_one_change(repository: Path) -> None:
    git(repository, "mv", "study.toml", "other.toml")
    facts = git_facts(repository, [], PROBE)
    assert (facts.changes, facts.named) == (1, ("other.toml <- study.toml",))
