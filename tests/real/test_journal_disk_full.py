"""A disk that is really full: a small tmpfs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_disks import fill, mounted

from journal_parts import agent_started, attempt_admitted, create, ended, reopen
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_blob, read_entries
from proctor.evidence.runfolder import RunFolder

pytestmark = pytest.mark.real


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path, "12m")


@pytest.mark.parametrize("filler", [False, True], ids=["filled by the journal", "filled by others"])
async def test_a_full_disk_loses_nothing_and_the_run_ends_on_the_record(small_disk: Path, filler: bool) -> None:
    run, journal = await create(small_disk / "run")
    admitted = attempt_admitted()
    acknowledged = {await journal.append(Kind.ATTEMPT_ADMITTED, admitted): b""}
    run.write_atomic(f"{admitted['folder']}/agent/log.txt", b"said")
    if filler:
        fill(small_disk / "others")

    async def write(lane: int) -> None:
        for number in range(1_000):
            content = os.urandom(20_000) + bytes([lane, number % 256])
            body = agent_started(admitted["attempt"])
            acknowledged[await journal.append(Kind.AGENT_STARTED, body, blobs={"instruction": content})] = content

    outcomes = await asyncio.gather(*(write(lane) for lane in range(8)), return_exceptions=True)
    assert {getattr(outcome, "reason", None) for outcome in outcomes} == {Reason.DISK_FULL}
    await journal.close(ended(exit_status=5, reason="disk_full"))
    _check(run, acknowledged)

    if not filler:
        return
    with pytest.raises(Refusal) as refused:
        await reopen(run.path)
    assert refused.value.reason is Reason.DISK_FULL
    (small_disk / "others").unlink()
    _, again = await reopen(run.path)
    await again.close(ended())
    _check(run, acknowledged)


def _check(run: RunFolder, acknowledged: dict[int, bytes]) -> None:
    entries = list(read_entries(run.journal_path))
    for seq, content in acknowledged.items():
        if content:
            assert read_blob(run, entries[seq].body["instruction"]) == content
    ends = [entry.body for entry in entries if entry.kind is Kind.ATTEMPT_ENDED]
    assert [(end["outcome"], end["exception"]) for end in ends] == [("interrupted", "disk_full")]
    assert entries[-1].kind is Kind.RUN_ENDED
    assert (run.checkpoints / f"{len(entries):012d}.note").is_file()
