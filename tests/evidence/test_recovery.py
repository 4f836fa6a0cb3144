"""Opening a run again: what a dead process leaves is mended and said; anything else refuses and changes nothing."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from journal_parts import (
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
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.entries import Entry
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_blob, read_entries
from proctor.evidence.runfolder import RunFolder

ADMITTED = attempt_admitted()
ATTEMPT = ADMITTED["attempt"]
LARGE = bytes(range(256)) * 4097


async def _some_run(path: Path, *, end: bool = True) -> RunFolder:
    run, journal = await create(path)
    await journal.append(Kind.ATTEMPT_ADMITTED, ADMITTED)
    for content in (b"small", LARGE):
        await journal.append(Kind.AGENT_STARTED, agent_started(ATTEMPT), blobs={"instruction": content})
    if end:
        await journal.append(Kind.ATTEMPT_ENDED, attempt_ended(ATTEMPT))
    await journal.close(ended() if end else None)
    return run


async def _reopened(path: Path) -> list[Entry]:
    run, journal = await reopen(path)
    await journal.close(ended())
    return list(read_entries(run.journal_path))


def _tree(path: Path) -> dict[str, bytes]:
    return {
        file.relative_to(path).as_posix(): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and file.name != "lock"
    }


async def _refused(path: Path) -> Refusal:
    before = _tree(path)
    with pytest.raises(Refusal) as refused:
        await reopen(path)
    assert _tree(path) == before
    return refused.value


async def test_a_run_that_ended_goes_on_with_an_opening_and_nothing_to_recover(tmp_path: Path) -> None:
    run = await _some_run(tmp_path)
    whole = len(list(read_entries(run.journal_path)))
    entries = await _reopened(tmp_path)
    assert [entry.kind for entry in entries[whole:]] == [Kind.RUN_RESUMED, Kind.CHECKPOINT_MADE, Kind.RUN_ENDED]
    assert entries[whole].body == {**resumed(), "previous_ended": True}
    assert entries[whole + 1].body["size"] == whole
    assert entries[whole].mono < entries[whole + 1].mono


@pytest.mark.parametrize(
    "tail",
    [
        b"{",
        b'{"body":{"cause":"caf\xc3',
        b"\x00" * 4096,
        b"\xff" * 100_000,
        b'{"body":{},"kind":"run.paused","mono":1,"prev":"","seq":9,"time":""}',
    ],
    ids=["brace", "inside a character", "zeros", "longer than a line", "whole but for its newline"],
)
async def test_an_unfinished_last_line_is_set_aside_and_named(tmp_path: Path, tail: bytes) -> None:
    run = await _some_run(tmp_path)
    whole = run.journal_path.read_bytes()
    with run.journal_path.open("ab") as file:
        file.write(tail)
    assert len(list(read_entries(run.journal_path))) == whole.count(b"\n")
    entries = await _reopened(tmp_path)
    assert run.journal_path.read_bytes().startswith(whole + b'{"body":')
    recovered = next(entry for entry in entries if entry.kind is Kind.RUN_RECOVERED)
    assert recovered.body == {
        "quarantined": [
            {
                "path": "quarantine/0001/journal.jsonl",
                "sha256": hashlib.sha256(tail).hexdigest(),
                "size": len(tail),
                "source": "journal.jsonl",
            }
        ],
        "lost": [],
    }
    assert (tmp_path / "quarantine/0001/journal.jsonl").read_bytes() == tail


async def test_a_group_with_a_block_that_never_reached_the_disk_is_set_aside(tmp_path: Path) -> None:
    run, journal = await create(tmp_path)
    await journal.close(None)
    durable = run.journal_path.stat().st_size
    run, journal = await reopen(tmp_path)
    await asyncio.gather(*(journal.append(Kind.RUN_PAUSED, {}) for _ in range(20)))
    # The process dies here: its lock goes, its bytes stay.
    journal._lock.release()
    lost = bytearray(run.journal_path.read_bytes())
    hole = (durable // 512 + 3) * 512
    lost[hole : hole + 512] = bytes(512)
    run.journal_path.write_bytes(lost)
    entries = await _reopened(tmp_path)
    assert Kind.RUN_RECOVERED in [entry.kind for entry in entries]
    assert (tmp_path / "quarantine/0001/journal.jsonl").stat().st_size > 0


async def test_a_byte_set_to_zero_is_damage_and_no_unfinished_group(tmp_path: Path) -> None:
    run = await _some_run(tmp_path, end=False)
    for path in run.checkpoints.iterdir():
        path.unlink()
    content = bytearray(run.journal_path.read_bytes())
    content[-100] = 0
    run.journal_path.write_bytes(content)
    refusal = await _refused(tmp_path)
    assert refusal.reason is Reason.EVIDENCE_DAMAGED
    assert refusal.path == f"journal.jsonl:{content.count(10)}"


async def test_ends_of_packs_and_blobs_that_no_entry_names_are_set_aside(tmp_path: Path) -> None:
    run = await _some_run(tmp_path)
    with (run.packs / "0001.pack").open("ab") as file:
        file.write(b"frame")
    (run.packs / "0002.pack").write_bytes(b"other")
    (run.packs / "0003.pack").write_bytes(b"")
    unnamed = run.blobs / "ab" / ("ab" + "0" * 62)
    unnamed.parent.mkdir()
    unnamed.write_bytes(b"blob")
    (run.blobs / "ab" / ".draft").write_bytes(b"half")
    os.mkfifo(run.packs / "0004.pack")
    entries = await _reopened(tmp_path)
    recovered = next(entry for entry in entries if entry.kind is Kind.RUN_RECOVERED)
    sizes = {item["source"]: item["size"] for item in recovered.body["quarantined"]}
    blob = f"blobs/ab/{unnamed.name}"
    assert sizes == {"packs/0001.pack": 5, "packs/0002.pack": 5, "packs/0003.pack": 0, blob: 4}
    assert (run.packs / "0001.pack").read_bytes() == b"small"
    assert sorted(path.name for path in run.packs.iterdir()) == ["0001.pack", "0004.pack"]
    assert list((run.blobs / "ab").iterdir()) == []
    assert (tmp_path / "quarantine/0001" / blob).read_bytes() == b"blob"
    contents = [read_blob(run, e.body["instruction"]) for e in entries if e.kind is Kind.AGENT_STARTED]
    assert contents == [b"small", LARGE]


async def test_what_an_earlier_recovery_set_aside_without_a_word_is_named_by_the_next(tmp_path: Path) -> None:
    await _some_run(tmp_path)
    silent = tmp_path / "quarantine/0003/packs/0007.pack"
    silent.parent.mkdir(parents=True)
    silent.write_bytes(b"set aside")
    entries = await _reopened(tmp_path)
    again = await _reopened(tmp_path)
    recovered = next(entry for entry in entries if entry.kind is Kind.RUN_RECOVERED)
    assert [item["source"] for item in recovered.body["quarantined"]] == ["packs/0007.pack"]
    assert [entry.kind for entry in again].count(Kind.RUN_RECOVERED) == 1


async def test_attempts_in_flight_end_as_lost_with_the_files_that_stand(tmp_path: Path) -> None:
    run, journal = await create(tmp_path)
    await journal.append(Kind.ATTEMPT_ADMITTED, ADMITTED)
    folder = tmp_path / ADMITTED["folder"]
    named = run.write_atomic(f"{ADMITTED['folder']}/agent/named.txt", b"named")
    files = [{**named.as_record(), "path": "agent/named.txt", "role": "source"}]
    await journal.append(Kind.ATTEMPT_FILES, {"attempt": ATTEMPT, "files": files})
    (folder / "agent/é.txt").write_bytes(b"unnamed")
    (folder / "outside").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe")
    (folder / os.fsdecode(b"not \xff text")).write_bytes(b"")
    for number in range(800):
        (folder / f"{number:0150}.log").write_bytes(b"")
    await journal.close(None)
    entries = await _reopened(tmp_path)
    recovered = next(index for index, entry in enumerate(entries) if entry.kind is Kind.RUN_RECOVERED)
    assert entries[recovered - 1].body["previous_ended"] is False
    assert entries[recovered].body == {"quarantined": [], "lost": [ATTEMPT]}
    end = next(index for index, entry in enumerate(entries) if entry.kind is Kind.ATTEMPT_ENDED)
    assert entries[end].body == attempt_ended(ATTEMPT, "lost", "lost")
    groups = [entry.body["files"] for entry in entries[recovered + 1 : end]]
    assert len(groups) > 1
    listed = {file.pop("path"): file for group in groups for file in group}
    assert listed["agent/é.txt"] == {"sha256": hashlib.sha256(b"unnamed").hexdigest(), "size": 7, "role": "partial"}
    assert len(listed) == 801


async def test_what_was_derived_for_another_end_is_partial_under_the_digest_that_was_named(tmp_path: Path) -> None:
    run, journal = await create(tmp_path)
    await journal.append(Kind.ATTEMPT_ADMITTED, ADMITTED)
    named = run.write_atomic(f"{ADMITTED['folder']}/attempt.json", b"{}")
    record = {**named.as_record(), "path": "attempt.json", "role": "derived"}
    await journal.append(Kind.ATTEMPT_FILES, {"attempt": ATTEMPT, "files": [record]})
    (run.path / named.path).write_bytes(b"altered")
    await journal.close(None)
    last = [entry.body for entry in await _reopened(tmp_path) if entry.kind is Kind.ATTEMPT_FILES][-1]
    assert last["files"] == [{**record, "role": "partial"}]


async def test_a_checkpoint_whose_entry_was_lost_is_named_by_the_next_opening(tmp_path: Path) -> None:
    run = await _some_run(tmp_path, end=False)
    entries = await _reopened(tmp_path)
    named = {entry.body["path"] for entry in entries if entry.kind is Kind.CHECKPOINT_MADE}
    standing = {run.relative(path) for path in run.checkpoints.iterdir()}
    assert standing - named == {f"checkpoints/{len(entries):012d}.note"}


def _entry(line: bytes, **changes: Any) -> bytes:
    return encode({**json.loads(line), **changes})


def _flip(lines: list[bytes]) -> None:
    lines[3] = lines[3].replace(b"seq", b"sEq")


def _relink(lines: list[bytes], start: int) -> None:
    for seq in range(start, len(lines)):
        lines[seq] = _entry(lines[seq], seq=seq, prev=hashlib.sha256(lines[seq - 1]).hexdigest() if seq else "0" * 64)


def _change(line: int, **changes: Any) -> Callable[[list[bytes]], None]:
    def change(lines: list[bytes]) -> None:
        lines[line] = _entry(lines[line], **changes)
        _relink(lines, line + 1)

    return change


def _body(line: int, **changes: Any) -> Callable[[list[bytes]], None]:
    def change(lines: list[bytes]) -> None:
        _change(line, body={**json.loads(lines[line])["body"], **changes})(lines)

    return change


DAMAGE: dict[str, tuple[Callable[[list[bytes]], None], Reason, int]] = {
    "a flipped byte": (_flip, Reason.EVIDENCE_DAMAGED, 4),
    "a dropped line": (lambda lines: lines.pop(3) and None, Reason.EVIDENCE_DAMAGED, 4),
    "a doubled line": (lambda lines: lines.insert(3, lines[3]), Reason.EVIDENCE_DAMAGED, 5),
    "swapped lines": (lambda lines: lines.insert(3, lines.pop(4)), Reason.EVIDENCE_DAMAGED, 4),
    "an empty line": (lambda lines: lines.insert(3, b""), Reason.EVIDENCE_DAMAGED, 4),
    "white space": (lambda lines: lines.__setitem__(3, lines[3].replace(b":", b": ", 1)), Reason.EVIDENCE_DAMAGED, 4),
    "a key twice": (lambda lines: lines.__setitem__(3, b'{"seq":3,' + lines[3][1:]), Reason.EVIDENCE_DAMAGED, 4),
    "a line too long": (lambda lines: lines.__setitem__(3, b'"' + b"x" * 3_000_000), Reason.EVIDENCE_DAMAGED, 4),
    "no last newline but garbage in between": (
        lambda lines: lines.__setitem__(3, b"\x00garbage"),
        Reason.EVIDENCE_DAMAGED,
        4,
    ),
    "deep nesting": (lambda lines: lines.__setitem__(3, b"[" * 60_000), Reason.EVIDENCE_DAMAGED, 4),
    "an unknown kind": (_change(3, kind="agent.danced"), Reason.FORMAT_UNKNOWN, 4),
    "seq as a float": (_change(3, seq=3.5), Reason.EVIDENCE_DAMAGED, 4),
    "seq as true": (_change(1, seq=True), Reason.EVIDENCE_DAMAGED, 2),
    "a body that is a list": (_change(3, body=[]), Reason.EVIDENCE_DAMAGED, 4),
    "a negative mono": (_change(3, mono=-1), Reason.EVIDENCE_DAMAGED, 4),
    "a time that is none": (_change(3, time="yesterday"), Reason.EVIDENCE_DAMAGED, 4),
    "a second run.admitted": (
        lambda lines: _change(2, kind="run.admitted", body=json.loads(lines[0])["body"])(lines),
        Reason.EVIDENCE_DAMAGED,
        3,
    ),
    "another format": (_body(0, format=2), Reason.FORMAT_UNKNOWN, 1),
    "format as true": (_body(0, format=True), Reason.FORMAT_UNKNOWN, 1),
    "a folder outside": (_body(2, folder="trials/../../etc"), Reason.EVIDENCE_DAMAGED, 3),
    "a folder that is a number": (_body(2, folder=3), Reason.EVIDENCE_DAMAGED, 3),
    "an end of nothing": (_body(5, attempt="none/0"), Reason.EVIDENCE_DAMAGED, 6),
    "a blob reference outside": (
        _body(4, instruction={"blob": "0" * 64, "size": 1, "path": "../../etc/passwd"}),
        Reason.EVIDENCE_DAMAGED,
        5,
    ),
    "a field of a body too many": (_body(3, more=1), Reason.EVIDENCE_DAMAGED, 4),
    "a field of a body missing": (_change(3, body={}), Reason.EVIDENCE_DAMAGED, 4),
}


@pytest.mark.parametrize("name", DAMAGE)
async def test_damage_refuses_names_the_line_and_changes_nothing(tmp_path: Path, name: str) -> None:
    run = await _some_run(tmp_path)
    for path in run.checkpoints.iterdir():
        path.unlink()
    lines = run.journal_path.read_bytes().split(b"\n")[:-1]
    lines[1] = _entry(lines[1], kind="run.paused", body={})
    _relink(lines, 2)
    change, reason, line = DAMAGE[name]
    change(lines)
    run.journal_path.write_bytes(b"\n".join(lines) + b"\n")
    refusal = await _refused(tmp_path)
    assert (refusal.reason, refusal.path) == (reason, f"journal.jsonl:{line}")


async def test_the_undamaged_run_of_these_tests_opens(tmp_path: Path) -> None:
    run = await _some_run(tmp_path)
    for path in run.checkpoints.iterdir():
        path.unlink()
    lines = run.journal_path.read_bytes().split(b"\n")[:-1]
    lines[1] = _entry(lines[1], kind="run.paused", body={})
    _relink(lines, 2)
    run.journal_path.write_bytes(b"\n".join(lines) + b"\n")
    assert (await _reopened(tmp_path))[-1].kind is Kind.RUN_ENDED


def _cut_journal(run: RunFolder) -> str:
    lines = run.journal_path.read_bytes().split(b"\n")
    run.journal_path.write_bytes(b"\n".join(lines[:-2]) + b"\n")
    return f"checkpoints/{len(lines) - 1:012d}.note"


def _cut_journal_inside_a_line(run: RunFolder) -> str:
    covered = run.journal_path.read_bytes().count(b"\n")
    os.truncate(run.journal_path, run.journal_path.stat().st_size - 5)
    return f"checkpoints/{covered:012d}.note"


def _write_anew(run: RunFolder) -> str:
    lines = run.journal_path.read_bytes().split(b"\n")[:-1]
    _change(len(lines) - 1, time="2000-01-01T00:00:00.000000Z")(lines)
    run.journal_path.write_bytes(b"\n".join(lines) + b"\n")
    return f"checkpoints/{len(lines):012d}.note"


def _remove_checkpoint(run: RunFolder) -> str:
    (run.checkpoints / "000000000001.note").unlink()
    return "checkpoints/000000000001.note"


def _garble_checkpoint(run: RunFolder) -> str:
    (run.checkpoints / "000000000001.note").write_bytes(b"\x00")
    return "checkpoints/000000000001.note"


def _swap_checkpoints(run: RunFolder) -> str:
    last = max(run.checkpoints.iterdir())
    last.replace(run.checkpoints / "000000000001.note")
    return "checkpoints/000000000001.note"


def _rename_last_checkpoint(run: RunFolder) -> str:
    max(run.checkpoints.iterdir()).replace(run.checkpoints / "000000000005.note")
    return "checkpoints/000000000005.note"


def _cut_pack(run: RunFolder) -> str:
    os.truncate(run.packs / "0001.pack", 2)
    return "packs/0001.pack"


def _remove_pack(run: RunFolder) -> str:
    (run.packs / "0001.pack").unlink()
    return "packs/0001.pack"


def _remove_blob(run: RunFolder) -> str:
    [blob] = [path for path in run.blobs.rglob("*") if path.is_file()]
    blob.unlink()
    return run.relative(blob)


@pytest.mark.parametrize(
    "damage",
    [
        _cut_journal,
        _cut_journal_inside_a_line,
        _write_anew,
        _remove_checkpoint,
        _garble_checkpoint,
        _swap_checkpoints,
        _rename_last_checkpoint,
        _cut_pack,
        _remove_pack,
        _remove_blob,
    ],
)
async def test_files_that_do_not_fit_the_journal_refuse(tmp_path: Path, damage: Callable[[RunFolder], str]) -> None:
    run = await _some_run(tmp_path)
    where = damage(run)
    refusal = await _refused(tmp_path)
    assert (refusal.reason, refusal.path) == (Reason.EVIDENCE_DAMAGED, where)


@pytest.mark.parametrize("name", ["journal.jsonl", "checkpoints/000000000001.note"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("elsewhere")])
async def test_what_is_no_regular_file_is_not_opened(tmp_path: Path, name: str, make: Callable[[Path], None]) -> None:
    await _some_run(tmp_path)
    (tmp_path / name).replace(tmp_path / "elsewhere")
    make(tmp_path / name)
    with pytest.raises(Refusal) as refused:
        await reopen(tmp_path)
    assert refused.value.reason in (Reason.RUN_NOT_FOUND, Reason.EVIDENCE_UNREADABLE)


async def test_a_journal_without_a_whole_line_refuses(tmp_path: Path) -> None:
    run = await _some_run(tmp_path)
    shutil.rmtree(run.checkpoints)
    run.journal_path.write_bytes(run.journal_path.read_bytes()[:100])
    assert (await _refused(tmp_path)).path == "journal.jsonl:1"


async def test_a_folder_without_a_journal_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        await reopen(tmp_path)
    assert refused.value.reason is Reason.RUN_NOT_FOUND


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole")
    asyncio.run(_some_run(path))
    return path


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_changed_byte_of_a_covered_journal_refuses(
    data: st.DataObject, whole: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("changed") / "run"
    shutil.copytree(whole, path)
    content = bytearray((path / "journal.jsonl").read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    (path / "journal.jsonl").write_bytes(content)
    refusal = asyncio.run(_refused(path))
    assert refusal.reason in (Reason.EVIDENCE_DAMAGED, Reason.FORMAT_UNKNOWN)


async def test_going_on_after_a_boundary_numbers_and_links_without_a_gap(tmp_path: Path) -> None:
    for _ in range(3):
        run, journal = await (reopen(tmp_path) if (tmp_path / "journal.jsonl").exists() else create(tmp_path))
        await journal.append(Kind.ATTEMPT_BOUNDARY, boundary(ATTEMPT))
        content = {"instruction": str(journal.size).encode()}
        await journal.append(Kind.AGENT_STARTED, agent_started(ATTEMPT), blobs=content)
        await journal.close(ended())
    entries = list(read_entries(run.journal_path))
    refs = [entry.body["instruction"] for entry in entries if entry.kind is Kind.AGENT_STARTED]
    assert [ref["offset"] for ref in refs] == [0, 1, 2]
    assert all(read_blob(run, ref) for ref in refs)
