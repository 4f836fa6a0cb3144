"""The disk gets full when a file of each kind is written: nothing acknowledged is lost, and how it ended is told."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from row_runs import acknowledged_in, check_acknowledged, hear, prepare, study
from small_disks import fill, mounted

from proctor.api import Exit, Refused, Run
from proctor.evidence import runfolder
from proctor.evidence.disk import Appender, Disk
from proctor.evidence.keys import config_dir, load_or_create
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_entries
from proctor.evidence.runfolder import RunFolder
from proctor.runner.anchor_run import anchor_run
from proctor_verify import verify

pytestmark = pytest.mark.real


@dataclass(frozen=True)
class Full:
    """When the disk gets full: at the `nth` write (from 1) to a file of the run whose path matches."""

    pattern: str
    nth: int = 1


# By what is written: drafts have a dot before the name and a mark behind it.
MOMENTS = {
    "the manifest": Full(r"manifests/\.0001\.json\..*"),
    "the manifest, at its verdict": Full(r"manifests/\.0001\.json\..*", 2),
    "the design": Full(r"\.design\.json\..*"),
    "entry 0": Full(r"\.journal\.jsonl\..*"),
    "the first checkpoint": Full(r"checkpoints/\.000000000001\.note\..*"),
    "the entry that names it": Full(r"journal\.jsonl"),
    "the first receipt": Full(r"checkpoints/\.0+1\.drop\.json\..*"),
    "the first frame": Full(r"packs/0001\.pack"),
    "a later frame": Full(r"packs/0001\.pack", 2),
    "an entry in the middle": Full(r"journal\.jsonl", 7),
    "a later entry": Full(r"journal\.jsonl", 11),
    "a summary": Full(r"\.grade_summary\.json\..*"),
    "the other summary": Full(r"\.summary\.json\..*"),
    "the last checkpoint": Full(r"checkpoints/\.0000000000[1-9][0-9]\.note\..*", 1),
    "the last receipt": Full(r"checkpoints/\.0000000000[1-9][0-9]\.drop\.json\..*"),
}


class FillingDisk(Disk):
    """Fills itself, really, before the write that was asked for; every later write finds it full, too."""

    def __init__(self, root: Path, full: Full) -> None:
        self.root, self.full = root, full
        self.filled = False
        self._met = 0

    def meet(self, path: Path) -> None:
        if self.filled or not re.fullmatch(self.full.pattern, path.relative_to(self.root / "run").as_posix()):
            return
        self._met += 1
        if self._met == self.full.nth:
            self.filled = True
            fill(self.root / "others")

    def open_append(self, path: Path, *, new: bool = False) -> Appender:
        opened = super().open_append(path, new=new)
        filling = FillingAppender(path, opened._descriptor, opened.size)
        filling.disk = self
        return filling


class FillingAppender(Appender):
    disk: FillingDisk

    def append(self, data: bytes) -> None:
        self.disk.meet(self.path)
        super().append(data)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path, "24m")


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_disk_that_gets_full(moment: str, small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("PROCTOR_RUNS", raising=False)
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    key, _ = load_or_create(config_dir(os.environ))
    path, log = small_disk / "run", list[tuple[Any, ...]]()
    disk = FillingDisk(small_disk, MOMENTS[moment])
    with monkeypatch.context() as patch:
        patch.setattr(runfolder, "Disk", lambda: disk)
        hear(patch, log)
        said = _told(path)
    assert disk.filled, "the moment never came"
    _check_the_end(path, said, key.fingerprint)
    if RunFolder(path).is_admitted():
        check_acknowledged(path, acknowledged_in(log))

    (small_disk / "others").unlink()
    run = _gone_on_with(path)
    assert run.complete
    report = verify(path, key.fingerprint)
    assert (report.exit_status, report.failed()) == (0, [])
    check_acknowledged(path, acknowledged_in(log))


def _told(path: Path) -> Run | Refused:
    """What whoever started the run is told."""
    try:
        return study().run(agree=True, out=path, jobs=1)
    except Refused as refused:
        return refused


def _check_the_end(path: Path, said: Run | Refused, key: str) -> None:
    if isinstance(said, Refused):
        assert said.reasons == ("disk_full",)
        return
    entries = list(read_entries(path / "journal.jsonl"))
    if entries[-1].kind is not Kind.RUN_ENDED:
        assert (said.exit, said.reason) == (Exit.INFRASTRUCTURE, "disk_full")
        return
    ended = entries[-1].body
    assert (ended["exit_status"], ended["reason"]) in ((5, "disk_full"), (0, None))
    assert (said.exit is not None and int(said.exit) == ended["exit_status"]) or said.reason == "disk_full"
    # Whatever the run could not write at its end, nothing that it did write is wrong.
    assert set(verify(path, key).failed()) <= {"anchors.covered", "anchors.required", "checkpoints.last"}


def _gone_on_with(path: Path) -> Run:
    if not RunFolder(path).is_admitted():
        return study().run(agree=True, out=path)
    try:
        return Run(path).resume(agree=True)
    except Refused as refused:
        assert refused.reasons == ("run_complete",)
    assert all(last.there for last in anchor_run(RunFolder(path)))
    return Run(path)
