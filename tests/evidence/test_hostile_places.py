"""Other things where a run's files and folders should be: refused by type, not waited for, not written through."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from journal_parts import KEY
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence import recovery
from proctor.evidence.lock import Lock, read_lock
from proctor.evidence.reader import MAX_UNFINISHED, read_entries
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.scan import scan
from proctor_verify import verify
from run_parts import Story, Try, design, make_run

HUGE = 100 * 2**30


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    story = Story(tries={("beta", "skilled"): (Try(left_open=True),)})
    return asyncio.run(make_run(tmp_path_factory.mktemp("made") / "run", design(), story, end=None))


@pytest.fixture
def run(made: RunFolder, tmp_path: Path) -> RunFolder:
    return RunFolder(Path(shutil.copytree(made.path, tmp_path / "run")))


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as held:
        here = Path.cwd()
        os.chdir(path.parent)
        try:
            held.bind(path.name)
        finally:
            os.chdir(here)


def _folder(path: Path) -> None:
    path.mkdir()


def _link(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [_fifo, _socket, _folder, _link])
def test_a_lock_that_is_no_file_is_refused(run: RunFolder, make: Callable[[Path], None]) -> None:
    run.lock_path.unlink()
    make(run.lock_path)
    with pytest.raises(Refusal) as refused:
        read_lock(run)
    assert (refused.value.reason, refused.value.path) == (Reason.EVIDENCE_UNREADABLE, "lock")
    with pytest.raises(Refusal) as refused:
        Lock.acquire(run, extra={})
    assert (refused.value.reason, refused.value.path) == (Reason.OUT_UNUSABLE, "lock")


def _refused(run: RunFolder) -> tuple[Reason, str | None]:
    before = sorted(run.path.rglob("*"))
    with pytest.raises(Refusal) as refused:
        scan(run)
    assert sorted(run.path.rglob("*")) == before
    return refused.value.reason, refused.value.path


def test_what_was_left_is_sound(run: RunFolder) -> None:
    assert len(scan(run).open) == 1


def test_a_journal_that_was_rolled_back_under_its_attempts_is_damaged(run: RunFolder) -> None:
    lines = run.journal_path.read_bytes().splitlines(keepends=True)
    last = max(at for at, line in enumerate(lines) if b'"kind":"attempt.admitted"' in line)
    for note in run.checkpoints.iterdir():
        if int(note.stem) > last:
            note.unlink()
    run.journal_path.write_bytes(b"".join(lines[:last]))
    reason, path = _refused(run)
    assert reason is Reason.EVIDENCE_DAMAGED
    assert path is not None and path.startswith("trials/")


def test_a_further_attempt_of_a_known_trial_is_damage(run: RunFolder) -> None:
    trial = sorted(run.trials.iterdir())[0]
    (trial / "1").mkdir()
    assert _refused(run) == (Reason.EVIDENCE_DAMAGED, f"trials/{trial.name}/1")


@pytest.mark.parametrize("name", ["trials", "packs", "blobs", "checkpoints", "manifests", "scratch", "quarantine"])
def test_a_link_in_the_place_of_a_folder_is_refused_and_not_written_through(
    run: RunFolder, tmp_path: Path, name: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    if (run.path / name).is_dir():
        (run.path / name).rename(elsewhere)
    else:
        elsewhere.mkdir()
    (run.path / name).symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    assert _refused(run) == (Reason.EVIDENCE_DAMAGED, name)
    for write in (lambda: run.new_manifest({"verdict": "pending"}), lambda: run.write_atomic("summary.json", b"{}")):
        with pytest.raises(Refusal) as refused:
            write()
        assert (refused.value.reason, refused.value.path) == (Reason.EVIDENCE_DAMAGED, name)
    assert sorted(elsewhere.rglob("*")) == before


@pytest.mark.parametrize("below", ["trial", "attempt", "blobs"])
def test_a_link_below_is_refused(run: RunFolder, tmp_path: Path, below: str) -> None:
    trial = sorted(run.trials.iterdir())[0]
    place = {"trial": trial, "attempt": trial / "0", "blobs": run.blobs / "ab"}[below]
    if place.exists():
        place.rename(tmp_path / "elsewhere")
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(tmp_path / "elsewhere")
    assert _refused(run) == (Reason.EVIDENCE_DAMAGED, run.relative(place))


def test_a_pack_that_is_a_link_is_refused(run: RunFolder, tmp_path: Path) -> None:
    pack = sorted(run.packs.iterdir())[0]
    pack.rename(tmp_path / "elsewhere")
    pack.symlink_to(tmp_path / "elsewhere")
    assert _refused(run) == (Reason.EVIDENCE_DAMAGED, run.relative(pack))
    with pytest.raises(OSError, match="symbolic"):
        run.disk.open_append(pack)


def test_a_hole_of_any_size_after_the_last_line_is_a_torn_tail(run: RunFolder) -> None:
    sound = run.journal_path.stat().st_size
    entries = len(list(read_entries(run.journal_path)))
    with run.journal_path.open("ab") as file:
        file.write(b'{"body":')
        file.truncate(HUGE)
    assert len(list(read_entries(run.journal_path))) == entries
    assert "journal.lines" in verify(run.path, KEY.fingerprint).failed()
    found = scan(run)
    assert (found.offset, found.torn) == (sound, HUGE - sound)
    [item] = recovery.set_aside(run, found)
    assert run.journal_path.stat().st_size == sound
    assert (run.path / item["path"]).read_bytes().rstrip(b"\0") == b'{"body":'
    assert item["size"] < 2**20


def test_more_than_a_group_after_the_last_line_is_damage(run: RunFolder) -> None:
    with run.journal_path.open("r+b") as file:
        file.seek(MAX_UNFINISHED + 2**20, os.SEEK_END)
        file.write(b"x")
    assert _refused(run) == (Reason.EVIDENCE_DAMAGED, "journal.jsonl")
