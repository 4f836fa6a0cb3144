"""Power fails after any operation, and any part of what no sync covers is lost: what was acknowledged is there."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchor_parts import Scripted
from disks import LoggingDisk, UnsyncedDisk, World, materialise, replay
from journal_parts import agent_started, attempt_admitted, attempt_ended, boundary, create, ended, reopen
from proctor.core.clock import SystemClock
from proctor.evidence import packs
from proctor.evidence.anchors import receipts
from proctor.evidence.anchors.base import CheckpointFile
from proctor.evidence.anchors.pushing import Patience, Pusher
from proctor.evidence.disk import Disk
from proctor.evidence.entries import Entry
from proctor.evidence.fold import RunState
from proctor.evidence.journal import Journal
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_blob, read_entries
from proctor.evidence.runfolder import RunFolder


class LeapingClock(SystemClock):
    """Goes a minute ahead when told to."""

    leap_ns = 0

    def mono_ns(self) -> int:
        return super().mono_ns() + self.leap_ns


@dataclass
class Recorded:
    root: Path
    log: list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """A run that is opened three times and meets everything that writes; acknowledgements are marks in the log."""
    root = tmp_path_factory.mktemp("recorded")
    disk = LoggingDisk()
    disk.log.append(("sync_dir", root))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packs, "MAX_FRAME_CONTENT", 4096)
        asyncio.run(_record(root / "run", disk))
    yield Recorded(root, disk.log)


async def _record(path: Path, disk: LoggingDisk) -> None:
    clock = LeapingClock()
    run, journal = await create(path, disk=disk, clock=clock)

    async def acknowledged(kind: Kind, body: dict[str, Any], blobs: dict[str, bytes] | None = None) -> None:
        disk.log.append(("acknowledged", await journal.append(kind, body, blobs=blobs), kind, body, blobs))

    disk.log.append(("acknowledged", 0, Kind.RUN_ADMITTED, None, None))
    first = attempt_admitted("first")
    await acknowledged(Kind.ATTEMPT_ADMITTED, first)
    small, large = {"instruction": b"do it " * 50}, {"instruction": bytes(range(256)) * 17}
    await asyncio.gather(
        *(acknowledged(Kind.ATTEMPT_BOUNDARY, boundary(first["attempt"])) for _ in range(12)),
        acknowledged(Kind.AGENT_STARTED, agent_started(first["attempt"]), small),
    )
    clock.leap_ns += 61_000_000_000
    await acknowledged(Kind.AGENT_STARTED, agent_started(first["attempt"]), large)
    file = run.write_atomic(f"{first['folder']}/attempt.json", b"{}")
    files = [{**file.as_record(), "path": "attempt.json", "role": "derived"}]
    await acknowledged(Kind.ATTEMPT_FILES, {"attempt": first["attempt"], "files": files})
    await acknowledged(Kind.ATTEMPT_ENDED, attempt_ended(first["attempt"]))
    await anchored(run, journal, acknowledged)
    await journal.close(ended())
    await anchored(run, journal, None)
    run, journal = await reopen(path, disk=disk)
    second = attempt_admitted("second")
    await acknowledged(Kind.ATTEMPT_ADMITTED, second)
    await acknowledged(Kind.AGENT_STARTED, agent_started(second["attempt"]), {"instruction": b"\x00\xff"})
    run.write_atomic(f"{second['folder']}/agent/log.txt", b"said something")
    await journal.checkpoint()
    await anchored(run, journal, None)
    await journal.close(None)
    run, journal = await reopen(path, disk=disk)
    await acknowledged(Kind.RUN_PAUSED, {})
    await journal.close(ended())


async def anchored(run: RunFolder, journal: Journal, acknowledged: Callable[..., Awaitable[None]] | None) -> None:
    """Take the newest checkpoint for one that stands elsewhere: its receipt is kept, and named where that is said."""
    assert journal.newest is not None
    pusher = Pusher(run, Scripted(), SystemClock(), receipts.standing(run))
    taken = await pusher.push(CheckpointFile.read(run, journal.run_id, journal.newest), Patience(tries=1))
    receipt = await pusher.keep(taken)
    if acknowledged is not None:
        await acknowledged(Kind.CHECKPOINT_ANCHORED, receipt.entry())


def _crash_and_check(recorded: Recorded, cut: int, choose: Callable[[int], int]) -> None:
    log = recorded.log[:cut]
    with tempfile.TemporaryDirectory() as target:
        materialise(replay(log), recorded.root, Path(target), choose)
        _check_after_reopening(Path(target) / "run", _acknowledged(log))


def _crash_twice_and_check(recorded: Recorded, cut: int, *, again: int | None, choose: Callable[[int], int]) -> int:
    """Half of what is unsynced is lost, then the mending dies after `again` operations; returns how many it has."""
    log = recorded.log[:cut]
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        materialise(replay(log), recorded.root, Path(first), lambda most: (most + 1) // 2)
        if not RunFolder(Path(first) / "run").is_admitted():
            return 0
        before = World.standing(Path(first))
        disk = LoggingDisk()
        asyncio.run(_reopened(Path(first) / "run", disk))
        operations = len(disk.log)
        materialise(replay(disk.log[:again], before), Path(first), Path(second), choose)
        _check_after_reopening(Path(second) / "run", _acknowledged(log))
        return operations


def _acknowledged(log: list[tuple[Any, ...]]) -> list[list[Any]]:
    return [rest for operation, *rest in log if operation == "acknowledged"]


def _check_after_reopening(path: Path, acknowledged: list[list[Any]]) -> None:
    if not RunFolder(path).is_admitted():
        assert acknowledged == []
        return
    _check(path, acknowledged, asyncio.run(_reopened(path, UnsyncedDisk())))


async def _reopened(path: Path, disk: Disk) -> list[Entry]:
    run, journal = await reopen(path, disk=disk)
    assert journal.poisoned is None
    await journal.close(ended())
    return list(read_entries(run.journal_path))


def _check(path: Path, acknowledged: list[list[Any]], entries: list[Entry]) -> None:
    for seq, kind, body, blobs in acknowledged:
        assert entries[seq].kind is kind
        for name, content in (blobs or {}).items():
            assert read_blob(RunFolder(path), entries[seq].body[name]) == content
        if body is not None:
            assert {name: entries[seq].body[name] for name in body} == body
    state = RunState.of(entries)
    assert state.open == {}
    assert state.ended is not None
    _check_every_byte_is_named(path, entries)


def _check_every_byte_is_named(path: Path, entries: list[Entry]) -> None:
    named: dict[str, int] = {}
    folders: dict[str, str] = {}
    for entry in entries:
        ref = entry.body.get("instruction")
        if ref is not None:
            name = ref["path"] if "path" in ref else f"packs/{ref['pack']}"
            named[name] = max(named.get(name, 0), ref.get("offset", 0) + ref.get("length", ref["size"]))
        if entry.kind is Kind.ATTEMPT_ADMITTED:
            folders[entry.body["attempt"]] = entry.body["folder"]
        for file in [*entry.body.get("files", []), *entry.body.get("quarantined", [])]:
            below = f"{folders[entry.body['attempt']]}/" if "attempt" in entry.body else ""
            named[below + file["path"]] = file["size"]
        if entry.kind is Kind.CHECKPOINT_MADE:
            named[entry.body["path"]] = (path / entry.body["path"]).stat().st_size
        if entry.kind is Kind.CHECKPOINT_ANCHORED:
            assert entry.body["path"] not in named, "a receipt is named once"
            assert entry.body["path"].replace(".drop.json", ".note") in named, "after its checkpoint"
            named[entry.body["path"]] = (path / entry.body["path"]).stat().st_size
    last = f"checkpoints/{len(entries):012d}.note"
    named[last] = (path / last).stat().st_size
    stands = {p.relative_to(path).as_posix(): p.stat().st_size for p in path.rglob("*") if p.is_file()}
    shown = {name: size for name, size in stands.items() if name in named or not Path(name).name.startswith(".")}
    del shown["journal.jsonl"], shown["lock"]
    assert shown == named


def test_at_every_point_with_all_or_nothing_unsynced_lost(recorded: Recorded) -> None:
    for cut in range(1, len(recorded.log) + 1):
        for choose in (lambda most: 0, lambda most: most):
            _crash_and_check(recorded, cut, choose)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_at_any_point_with_any_part_of_what_is_unsynced_lost(recorded: Recorded, data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(recorded.log)), label="operations done")
    _crash_and_check(recorded, cut, lambda most: data.draw(st.integers(0, most)))


def test_mending_may_die_at_every_point(recorded: Recorded) -> None:
    # Where a frame of a pack, then a line of the journal, is written in half.
    for name in ("0001.pack", "journal.jsonl"):
        appends = [at for at, step in enumerate(recorded.log) if step[0] == "append" and step[1].name == name]
        cut = appends[-1] + 1
        operations = _crash_twice_and_check(recorded, cut, again=None, choose=lambda most: most)
        for again in range(operations):
            for choose in (lambda most: 0, lambda most: most):
                _crash_twice_and_check(recorded, cut, again=again, choose=choose)
