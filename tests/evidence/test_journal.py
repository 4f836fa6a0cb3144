"""The journal through its public seam: order, durability, refusals, and how it ends when the disk does not."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disks import FailingDisk, StuckDisk, UnsyncedDisk
from journal_parts import (
    KEY,
    RUN_ID,
    admitted,
    agent_started,
    attempt_admitted,
    attempt_ended,
    boundary,
    create,
    ended,
    reopen,
    resumed,
)
from proctor.core.canonical import encode
from proctor.core.clock import SystemClock
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence import notes
from proctor.evidence.entries import MAX_BODY_BYTES, MAX_LINE_BYTES, Chain, make_line
from proctor.evidence.fold import RunState
from proctor.evidence.journal import Journal
from proctor.evidence.kinds import Kind
from proctor.evidence.lock import Lock
from proctor.evidence.merkle import leaf_hash, root
from proctor.evidence.packs import MAX_REF_BYTES, Blob
from proctor.evidence.reader import read_blob, read_entries
from proctor.evidence.runfolder import RunFolder

ATTEMPT = attempt_admitted()["attempt"]


def _lines(run: RunFolder) -> list[bytes]:
    return run.journal_path.read_bytes().split(b"\n")[:-1]


def _checkpoint(run: RunFolder, size: int) -> notes.Checkpoint:
    note = notes.parse((run.checkpoints / f"{size:012d}.note").read_bytes())
    note.verify(KEY.verifier)
    return notes.Checkpoint.parse(note.text)


async def test_a_run_begins_with_its_admission_and_a_named_checkpoint(tmp_path: Path) -> None:
    run, journal = await create(tmp_path / "deep" / "run")
    assert run.is_admitted()
    assert (journal.run_id, journal.size) == (RUN_ID, 2)
    first, second = read_entries(run.journal_path)
    assert (first.kind, first.prev, first.body["run_id"]) == (Kind.RUN_ADMITTED, "0" * 64, RUN_ID)
    assert second.kind is Kind.CHECKPOINT_MADE
    assert (
        second.body["sha256"] == hashlib.sha256((tmp_path / "deep/run" / second.body["path"]).read_bytes()).hexdigest()
    )
    assert _checkpoint(run, 1).origin == f"proctor/run/{RUN_ID}"
    await journal.close(ended())


async def test_every_line_is_canonical_and_links_to_the_one_before(tmp_path: Path) -> None:
    run, journal = await create(tmp_path)
    await asyncio.gather(*(journal.append(Kind.ATTEMPT_BOUNDARY, boundary(ATTEMPT)) for _ in range(50)))
    await journal.close(ended())
    prev, mono = "0" * 64, 0
    for seq, line in enumerate(_lines(run)):
        entry = json.loads(line)
        assert encode(entry) == line
        assert (entry["seq"], entry["prev"]) == (seq, prev)
        assert entry["mono"] >= mono
        prev, mono = hashlib.sha256(line).hexdigest(), entry["mono"]
    assert (journal.size, journal.head) == (len(_lines(run)), prev)


async def test_the_last_checkpoint_covers_every_line_and_no_entry_names_it(tmp_path: Path) -> None:
    run, journal = await create(tmp_path)
    await journal.close(ended())
    lines = _lines(run)
    assert json.loads(lines[-1])["kind"] == "run.ended"
    head = _checkpoint(run, len(lines))
    assert head.root == root([leaf_hash(line) for line in lines])
    assert not run.reserve_path.exists()


async def test_a_run_is_admitted_once(tmp_path: Path) -> None:
    _, journal = await create(tmp_path)
    await journal.close(ended())
    with pytest.raises(Refusal) as refused:
        await create(tmp_path)
    assert refused.value.reason is Reason.RUN_EXISTS


async def test_a_journal_wants_the_lock_of_its_run(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    lock = Lock.acquire(RunFolder(tmp_path / "other"), extra={})
    run = RunFolder(tmp_path)
    for wrong in (lock, _released(run)):
        with pytest.raises(ValueError, match="lock"):
            first = (Kind.RUN_ADMITTED, admitted())
            await Journal.create(run, lock=wrong, key=KEY, run_id=RUN_ID, first=first)
    lock.release()
    assert not run.is_admitted()


def _released(run: RunFolder) -> Lock:
    lock = Lock.acquire(run, extra={})
    lock.release()
    return lock


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"attempt": ATTEMPT}, "boundary"),
        ({**boundary(ATTEMPT), "more": 1}, "more"),
        ({"attempt": ATTEMPT, "boundry": "env-ready"}, "boundry"),
    ],
)
async def test_a_body_has_exactly_the_fields_of_its_kind(tmp_path: Path, body: dict[str, Any], words: str) -> None:
    run, journal = await create(tmp_path)
    with pytest.raises(ValueError, match=words):
        await journal.append(Kind.ATTEMPT_BOUNDARY, body)
    assert journal.size == len(_lines(run)) == 2
    await journal.close(ended())


async def test_blobs_are_for_fields_that_are_blob_references(tmp_path: Path) -> None:
    _, journal = await create(tmp_path)
    with pytest.raises(ValueError, match="boundary"):
        await journal.append(Kind.ATTEMPT_BOUNDARY, {"attempt": ATTEMPT}, blobs={"boundary": b"x"})
    both = {**agent_started(ATTEMPT), "instruction": {}}
    with pytest.raises(ValueError, match="instruction"):
        await journal.append(Kind.AGENT_STARTED, both, blobs={"instruction": b"x"})
    await journal.close(ended())


async def test_what_has_no_canonical_form_is_refused_and_the_journal_goes_on(tmp_path: Path) -> None:
    _, journal = await create(tmp_path)
    for value in (float("nan"), 2**53, "\ud800", {1: 2}, b"bytes"):
        with pytest.raises(Refusal) as refused:
            await journal.append(Kind.RUN_DRAINING, {"cause": value})
        assert refused.value.reason is Reason.JSON_INVALID
    assert await journal.append(Kind.RUN_DRAINING, {"cause": "operator"}) == 2
    await journal.close(ended())


def test_the_largest_entry_fits_wherever_it_stands() -> None:
    most = 2**53 - 1
    chain = Chain()
    chain.head, chain.size = "f" * 64, most
    for kind in Kind:
        line = make_line(chain, "9999-12-31T23:59:59.999999Z", most, kind, b"x" * MAX_BODY_BYTES)
        assert MAX_LINE_BYTES - 20 <= len(line) <= MAX_LINE_BYTES
    ref = Blob("f" * 64, most, "999999999.pack", most, most, "gzip", "f" * 64)
    assert len(encode(ref.as_record())) == MAX_REF_BYTES


async def test_an_entry_that_is_too_large_is_refused_before_anything_relies_on_it(tmp_path: Path) -> None:
    run, journal = await create(tmp_path)
    room = MAX_BODY_BYTES - len(encode({"cause": ""}))
    with pytest.raises(Refusal) as refused:
        journal.post(Kind.RUN_DRAINING, {"cause": "x" * (room + 1)})
    assert refused.value.reason is Reason.ENTRY_TOO_LARGE
    assert journal.poisoned is None
    fitting = await journal.append(Kind.RUN_DRAINING, {"cause": "x" * room})
    assert len(_lines(run)[fitting]) <= MAX_LINE_BYTES
    await journal.close(ended())


async def test_an_entry_that_is_too_large_leaves_no_blob_and_no_gap(tmp_path: Path) -> None:
    run, journal = await create(tmp_path)
    large = {**agent_started(ATTEMPT), "settings": {"x": "y" * MAX_LINE_BYTES}}
    blobs = {"instruction": b"never named"}
    first, second, third = await asyncio.gather(
        journal.append(Kind.RUN_PAUSED, {}),
        journal.append(Kind.AGENT_STARTED, large, blobs=blobs),
        journal.append(Kind.AGENT_STARTED, agent_started(ATTEMPT), blobs={"instruction": b"named"}),
        return_exceptions=True,
    )
    assert (first, third) == (2, 3) and isinstance(second, Refusal)
    assert (run.packs / "0001.pack").read_bytes() == b"named"
    await journal.close(ended())
    assert len(list(read_entries(run.journal_path))) == journal.size


async def test_blobs_come_back_and_equal_content_is_kept_once(tmp_path: Path) -> None:
    run, journal = await create(tmp_path)
    contents = [b"", b"short", b"compressible " * 1000, b"short", bytes(range(256)) * 4097]
    for content in contents:
        await journal.append(Kind.AGENT_STARTED, agent_started(ATTEMPT), blobs={"instruction": content})
    await journal.close(ended())
    refs = [e.body["instruction"] for e in read_entries(run.journal_path) if e.kind is Kind.AGENT_STARTED]
    assert [read_blob(run, ref) for ref in refs] == contents
    assert refs[1] == refs[3]
    assert [ref.get("encoding") for ref in refs] == ["raw", "raw", "gzip", "raw", None]
    assert refs[4]["path"] == f"blobs/{refs[4]['blob'][:2]}/{refs[4]['blob']}"
    frames = [refs[0], refs[1], refs[2]]
    assert [ref["offset"] for ref in frames] == [0, 0, 5]
    assert (run.packs / "0001.pack").stat().st_size == refs[2]["offset"] + refs[2]["length"]


@settings(max_examples=30, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["append", "post", "turn"]), st.none() | st.integers(0, 3)), min_size=1, max_size=40
    )
)
def test_order_of_calls_is_order_of_entries_however_they_interleave(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int | None]]
) -> None:
    run, seqs, appended = asyncio.run(_interleave(tmp_path_factory.mktemp("run"), steps))
    entries = list(read_entries(run.journal_path))
    assert seqs == sorted(seqs)
    contents = [b"", b"a", b"b" * 500, b"c" * 70_000]
    for seq, (number, blob) in zip(seqs, appended, strict=True):
        if blob is None:
            assert entries[seq].body == {"cause": str(number)}
        else:
            assert entries[seq].body["timeout_sec"] == number
            assert read_blob(run, entries[seq].body["instruction"]) == contents[blob]


async def _interleave(
    path: Path, steps: list[tuple[str, int | None]]
) -> tuple[RunFolder, list[int], list[tuple[int, int | None]]]:
    run, journal = await create(path, disk=UnsyncedDisk())
    contents = [b"", b"a", b"b" * 500, b"c" * 70_000]
    waiting: list[asyncio.Future[int]] = []
    appended: list[tuple[int, int | None]] = []
    for number, (step, blob) in enumerate(steps):
        if step == "turn":
            await asyncio.sleep(0)
            continue
        kind, body = Kind.RUN_DRAINING, {"cause": str(number)}
        blobs = None
        if blob is not None:
            kind, body = Kind.AGENT_STARTED, {**agent_started(ATTEMPT), "timeout_sec": number}
            blobs = {"instruction": contents[blob]}
        if step == "append":
            seq = await journal.append(kind, body, blobs=blobs)
            done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            done.set_result(seq)
            waiting.append(done)
        else:
            waiting.append(journal.post(kind, body, blobs=blobs))
        appended.append((number, blob))
    seqs = list(await asyncio.gather(*waiting))
    await journal.close(ended())
    return run, seqs, appended


async def test_who_is_cancelled_does_not_take_the_entry_along(tmp_path: Path) -> None:
    run, journal = await create(tmp_path)
    waiting = asyncio.ensure_future(journal.append(Kind.RUN_PAUSED, {}))
    await asyncio.sleep(0)
    waiting.cancel()
    assert await journal.append(Kind.RUN_UNPAUSED, {}) == 3
    assert waiting.cancelled()
    await journal.close(ended())
    assert [e.kind for e in read_entries(run.journal_path)][2:4] == [Kind.RUN_PAUSED, Kind.RUN_UNPAUSED]


async def test_a_closed_journal_takes_nothing_and_lets_go_of_the_run(tmp_path: Path) -> None:
    run, journal = await create(tmp_path)
    await journal.close(ended())
    with pytest.raises(RuntimeError):
        journal.post(Kind.RUN_PAUSED, {})
    await journal.close(ended())
    Lock.acquire(run, extra={}).release()


async def test_close_writes_what_was_posted_before(tmp_path: Path) -> None:
    run, journal = await create(tmp_path)
    posted = [journal.post(Kind.RUN_PAUSED, {}) for _ in range(100)]
    await journal.close(ended())
    assert [future.result() for future in posted] == list(range(2, 102))
    assert [e.kind for e in read_entries(run.journal_path)][-1] is Kind.RUN_ENDED


async def test_a_cancelled_close_still_closes(tmp_path: Path) -> None:
    run, journal = await create(tmp_path)
    closing = asyncio.ensure_future(journal.close(ended()))
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert [e.kind for e in read_entries(run.journal_path)][-1] is Kind.RUN_ENDED
    Lock.acquire(run, extra={}).release()


async def test_a_cancelled_create_leaves_a_run_that_can_be_opened(tmp_path: Path) -> None:
    creating = asyncio.ensure_future(create(tmp_path))
    await asyncio.sleep(0)
    creating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creating
    _, journal = await reopen(tmp_path)
    await journal.close(ended())


async def test_run_ended_with_wrong_fields_does_not_close(tmp_path: Path) -> None:
    _, journal = await create(tmp_path)
    with pytest.raises(ValueError, match="exit_status"):
        await journal.close({"complete": True})
    await journal.append(Kind.RUN_PAUSED, {})
    await journal.close(ended())


class LeapingClock(SystemClock):
    leap_ns = 0

    def mono_ns(self) -> int:
        return super().mono_ns() + self.leap_ns


async def test_a_checkpoint_is_made_every_10000_entries_and_named(tmp_path: Path) -> None:
    run, journal = await create(tmp_path)
    for _ in range(21):
        await asyncio.gather(*(journal.append(Kind.RUN_PAUSED, {}) for _ in range(1000)))
    await journal.close(ended())
    named = [e.body["size"] for e in read_entries(run.journal_path) if e.kind is Kind.CHECKPOINT_MADE]
    assert named[0] == 1
    assert [round(size, -4) for size in named[1:]] == [10_000, 20_000]
    assert sorted(path.name for path in run.checkpoints.iterdir()) == [
        f"{size:012d}.note" for size in [*named, journal.size]
    ]
    lines = [leaf_hash(line) for line in _lines(run)]
    for size in named:
        assert _checkpoint(run, size).root == root(lines[:size])


async def test_behind_the_last_entry_no_checkpoint_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.evidence.writer.CHECKPOINT_ENTRIES", 5)
    run, journal = await create(tmp_path)
    for _ in range(4):
        await journal.append(Kind.RUN_PAUSED, {})
    await journal.close(ended())
    assert [e.kind for e in read_entries(run.journal_path)][-1] is Kind.RUN_ENDED
    assert _checkpoint(run, journal.size).size == len(_lines(run))


async def test_a_checkpoint_is_made_after_60_seconds_in_which_something_was_written(tmp_path: Path) -> None:
    clock = LeapingClock()
    run, journal = await create(tmp_path, clock=clock)
    clock.leap_ns += 100_000_000_000
    await journal.append(Kind.RUN_PAUSED, {})
    await journal.append(Kind.RUN_UNPAUSED, {})
    clock.leap_ns += 60_000_000_000
    await journal.append(Kind.RUN_PAUSED, {})
    await journal.close(ended())
    entries = list(read_entries(run.journal_path))
    assert [e.mono for e in entries] == sorted(e.mono for e in entries)
    kinds = [e.kind for e in entries][2:]
    paused = [Kind.RUN_PAUSED, Kind.RUN_UNPAUSED, Kind.CHECKPOINT_MADE, Kind.RUN_PAUSED, Kind.RUN_ENDED]
    assert kinds == paused


@pytest.mark.parametrize(
    ("code", "reason"),
    [(errno.ENOSPC, Reason.DISK_FULL), (errno.EDQUOT, Reason.DISK_FULL), (errno.EIO, Reason.WRITE_FAILED)],
)
async def test_a_failed_write_poisons_the_journal_for_all(tmp_path: Path, code: int, reason: Reason) -> None:
    disk = FailingDisk(code)
    _, journal = await create(tmp_path, disk=disk)
    disk.fail_after = 0
    waiting = [asyncio.ensure_future(journal.append(Kind.RUN_PAUSED, {})) for _ in range(3)]
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [getattr(outcome, "reason", None) for outcome in outcomes] == [reason] * 3
    disk.fail_after = None
    with pytest.raises(Refusal) as refused:
        journal.post(Kind.RUN_PAUSED, {})
    assert refused.value.reason is reason
    assert journal.poisoned is not None
    assert journal.size == 2
    await journal.close(None)


@pytest.mark.parametrize("steps", range(8))
async def test_after_a_failure_the_run_ends_on_the_record_with_all_that_was_acknowledged(
    tmp_path: Path, steps: int
) -> None:
    disk = FailingDisk()
    run, journal = await create(tmp_path, disk=disk)
    body = attempt_admitted()
    acknowledged = [await journal.append(Kind.ATTEMPT_ADMITTED, body)]
    run.write_atomic(f"{body['folder']}/agent/log.txt", b"partial")
    disk.fail_after = steps
    while journal.poisoned is None:
        content = bytes(len(acknowledged) + index for index in range(99))
        waiting = [
            journal.append(Kind.AGENT_STARTED, agent_started(ATTEMPT), blobs={"instruction": content}),
            journal.append(Kind.ATTEMPT_BOUNDARY, boundary(ATTEMPT)),
        ]
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        acknowledged += [outcome for outcome in outcomes if isinstance(outcome, int)]
    assert run.reserve_path.exists()
    disk.fail_after = None
    await journal.close(ended(exit_status=5, reason="disk_full"))
    entries = list(read_entries(run.journal_path))
    assert [entry.seq for entry in entries][: len(acknowledged) + 2] == [0, 1, *acknowledged]
    files, end, last = entries[-3:]
    assert files.body["files"][0]["path"] == "agent/log.txt"
    assert (end.body["outcome"], end.body["exception"]) == ("interrupted", "disk_full")
    assert (last.kind, last.body["exit_status"]) == (Kind.RUN_ENDED, 5)
    assert _checkpoint(run, len(entries)).root == root([leaf_hash(line) for line in _lines(run)])
    named = [read_blob(run, e.body["instruction"]) for e in entries if e.kind is Kind.AGENT_STARTED]
    pack = run.packs / "0001.pack"
    assert (pack.stat().st_size if pack.exists() else 0) == sum(
        e.body["instruction"]["length"] for e in entries if e.kind is Kind.AGENT_STARTED
    )
    assert len(named) == len([seq for seq in acknowledged if entries[seq].kind is Kind.AGENT_STARTED])
    _, again = await reopen(tmp_path)
    await again.close(ended())
    assert RunState.of(read_entries(run.journal_path)).open == {}


async def test_a_run_that_cannot_even_end_says_so_and_can_be_resumed(tmp_path: Path) -> None:
    disk = FailingDisk()
    run, journal = await create(tmp_path, disk=disk)
    await journal.append(Kind.RUN_PAUSED, {})
    disk.fail_after = 0
    with pytest.raises(Refusal):
        await journal.append(Kind.RUN_UNPAUSED, {})
    with pytest.raises(Refusal) as refused:
        await journal.close(ended())
    assert refused.value.reason is Reason.DISK_FULL
    _, again = await reopen(tmp_path)
    await again.close(ended())
    kinds = [e.kind for e in read_entries(run.journal_path)]
    assert kinds[2:5] == [Kind.RUN_PAUSED, Kind.RUN_RESUMED, Kind.RUN_RECOVERED]


async def test_a_post_that_nobody_waits_for_fails_without_noise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FailingDisk()
    _, journal = await create(tmp_path, disk=disk)
    disk.fail_after = 0
    journal.post(Kind.RUN_PAUSED, {})
    with pytest.raises(Refusal):
        await journal.append(Kind.RUN_PAUSED, {})
    disk.fail_after = None
    await journal.close(ended())
    assert caplog.records == []


async def test_wrong_fields_of_run_resumed_are_found_before_anything_is_mended(tmp_path: Path) -> None:
    run, journal = await create(tmp_path)
    await journal.close(None)
    with run.journal_path.open("ab") as file:
        file.write(b"torn")
    before = run.journal_path.read_bytes()
    lock = Lock.acquire(run, extra={})
    body = resumed()
    del body["manifest"]
    with pytest.raises(ValueError, match="manifest"):
        await Journal.reopen(run, lock=lock, key=KEY, resumed_body=body)
    lock.release()
    assert run.journal_path.read_bytes() == before


async def test_attempts_that_ended_are_not_ended_again_after_a_failure(tmp_path: Path) -> None:
    disk = FailingDisk()
    run, journal = await create(tmp_path, disk=disk)
    await journal.append(Kind.ATTEMPT_ADMITTED, attempt_admitted())
    await journal.append(Kind.ATTEMPT_ENDED, attempt_ended(ATTEMPT))
    disk.fail_after = 0
    with pytest.raises(Refusal):
        await journal.append(Kind.RUN_PAUSED, {})
    disk.fail_after = None
    await journal.close(ended())
    kinds = [e.kind for e in read_entries(run.journal_path)]
    assert kinds.count(Kind.ATTEMPT_ENDED) == 1


async def test_a_failed_journal_that_lost_a_durable_line_is_not_written_to(tmp_path: Path) -> None:
    disk = FailingDisk()
    run, journal = await create(tmp_path, disk=disk)
    await journal.append(Kind.RUN_PAUSED, {})
    disk.fail_after = 0
    with pytest.raises(Refusal):
        await journal.append(Kind.RUN_UNPAUSED, {})
    disk.fail_after = None
    os.truncate(run.journal_path, run.journal_path.read_bytes().index(b'"kind":"run.paused"'))
    with pytest.raises(Refusal) as refused:
        await journal.close(ended())
    assert refused.value.reason is Reason.EVIDENCE_DAMAGED
    assert b"run.ended" not in run.journal_path.read_bytes()


async def test_a_disk_that_does_not_answer_fails_every_waiter_and_keeps_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = StuckDisk()
    run, journal = await create(tmp_path, disk=disk)
    monkeypatch.setattr("proctor.evidence.journal.COMMIT_DEADLINE_SEC", 0.05)
    disk.answers.clear()
    for attempt in (journal.append(Kind.RUN_PAUSED, {}), journal.close(ended())):
        with pytest.raises(Refusal, match="does not answer") as refused:
            await attempt
        assert refused.value.reason is Reason.WRITE_FAILED
    # Its thread may still come to write.
    with pytest.raises(Refusal) as locked:
        Lock.acquire(run, extra={})
    assert locked.value.reason is Reason.RUN_LOCKED
    disk.answers.set()


async def test_a_disk_that_answers_late_still_lets_the_run_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = StuckDisk()
    run, journal = await create(tmp_path, disk=disk)
    with monkeypatch.context() as patch:
        patch.setattr("proctor.evidence.journal.COMMIT_DEADLINE_SEC", 0.05)
        disk.answers.clear()
        with pytest.raises(Refusal):
            await journal.append(Kind.RUN_PAUSED, {})
    disk.answers.set()
    await journal.close(ended(reason="write_failed"))
    kinds = [e.kind for e in read_entries(run.journal_path)]
    assert kinds[2:] == [Kind.RUN_PAUSED, Kind.RUN_ENDED]
