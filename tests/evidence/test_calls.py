"""A record of calls: durable before anybody is told, chained, gone on with where it ended, and never overwritten."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from proctor.core.clock import SystemClock
from proctor.core.money import Usd
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.calls import CallRecord, bodies_folder
from proctor.evidence.callstate import CLOSED, OPENED, read_calls
from proctor.evidence.disk import Appender
from proctor.evidence.exchanges import unanswered
from proctor.evidence.kinds import Kind
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.spool import Spool

DOLLAR = "1.000000000000"


async def opened(path: Path) -> CallRecord:
    return await CallRecord.open(path, {"upstream": "practice"}, SystemClock())


def admitted(exchange: str, model: str = "m", held: str = DOLLAR) -> dict[str, Any]:
    return {"exchange": exchange, "model": model, "held": held}


def ended(exchange: str, charged: str = "0.250000000000", **more: Any) -> dict[str, Any]:
    body = {"exchange": exchange, "outcome": "settled", "charged": charged, "overrun": False}
    return {**body, **unanswered(None, estimated=False), "usage": {"input": 3, "reasoning": 1, "output": 2}, **more}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


async def written(path: Path) -> None:
    """A whole record of two exchanges, one of which was cut short."""
    record = await opened(path)
    record.post(Kind.EXCHANGE_ADMITTED, admitted("1:m/0"), {"request": b'{"a": "\xc3\xa9"}'})
    record.post(Kind.EXCHANGE_ENDED, ended("1:m/0"), {"response": b"\xff\x00"})
    record.post(Kind.EXCHANGE_ADMITTED, admitted("1:m/1"))
    await record.settle()
    # as a process that is killed leaves it
    record._thread.shutdown()
    record._file.close()
    import os

    os.close(record._lock)


async def test_lines_are_chained_and_hold_the_bodies(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    await written(path)
    head = "0" * 64
    for number, line in enumerate(path.read_bytes().splitlines()):
        entry = json.loads(line)
        assert (entry["seq"], entry["prev"]) == (number, head)
        head = hashlib.sha256(line).hexdigest()
    entries = lines(path)
    assert [entry["kind"] for entry in entries] == [
        OPENED,
        *["exchange.admitted", "exchange.ended"],
        "exchange.admitted",
    ]
    assert entries[1]["body"]["request"] == {"text": '{"a": "é"}'}
    assert entries[2]["body"]["response"] == {"base64": "/wA="}


async def test_what_was_in_flight_when_its_process_died_is_charged_at_its_worst_case(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    await written(path)
    assert read_calls(path).owed == Usd.parse("1.25") and read_calls(path).total == Usd.parse("0.25")
    record = await opened(path)
    assert record.state.total == Usd.parse("1.25") and not record.state.open and record.state.openings == 2
    await record.close({"exit_status": 0})
    state = read_calls(path)
    assert state.closed and state.total == Usd.parse("1.25")
    calls = state.models["m"]
    assert (calls.exchanges, calls.in_flight, calls.held, calls.input, calls.output) == (2, 0, 0, 3, 3)
    assert lines(path)[-2]["body"]["outcome"] == "unknown"
    assert lines(path)[0]["body"]["record"] == lines(path)[-3]["body"]["record"] == state.record


async def test_an_unfinished_line_is_cut_off_and_told(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    await written(path)
    with path.open("ab") as file:
        file.write(b'{"body":{"exchange"')
    before = read_calls(path)
    assert before.torn == 19 and before.size == 4
    record = await opened(path)
    await record.close({})
    assert lines(path)[4]["body"]["cut"] == {"bytes": 19}
    assert read_calls(path).size == 7


@pytest.mark.parametrize("at", [0, 1, 3])
async def test_a_line_that_was_changed_is_found(tmp_path: Path, at: int) -> None:
    path = tmp_path / "calls.jsonl"
    await written(path)
    changed = path.read_bytes().splitlines(keepends=True)
    changed[at] = changed[at].replace(b'"mono":', b'"mono":1')
    path.write_bytes(b"".join(changed) + b'{"body":{},"kind":"x","mono":1,"prev":"","seq":4,"time":""}\n')
    with pytest.raises(Refusal) as refused:
        read_calls(path)
    assert refused.value.reason is Reason.EVIDENCE_DAMAGED


@pytest.mark.parametrize(
    "content",
    [b"a file of somebody's\n", b"no end of line", b"[]\n", b'{"kind":"x"}\n', b"\xff\xfe\n", b"[" * 100_000 + b"\n"],
    ids=["text", "no line", "a list", "another object", "no UTF-8", "deep"],
)
async def test_what_is_no_record_is_not_touched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(Refusal) as refused:
        await opened(path)
    assert refused.value.reason is Reason.WOULD_OVERWRITE and path.read_bytes() == content


async def test_a_record_of_another_format_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    await (await opened(path)).close({})
    path.write_bytes(path.read_bytes().replace(b'"format":1', b'"format":2', 1))
    with pytest.raises(Refusal) as refused:
        await opened(path)
    assert refused.value.reason is Reason.FORMAT_UNKNOWN


async def test_a_record_has_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    record = await opened(path)
    with pytest.raises(Refusal) as refused:
        await opened(path)
    assert refused.value.reason is Reason.RUN_LOCKED
    await record.close({})
    await (await opened(path)).close({})


async def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"")
    (tmp_path / "calls.jsonl").symlink_to("target")
    with pytest.raises(Refusal) as refused:
        await opened(tmp_path / "calls.jsonl")
    assert refused.value.reason is Reason.OUT_UNUSABLE and (tmp_path / "target").read_bytes() == b""


async def test_a_large_body_stands_in_a_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    record = await opened(path)
    record.post(Kind.EXCHANGE_ADMITTED, admitted("1:m/0"))
    spool = Spool(RunFolder(bodies_folder(path)))
    for _ in range(3):
        spool.write(b"x" * 2**20)
    record.post(Kind.EXCHANGE_ENDED, ended("1:m/0"), {"response": spool.finish()})
    await record.settle()
    left = Spool(RunFolder(bodies_folder(path)))
    left.write(b"of a reply that was cut short")
    await record.close({})
    said = lines(path)[2]["body"]["response"]
    content = (bodies_folder(path) / said["file"]).read_bytes()
    assert len(content) == said["size"] == 3 * 2**20 and hashlib.sha256(content).hexdigest() == said["sha256"]
    await (await opened(path)).close({})
    assert sum(1 for file in bodies_folder(path).rglob("*") if file.is_file()) == 1, "what no line names goes"


async def test_nobody_is_told_before_the_disk_has_it_and_a_fault_is_everybodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "calls.jsonl"
    record = await opened(path)
    before = path.read_bytes()

    def full(self: Appender, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Appender, "append", full)
    first = record.post(Kind.EXCHANGE_ADMITTED, admitted("1:m/0"))
    waits = [asyncio.create_task(record.settle()) for _ in range(3)]
    for each in await asyncio.gather(first, *waits, return_exceptions=True):
        assert isinstance(each, Refusal) and each.reason is Reason.DISK_FULL
    with pytest.raises(Refusal):
        record.post(Kind.EXCHANGE_ADMITTED, admitted("1:m/1"))
    with pytest.raises(Refusal):
        await record.close({})
    assert path.read_bytes() == before and record.failed.is_set()


async def test_a_caller_that_is_cancelled_takes_nothing_from_the_others(tmp_path: Path) -> None:
    record = await opened(tmp_path / "calls.jsonl")
    record.post(Kind.EXCHANGE_ADMITTED, admitted("1:m/0"))
    one, other = asyncio.create_task(record.settle()), asyncio.create_task(record.settle())
    await asyncio.sleep(0)
    one.cancel()
    await other
    record.post(Kind.EXCHANGE_ENDED, ended("1:m/0"))
    await record.close({})
    assert [entry["kind"] for entry in lines(tmp_path / "calls.jsonl")][-1] == CLOSED


async def test_many_at_once_are_few_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs: list[int] = []
    real = Appender.sync
    monkeypatch.setattr(Appender, "sync", lambda self: (syncs.append(self.size), real(self))[1])
    record = await opened(tmp_path / "calls.jsonl")

    async def call(number: int) -> None:
        record.post(Kind.EXCHANGE_ADMITTED, admitted(f"1:m/{number}"))
        await record.settle()
        record.post(Kind.EXCHANGE_ENDED, ended(f"1:m/{number}"))
        await record.settle()

    await asyncio.gather(*map(call, range(100)))
    await record.close({})
    assert read_calls(tmp_path / "calls.jsonl").models["m"].exchanges == 100
    assert len(syncs) < 50
