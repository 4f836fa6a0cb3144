"""Folders as anchors: what is copied, what is never replaced, and what a push says that fails."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from anchor_parts import AT, admitted, checkpoint
from disks import FailingDisk, UnsyncedDisk
from journal_parts import KEY
from proctor.core.reasons import Reason
from proctor.core.tokens import seal_probe
from proctor.evidence.anchors import drop
from proctor.evidence.anchors.base import AnchorFailed
from proctor.evidence.anchors.drop import DropAnchor
from proctor.evidence.anchors.places import drop_place
from proctor.evidence.disk import Disk
from proctor_verify.elsewhere import Asked
from proctor_verify.notes import verifier_key
from proctor_verify.places import RunName, look_for


class NoLinks(UnsyncedDisk):
    """As on a file system without hard links."""

    def link(self, source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "no links here")


class Waiting(UnsyncedDisk):
    """A file system that does not answer while `answers` is not set."""

    def __init__(self) -> None:
        self.asked, self.answers = threading.Event(), threading.Event()

    def make_dir(self, path: Path) -> None:
        self.asked.set()
        assert self.answers.wait(60)
        super().make_dir(path)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "run"


def anchor(run: Path, disk: Disk | None = None) -> DropAnchor:
    return DropAnchor(drop_place("out", run.parent), admitted(run), disk=disk)


def failed(anchor: DropAnchor, run: Path, size: int = 1) -> AnchorFailed:
    with pytest.raises(AnchorFailed) as raised:
        anchor.push(checkpoint(run, size), AT)
    return raised.value


@pytest.mark.parametrize("disk", [Disk(), NoLinks()])
def test_each_checkpoint_is_copied_once(run: Path, disk: Disk) -> None:
    pushed = anchor(run, disk).push(checkpoint(run, 12), AT)
    data = checkpoint(run, 12).data
    path = "run-1/000000000012.note"
    assert pushed.snapshot == {"path": path, "sha256": checkpoint(run, 12).sha256, "size": len(data)}
    file = run.parent / "out" / path
    before = file.stat().st_mtime_ns
    assert anchor(run, disk).push(checkpoint(run, 12), AT) == pushed
    anchor(run, disk).push(checkpoint(run, 13), AT)
    assert (file.read_bytes(), file.stat().st_mtime_ns) == (data, before)
    assert sorted(each.name for each in file.parent.iterdir()) == ["000000000012.note", "000000000013.note"]


@pytest.mark.parametrize("what", ["other bytes", "more bytes", "a link", "a folder", "a pipe"])
def test_what_stands_in_its_place_is_never_replaced(run: Path, what: str) -> None:
    made, data = checkpoint(run, 1), checkpoint(run, 1).data
    file = run.parent / "out/run-1/000000000001.note"
    file.parent.mkdir()
    match what:
        case "other bytes" | "more bytes":
            file.write_bytes(data[:-1] if what == "other bytes" else data + b"\n" * 300_000)
        case "a link":
            (run.parent / "elsewhere").write_bytes(data)
            file.symlink_to(run.parent / "elsewhere")
        case "a folder":
            file.mkdir()
        case "a pipe":
            os.mkfifo(file)
    before = file.lstat()
    found = failed(anchor(run), run, made.size)
    assert (found.reason, found.is_final) == (Reason.ANCHOR_DIFFERS, True)
    assert file.lstat() == before


def test_whether_it_stands_there_is_looked_at_and_nothing_is_changed(run: Path) -> None:
    assert not anchor(run).stands(checkpoint(run, 12))
    assert list((run.parent / "out").iterdir()) == []
    anchor(run).push(checkpoint(run, 12), AT)
    assert anchor(run).stands(checkpoint(run, 12)) and not anchor(run).stands(checkpoint(run, 13))
    next((run.parent / "out").rglob("*.note")).write_bytes(b"another")
    with pytest.raises(AnchorFailed) as raised:
        anchor(run).stands(checkpoint(run, 12))
    assert raised.value.reason is Reason.ANCHOR_DIFFERS
    (run.parent / "out").rename(run.parent / "away")
    with pytest.raises(AnchorFailed) as raised:
        anchor(run).stands(checkpoint(run, 12))
    assert raised.value.reason is Reason.ANCHOR_UNREACHABLE


def test_a_folder_that_is_not_there_is_not_made(run: Path) -> None:
    (run.parent / "out").rmdir()
    assert failed(anchor(run), run).reason is Reason.ANCHOR_UNREACHABLE
    assert not (run.parent / "out").exists()
    place = anchor(run).place
    assert drop.look(place, seal_probe(5)) == f"{run.parent / 'out'} is not there"
    (run.parent / "out").write_text("a file")
    assert drop.look(place, seal_probe(5)) == f"{run.parent / 'out'} is no folder"
    assert failed(anchor(run), run).reason is Reason.ANCHOR_UNREACHABLE


@pytest.mark.parametrize("bare", [True, False])
def test_a_folder_that_a_verifier_would_take_for_a_repository_will_not_do(run: Path, bare: bool) -> None:
    place, folder = anchor(run).place, run.parent / "out"

    def taken_for() -> str:
        return look_for(Asked((str(folder),)), RunName("any", verifier_key(KEY.vkey))).places[0].kind

    for name in ("HEAD", "objects", "refs") if bare else (".git",):
        assert (drop.look(place, seal_probe(5)), taken_for()) == (None, "drop")
        (folder / name).mkdir()
    assert taken_for() == "git"
    assert "is a git repository" in str(drop.look(place, seal_probe(5)))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_folder_that_takes_nothing(run: Path, code: int) -> None:
    disk = FailingDisk(code)
    disk.fail_after = 1
    found = failed(anchor(run, disk), run)
    assert found.reason is (Reason.ANCHOR_UNREACHABLE if code == errno.EIO else Reason.ANCHOR_REJECTED)
    disk.fail_after = None
    anchor(run, disk).push(checkpoint(run, 1), AT)
    left = [each.name for each in (run.parent / "out/run-1").iterdir()]
    assert left == ["000000000001.note"], "nothing is left of what failed"


def test_a_folder_that_does_not_answer_is_left_alone(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drop, "DEADLINE_SEC", 0.01)
    disk = Waiting()
    assert failed(anchor(run, disk), run).reason is Reason.ANCHOR_UNREACHABLE
    monkeypatch.setattr(drop, "DEADLINE_SEC", 60.0)
    again = Waiting()
    waiting = anchor(run, again)
    faults: list[AnchorFailed] = []
    pushing = threading.Thread(target=lambda: faults.append(failed(waiting, run)))
    pushing.start()
    assert again.asked.wait(60)
    waiting.cancel()
    pushing.join(60)
    assert [each.reason for each in faults] == [Reason.ANCHOR_UNREACHABLE]
    assert failed(waiting, run).reason is Reason.ANCHOR_UNREACHABLE
    for each in (disk, again):
        each.answers.set()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(run: Path) -> None:
    (run.parent / "out").chmod(0o555)
    assert drop.look(anchor(run).place, seal_probe(5)) == "the folder may not be written"
    assert failed(anchor(run), run).reason is Reason.ANCHOR_REJECTED
