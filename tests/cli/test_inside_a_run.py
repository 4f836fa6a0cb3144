"""Nothing is made inside of a run that is not its own: every file there is evidence, and a stray one spoils it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from money_runs import write_study
from proctor.evidence.disk import write_refusal
from proctor.evidence.lock import Lock
from proctor.evidence.runfolder import RunFolder
from proctor_verify import verify

QUIET = ("--yes", "--quiet", "--waive", "git_dirty")


@pytest.fixture
def own(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert verify(run).exit_status == 0
    return run


def stands(run: Path) -> set[Path]:
    return {path.relative_to(run) for path in run.rglob("*")}


@pytest.mark.parametrize("below", ["trials", "runs/other/main", "trials/deep/down"])
def test_no_other_run(proctor, own: Path, tmp_path: Path, below: str) -> None:
    before = stands(own)
    said = proctor("run", write_study(tmp_path / "study"), "--out", own / below, *QUIET)
    assert said.status == 3 and "out_unusable" in said.err and "inside the run" in said.err
    assert "the record of the refusal" not in said.err + said.out
    assert stands(own) == before


def test_no_other_run_by_a_link(proctor, own: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(own / "trials")
    said = proctor("run", write_study(tmp_path / "study"), "--out", tmp_path / "link/main", *QUIET)
    assert said.status == 3 and "out_unusable" in said.err
    assert verify(own).exit_status == 0


def test_a_run_is_no_study(proctor, own: Path) -> None:
    before = stands(own)
    assert proctor("run", own, *QUIET).status == 3
    assert stands(own) == before


def test_no_checkpoints_of_its_own(proctor, own: Path) -> None:
    for place in (own, own / "trials"):
        said = proctor("anchor", own, "--drop", place)
        assert said.status == 5 and "inside the run" in said.out
    assert verify(own).exit_status == 0


def test_beside_it_is_no_inside(proctor, own: Path, tmp_path: Path) -> None:
    (own.parent / "drop").mkdir()
    assert proctor("anchor", own, "--drop", own.parent / "drop").status == 0
    assert verify(own, anchors=[str(own.parent / "drop")]).exit_status == 0


def test_a_folder_without_a_name_is_none(proctor, own: Path) -> None:
    said = proctor("anchor", own, "--drop", "")
    assert said.status == 2 and "'--drop': it is empty" in said.err
    assert verify(own).exit_status == 0


def _no_write(*_: object, **__: object) -> None:
    raise write_refusal(OSError(errno.EROFS, "Read-only file system"), "lock")


def test_a_refusal_that_no_folder_holds_is_said_to_be_in_none(
    proctor, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunFolder, "new_manifest", _no_write)
    said = proctor("resume", own, *QUIET)
    assert said.status == 3 and "write_failed" in said.err
    assert "the record of the refusal" not in said.err + said.out


def test_what_helps_an_anchor_is_no_resume(proctor, own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lock, "acquire", _no_write)
    said = proctor("anchor", own, "--drop", tmp_path / "drop")
    assert "write_failed" in said.err and "anchor it again" in said.err
    assert "proctor resume" not in said.err + said.out
