"""Runs whose attempts spend, on a real journal without sandbox and gateway; and a journal's money, counted anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from journal_parts import RUN_ID, attempt_admitted, attempt_ended, create, reopen
from proctor.budget.authority import FOR_MONEY, Authority
from proctor.budget.ceiling import Limits, ModelLimits
from proctor.budget.lease import Lease
from proctor.core.money import ZERO, Usd
from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_admitted
from proctor.evidence.entries import Entry
from proctor.evidence.fold import RunState
from proctor.evidence.journal import Journal
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_entries
from proctor.evidence.runfolder import RunFolder
from proctor.rollout.record import Record

DOLLAR = Usd.parse("1")
# of `exchange.admitted` and `exchange.ended`: what the gateway knows, and the authority does not
ASKED: dict[str, Any] = {
    "route": "POST /chat/completions",
    "request_digest": "0" * 64,
    "input_bound": 1,
    "output_bound": 1,
    "retries": None,
    "mutations": [],
}
ANSWERED: dict[str, Any] = {
    "http_status": 200,
    "error": None,
    "resolved_model": "m",
    "finish": "stop",
    "response": None,
    "chunks": None,
    "usage": {"input": 1},
    "estimated": False,
    "flags": [],
    "timing": {},
}
REQUEST = {"request": b"{}"}


def limits(cap: Usd = DOLLAR, margin: Usd = ZERO, before: Usd = ZERO, **models: tuple[Usd, Usd]) -> Limits:
    """Limits of models by name: (cap, reserve); of `m` alone where none is given, with a reserve of zero."""
    known = models or {"m": (cap, ZERO)}
    return Limits(before, cap, margin, {name: ModelLimits(*each) for name, each in known.items()})


async def hold(lease: Lease, record: Record, exchange: str, held: Usd, **asked: Any) -> None:
    """Hold it as the gateway does: durably, and a refusal for money on the record."""
    try:
        lease.take(record, exchange, held, **asked)
    except Refusal as refusal:
        if refusal.reason in FOR_MONEY:
            lease.refuse(record, refusal, held, route=asked["route"], blobs=asked["blobs"])
            await record.settle()
        raise
    await lease.confirm(record, exchange)


@dataclass
class Spending:
    """A run while it is written."""

    run: RunFolder
    journal: Journal
    authority: Authority

    @classmethod
    async def open(cls, path: Path, limits: Limits | None) -> Spending:
        """Create the run, or go on with it."""
        resuming = RunFolder(path).is_admitted()
        run, journal = await (reopen(path) if resuming else create(path))
        token = seal_admitted(run_id=RUN_ID, run_dir=path, design_sha256="1" * 64, label="proctor-test")
        past = RunState.of(read_entries(run.journal_path))
        return cls(run, journal, Authority(token, limits, journal, past))

    def attempt(self, task: str = "task", *, block: int = 0, model: str = "m", number: int = 0) -> tuple[str, Record]:
        """Admit an attempt; its id, and what writes it."""
        body = attempt_admitted(task, number, block=block, model=model)
        record = Record(self.journal, self.run, body["attempt"], body["folder"])
        record.post(Kind.ATTEMPT_ADMITTED, **{name: each for name, each in body.items() if name != "attempt"})
        return body["attempt"], record

    def end_attempt(self, record: Record, attempt: str) -> None:
        """Say that it completed."""
        record.post(Kind.ATTEMPT_ENDED, **{k: v for k, v in attempt_ended(attempt).items() if k != "attempt"})

    async def entries(self) -> list[Entry]:
        """All that was said, once it is durable; the journal is closed without an end."""
        await self.journal.close(None)
        return list(read_entries(self.run.journal_path))


def said(entries: Iterable[Entry]) -> list[tuple[str, dict[str, Any]]]:
    """The entries about money: kind and body, attempts left out."""
    about = {Kind.BLOCK_ADMITTED, Kind.EXCHANGE_ADMITTED, Kind.EXCHANGE_ENDED, Kind.EXCHANGE_REFUSED}
    about |= {Kind.CEILING_REACHED, Kind.BLOCK_ENDED}
    return [(entry.kind.id, entry.body) for entry in entries if isinstance(entry.kind, Kind) and entry.kind in about]


@dataclass
class _Open:
    reserve: int
    settled: int = 0
    holds: dict[str, int] = field(default_factory=dict)


def totals(entries: Iterable[Entry], before: Usd) -> Iterator[tuple[int, int]]:
    """After each entry: (spent before + settled + open, held), in picodollars, counted from the entries alone."""
    blocks: dict[int, _Open] = {}
    block_of: dict[str, int] = {}
    spent = before.pico
    for entry in entries:
        body = entry.body
        match entry.kind:
            case Kind.RUN_RESUMED:
                # blocks close; what is in flight is ended by the entries that follow
                for each in blocks.values():
                    each.reserve = 0
            case Kind.BLOCK_ADMITTED:
                blocks[body["block"]] = _Open(_pico(body["reserve"]))
            case Kind.BLOCK_ENDED:
                assert not blocks.pop(body["block"]).holds
            case Kind.ATTEMPT_ADMITTED:
                block_of[body["attempt"]] = body["block"]
            case Kind.EXCHANGE_ADMITTED:
                holds = blocks[block_of[body["attempt"]]].holds
                assert body["exchange"] not in holds
                holds[body["exchange"]] = _pico(body["held"])
            case Kind.EXCHANGE_ENDED:
                block = blocks[block_of[body["attempt"]]]
                del block.holds[body["exchange"]]
                block.settled += _pico(body["charged"])
                spent += _pico(body["charged"])
        held = sum(sum(each.holds.values()) for each in blocks.values())
        yield (
            spent + sum(max(each.reserve - each.settled, sum(each.holds.values())) for each in blocks.values()),
            held,
        )


def _pico(text: str) -> int:
    whole, _, decimals = text.partition(".")
    assert len(decimals) == 12
    return int(whole + decimals)
