"""Each guard of a gateway of its own has one request that it alone refuses, and without it nobody does."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from proctor.admission.standalone import GATEWAY, GatewayFacts, look
from proctor.admission.standalone_models import GatewayRequest
from proctor.core.clock import SystemClock
from proctor.core.reasons import Reason
from proctor.evidence.calls import CallRecord
from proctor.evidence.exchanges import unanswered
from proctor.evidence.kinds import Kind

KEYS = {"OPENAI_API_KEY": "sk-planted-0123456789abcdef"}
CHARGED = "2.500000000000"


@dataclass(frozen=True)
class Fault:
    """What is otherwise in a good request, in its environment or its record, and the one reason to refuse it."""

    reason: Reason
    changes: dict[str, Any] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=lambda: KEYS)
    record: Callable[[Path], Any] = lambda path: None


def damaged(path: Path) -> None:
    path.write_text("somebody's notes\n")


FAULTS: dict[str, list[Fault]] = {
    "words-sound": [Fault(Reason.MONEY_INVALID, {"budget": "five"})],
    "budget-positive": [Fault(Reason.MONEY_INVALID, {"budget": "0"})],
    "upstream-known": [Fault(Reason.PROVIDER_UNKNOWN, {"upstream": "openay", "models": ()})],
    "models-priced": [
        Fault(Reason.PRICE_UNKNOWN, {"models": ("gpt-4o-mini-hack",)}),
        Fault(Reason.PRICE_UNKNOWN, {"upstream": "http://h/v1", "max_output_tokens": 9}),
        Fault(Reason.OUTPUT_UNBOUNDED, {"upstream": "http://h/v1", "price": ("1", "2")}),
        Fault(Reason.INVALID_VALUE, {"models": ("",)}),
    ],
    "key-there": [
        Fault(Reason.KEY_MISSING, environ={}),
        Fault(Reason.KEY_MISSING, environ={"OPENAI_API_KEY": " "}),
        Fault(Reason.KEY_MISSING, {"key_env": "NO_SUCH_KEY"}),
    ],
    "record-free": [
        Fault(Reason.WOULD_OVERWRITE, record=damaged),
        Fault(Reason.EVIDENCE_UNREADABLE, record=lambda path: path.symlink_to(path.name)),
        Fault(Reason.EVIDENCE_UNREADABLE, record=os.mkfifo),
    ],
    "budget-left": [Fault(Reason.CEILING_REACHED, {"budget": CHARGED})],
}


async def spent(path: Path) -> None:
    """A record that has charged so much."""
    record = await CallRecord.open(path, {}, SystemClock())
    record.post(Kind.EXCHANGE_ADMITTED, {"exchange": "1:m/0", "model": "m", "held": CHARGED})
    end = {"exchange": "1:m/0", "outcome": "settled", "charged": CHARGED, "overrun": False}
    record.post(Kind.EXCHANGE_ENDED, {**end, **unanswered(None, estimated=False)})
    await record.close({})


async def facts_of(fault: Fault | None, path: Path) -> GatewayFacts:
    """What the real gathering makes of a request; without a fault, of a good one whose record goes on."""
    fields: dict[str, Any] = {"upstream": "openai", "budget": "5.00", "record": path, "models": ("gpt-4o-mini",)}
    if fault is None or "budget" in fault.changes:
        await spent(path)
    if fault is not None:
        fault.record(path)
        fields |= fault.changes
    request = GatewayRequest(**{**fields, "priced_on": "2026-06-01"})
    return look(request, KEYS if fault is None else fault.environ)[0]


def test_every_guard_has_its_fault() -> None:
    assert {guard.id for guard in GATEWAY} == FAULTS.keys()


async def test_a_good_request_is_not_refused(tmp_path: Path) -> None:
    facts = await facts_of(None, tmp_path / "calls.jsonl")
    assert facts.record is not None and str(facts.record.owed) == CHARGED
    assert GATEWAY.run(facts) == []


@pytest.mark.parametrize(
    ("guard_id", "fault"), [(guard, fault) for guard, faults in FAULTS.items() for fault in faults]
)
async def test_one_fault_is_refused_by_its_guard_alone(guard_id: str, fault: Fault, tmp_path: Path) -> None:
    facts = await facts_of(fault, tmp_path / "calls.jsonl")
    refusals = GATEWAY.run(facts)
    assert [(refusal.guard, refusal.reason) for refusal in refusals] == [(guard_id, fault.reason)]
    assert GATEWAY.run(facts, disabled=frozenset({guard_id})) == []
