"""Receipts: what is written of a push, what is read of it, and what a run that is opened again does with them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anchor_parts import AT, Scripted, admitted
from journal_parts import RUN_ID, create, ended, reopen
from proctor.core.canonical import encode
from proctor.core.clock import SystemClock
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.anchors import receipts
from proctor.evidence.anchors.base import AnchorFailed, CheckpointFile
from proctor.evidence.anchors.drop import DropAnchor
from proctor.evidence.anchors.places import drop_place
from proctor.evidence.anchors.pushing import Patience, Pusher
from proctor.evidence.anchors.receipts import Receipt
from proctor.evidence.entries import Entry
from proctor.evidence.journal import Journal
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_entries
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.scan import scan

SOON = Patience(tries=3, first_sec=0.0, most_sec=0.0)


class Clocks(SystemClock):
    """Says what it is told to, and then the last of it."""

    def __init__(self, *times: str) -> None:
        self.times = list(times)

    def utc(self) -> str:
        return self.times.pop(0) if len(self.times) > 1 else self.times[0]


def newest(run: RunFolder, journal: Journal) -> CheckpointFile:
    assert journal.newest is not None
    return CheckpointFile.read(run, journal.run_id, journal.newest)


async def anchored(run: RunFolder, journal: Journal, *, named: bool = True) -> Receipt:
    """Push the newest checkpoint to a folder beside the run."""
    out = run.path.parent / "out"
    out.mkdir(exist_ok=True)
    token = admitted(run.path, RUN_ID)
    pusher = Pusher(run, DropAnchor(drop_place("out", out.parent), token), SystemClock(), receipts.standing(run))
    receipt = await pusher.keep(await pusher.push(newest(run, journal), SOON))
    if named:
        await journal.append(Kind.CHECKPOINT_ANCHORED, receipt.entry())
    return receipt


def entries(run: RunFolder, kind: Kind) -> list[Entry]:
    return [entry for entry in read_entries(run.journal_path) if entry.kind is kind]


async def test_a_receipt_is_read_as_it_was_written(tmp_path: Path) -> None:
    run, journal = await create(tmp_path / "run")
    receipt = await anchored(run, journal)
    assert receipts.standing(run) == [receipt]
    record = json.loads((run.path / receipt.file.path).read_bytes())
    assert record == {
        "format": 1,
        "anchor": "drop",
        "location": "out",
        "origin": f"proctor/run/{RUN_ID}",
        "size": 1,
        "sha256": newest(run, journal).sha256,
        "return_code": 0,
        "started": receipt.started,
        "ended": receipt.ended,
        "attempts": 1,
        "snapshot": receipt.snapshot,
    }
    assert (run.path / receipt.file.path).read_bytes() == encode(record)
    await journal.close(ended())
    assert [entry.body for entry in entries(run, Kind.CHECKPOINT_ANCHORED)] == [receipt.entry()]


async def test_receipts_that_no_entry_names_are_named_at_the_next_opening(tmp_path: Path) -> None:
    run, journal = await create(tmp_path / "run")
    unnamed = await anchored(run, journal, named=False)
    await journal.close(None)
    run, journal = await reopen(tmp_path / "run")
    assert [entry.body for entry in entries(run, Kind.CHECKPOINT_ANCHORED)] == [unnamed.entry()]
    assert journal.newest is None, "nothing of this opening is covered yet"
    await journal.checkpoint()
    await anchored(run, journal)
    await journal.close(ended())
    last = await anchored(run, journal, named=False)
    assert last.size == len(list(read_entries(run.journal_path)))
    assert scan(run).unanchored == [last.entry()]
    run, journal = await reopen(tmp_path / "run")
    named = entries(run, Kind.CHECKPOINT_ANCHORED)
    assert named[-1].body == last.entry() and len(named) == 3
    # after the entry that names its checkpoint
    made = [entry.seq for entry in entries(run, Kind.CHECKPOINT_MADE) if entry.body["size"] == last.size]
    assert made and made[0] < named[-1].seq
    await journal.close(ended())


Damage = Callable[[dict[str, Any]], Any]
DAMAGES: dict[str, Damage] = {
    "of another checkpoint": lambda record: {**record, "sha256": "0" * 64},
    "of another size": lambda record: {**record, "size": 2},
    "of another anchor": lambda record: {**record, "anchor": "git"},
    "of another run": lambda record: {**record, "origin": "proctor/run/other"},
    "of a push that failed": lambda record: {**record, "return_code": 1},
    "of another format": lambda record: {**record, "format": 2},
    "with a field too many": lambda record: {**record, "more": 1},
    "without a field": lambda record: {name: record[name] for name in record if name != "attempts"},
    "with a flag for a number": lambda record: {**record, "attempts": True},
    "with a time that is none": lambda record: {**record, "ended": "yesterday"},
    "longer than a receipt": lambda record: {**record, "location": "x" * 65_535},
    "no object": lambda record: [record],
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("named", [True, False])
async def test_a_damaged_receipt_refuses_a_resume(tmp_path: Path, damage: str, named: bool) -> None:
    run, journal = await create(tmp_path / "run")
    receipt = await anchored(run, journal, named=named)
    await journal.close(ended())
    file = run.path / receipt.file.path
    before = run.journal_path.read_bytes()
    file.write_bytes(encode(DAMAGES[damage](json.loads(file.read_bytes()))))
    with pytest.raises(Refusal) as raised:
        await reopen(run.path)
    assert (raised.value.reason, raised.value.path) == (Reason.EVIDENCE_DAMAGED, receipt.file.path)
    assert run.journal_path.read_bytes() == before


async def test_other_bytes_of_a_named_receipt_and_a_missing_one_refuse(tmp_path: Path) -> None:
    run, journal = await create(tmp_path / "run")
    file = run.path / (await anchored(run, journal)).file.path
    await journal.close(ended())
    whole = file.read_bytes()
    for data in (encode({**json.loads(whole), "attempts": 2}), whole + b"\n", b"{", b"{" * 300_000, None):
        if data is None:
            file.unlink()
        else:
            file.write_bytes(data)
        with pytest.raises(Refusal) as raised:
            scan(run)
        assert raised.value.reason is Reason.EVIDENCE_DAMAGED
    file.write_bytes(whole)
    assert scan(run).unanchored == []


async def test_a_push_is_tried_again_until_it_is_taken(tmp_path: Path) -> None:
    run, journal = await create(tmp_path / "run")
    anchor = Scripted(Reason.ANCHOR_UNREACHABLE, Reason.ANCHOR_REJECTED)
    taken = await Pusher(run, anchor, SystemClock(), []).push(newest(run, journal), SOON)
    assert taken.took.attempts == 3 and taken.took.started <= anchor.pushed[0][1] <= taken.took.ended
    await journal.close(ended())


async def test_a_push_that_fails_says_how_often_it_was_tried_and_what_differs_is_not(tmp_path: Path) -> None:
    run, journal = await create(tmp_path / "run")
    for faults, attempts in (([Reason.ANCHOR_REJECTED] * 9, 3), ([Reason.ANCHOR_DIFFERS] * 9, 1)):
        with pytest.raises(AnchorFailed) as raised:
            await Pusher(run, Scripted(*faults), SystemClock(), []).push(newest(run, journal), SOON)
        assert (raised.value.reason, raised.value.attempts, raised.value.return_code) == (faults[0], attempts, 7)
    await journal.close(ended())


async def test_times_of_receipts_never_fall_though_the_clock_does(tmp_path: Path) -> None:
    run, journal = await create(tmp_path / "run")
    early, late = "2026-01-01T00:00:00.000000Z", AT
    first = await anchored(run, journal)
    await journal.checkpoint()
    pusher = Pusher(run, Scripted(), Clocks(early), [first])
    second = await pusher.keep(await pusher.push(newest(run, journal), SOON))
    assert first.started <= first.ended == second.started == second.ended
    await journal.checkpoint()
    pusher = Pusher(run, Scripted(), Clocks("2999-01-01T00:00:00.000000Z", late), [first, second])
    third = await pusher.keep(await pusher.push(newest(run, journal), SOON))
    assert third.started == third.ended == "2999-01-01T00:00:00.000000Z"
    await journal.close(ended())


def test_waits_grow_and_stay_bounded() -> None:
    waits = [Patience(tries=8, first_sec=1.0, most_sec=30.0).waits() for _ in range(100)]
    most = [1, 2, 4, 8, 16, 30, 30]
    assert all(top / 2 <= wait <= top for drawn in waits for wait, top in zip(drawn, most, strict=True))
    assert len({drawn[0] for drawn in waits}) > 1
    assert Patience(tries=1).waits() == []


async def test_a_cancelled_push_is_over_when_its_caller_is_told(tmp_path: Path) -> None:
    run, journal = await create(tmp_path / "run")
    pushing = asyncio.create_task(
        Pusher(run, Scripted(*[Reason.ANCHOR_REJECTED] * 9), SystemClock(), []).push(
            newest(run, journal), Patience(tries=9, first_sec=600.0)
        )
    )
    await asyncio.sleep(0)
    pushing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pushing
    await journal.close(ended())
