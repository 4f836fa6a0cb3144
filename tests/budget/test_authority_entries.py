"""The authority: each decision is one step with its entry, exactly one end for each exchange, leases that end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from proctor.budget.authority import Authority
from proctor.budget.ceiling import Limits
from proctor.budget.lease import EntryWriter
from proctor.core.money import ZERO, Usd
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_admitted
from proctor.evidence.anchors.places import AnchorKind
from proctor.evidence.fold import RunState
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_entries
from proctor.rollout.record import Record
from proctor.runner.gate import Gate
from spending_parts import ANSWERED, ASKED, DOLLAR, REQUEST, Spending, hold, limits, said, totals

PICO = Usd(1)
HALF = Usd.parse("0.5")


async def one_block(path: Path, limits: Limits | None) -> Spending:
    spending = await Spending.open(path, limits)
    assert await spending.authority.admit_block(0, "task", "m", 1) is None
    return spending


def kinds(entries: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [kind for kind, _ in entries]


async def refusal_of(work: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await work
    return caught.value


async def test_an_exchange_is_on_the_record_before_it_may_be_sent(tmp_path: Path) -> None:
    spending = await one_block(tmp_path, limits())
    attempt, record = spending.attempt()
    lease = spending.authority.lease(attempt, 0, "m")
    await hold(lease, record, f"{attempt}/0", HALF, blobs=REQUEST, **ASKED)
    durable = list(read_entries(spending.run.journal_path))
    assert durable[-1].kind is Kind.EXCHANGE_ADMITTED
    assert (spending.authority.held, spending.authority.total) == (HALF, HALF)
    assert not lease.settle(record, f"{attempt}/0", PICO, outcome="settled", blobs={"response": b"x"}, **_answered())
    assert (spending.authority.held, spending.authority.total) == (ZERO, PICO)
    lease.end()
    block, admitted, ended = said(await spending.entries())
    assert block == (
        "block.admitted",
        {"block": 0, "task": "task", "model": "m", "epoch": 1, "reserve": "0.000000000000"},
    )
    assert admitted[1] == {
        **ASKED,
        "attempt": attempt,
        "exchange": f"{attempt}/0",
        "model": "m",
        "held": "0.500000000000",
        "request": admitted[1]["request"],
    }
    assert ended[1] == {
        **ANSWERED,
        "attempt": attempt,
        "exchange": f"{attempt}/0",
        "outcome": "settled",
        "charged": "0.000000000001",
        "overrun": False,
        "response": ended[1]["response"],
    }


def _answered() -> dict[str, Any]:
    return {name: value for name, value in ANSWERED.items() if name != "response"}


async def test_what_may_not_be_paid_for_is_on_the_record_and_refused(tmp_path: Path) -> None:
    spending = await one_block(tmp_path, limits())
    attempt, record = spending.attempt()
    lease = spending.authority.lease(attempt, 0, "m")
    refusal = await refusal_of(hold(lease, record, f"{attempt}/0", DOLLAR + PICO, blobs=REQUEST, **ASKED))
    assert refusal.reason is Reason.CEILING_REACHED
    await refusal_of(hold(lease, record, f"{attempt}/0", DOLLAR + DOLLAR, blobs=REQUEST, **ASKED))
    await hold(lease, record, f"{attempt}/0", DOLLAR, blobs=REQUEST, **ASKED)
    lease.settle(record, f"{attempt}/0", DOLLAR, outcome="settled", **ANSWERED)
    _, reached, refused, again, *_ = entries = said(await spending.entries())
    assert kinds(entries).count("ceiling.reached") == 1
    assert reached[1] == refusal.observed
    assert reached[1] == {
        "scope": "ceiling",
        "model": None,
        "spent": "0.000000000000",
        "wanted": "1.000000000001",
        "limit": "1.000000000000",
    }
    assert refused[1] == {
        "attempt": attempt,
        "model": "m",
        "reason": "ceiling_reached",
        "held": "1.000000000001",
        "message": refusal.message,
        "route": ASKED["route"],
        "request": refused[1]["request"],
    }
    assert (again[0], again[1]["held"]) == ("exchange.refused", "2.000000000000")


async def test_of_eight_at_a_barrier_with_a_budget_for_one_one_is_admitted(tmp_path: Path) -> None:
    spending = await one_block(tmp_path, limits())
    attempts = [spending.attempt(f"task-{number}") for number in range(8)]
    leases = [(spending.authority.lease(attempt, 0, "m"), attempt, record) for attempt, record in attempts]
    asked = [hold(lease, record, f"{attempt}/0", DOLLAR, blobs=REQUEST, **ASKED) for lease, attempt, record in leases]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, Refusal)]
    assert [each.reason for each in refused] == [Reason.CEILING_REACHED] * 7
    assert outcomes.count(None) == 1
    assert max(total for total, _ in totals(await spending.entries(), ZERO)) == DOLLAR.pico


async def test_without_a_budget_only_zero_is_held(tmp_path: Path) -> None:
    spending = await one_block(tmp_path, None)
    attempt, record = spending.attempt()
    lease = spending.authority.lease(attempt, 0, "m")
    await hold(lease, record, f"{attempt}/0", ZERO, blobs=REQUEST, **ASKED)
    lease.settle(record, f"{attempt}/0", ZERO, outcome="settled", **ANSWERED)
    refusal = await refusal_of(hold(lease, record, f"{attempt}/1", PICO, blobs=REQUEST, **ASKED))
    assert refusal.reason is Reason.BUDGET_ABSENT
    assert await spending.authority.admit_block(1, "other", None, 1) is None
    entries = said(await spending.entries())
    assert [body["reserve"] for kind, body in entries if kind == "block.admitted"] == [None, None]
    assert kinds(entries)[-2:] == ["exchange.refused", "block.admitted"]


async def test_a_block_sets_its_reserve_aside_and_an_empty_one_nothing(tmp_path: Path) -> None:
    spending = await Spending.open(tmp_path, limits(m=(DOLLAR, HALF)))
    assert await spending.authority.admit_block(0, "task", "m", 1, empty=True) is None
    assert await spending.authority.admit_block(1, "task", "m", 2) is None
    assert spending.authority.total == HALF
    entries = said(await spending.entries())
    assert [body["reserve"] for _, body in entries] == ["0.000000000000", "0.500000000000"]


@pytest.mark.parametrize(("cap", "model_cap", "scope"), [(HALF, DOLLAR, "cap"), (DOLLAR, HALF, "model_cap")])
async def test_a_block_that_can_never_fit_is_refused_and_that_is_said_once(
    tmp_path: Path, cap: Usd, model_cap: Usd, scope: str
) -> None:
    spending = await Spending.open(tmp_path, limits(cap, m=(model_cap, HALF + PICO)))
    for index in range(2):
        refusal = await spending.authority.admit_block(index, "task", "m", 1)
        assert refusal is not None and refusal.reason is Reason.CAP_REACHED
        assert refusal.observed["scope"] == scope
    [(kind, body)] = said(await spending.entries())
    assert (kind, body) == ("ceiling.reached", refusal.observed)


async def waiting(spending: Spending, index: int) -> asyncio.Task[Refusal | None]:
    """A second block, which waits for room."""
    task = asyncio.create_task(spending.authority.admit_block(index, "other", "m", 1))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_a_block_is_admitted_only_while_whoever_may_forbid_it_does_not(tmp_path: Path) -> None:
    """However long it waited for room before: what was forbidden meanwhile is."""
    spending = await Spending.open(tmp_path, limits(m=(DOLLAR, DOLLAR)))
    gate = Gate([AnchorKind.GIT])
    token = seal_admitted(run_id=spending.journal.run_id, run_dir=tmp_path, design_sha256="0" * 64, label="test")
    authority = Authority(token, limits(m=(DOLLAR, DOLLAR)), spending.journal, RunState(), gate.passed)
    first = asyncio.create_task(authority.admit_block(0, "task", "m", 1))
    await _turns()
    assert not first.done()
    gate.open(AnchorKind.GIT)
    assert await first is None
    second = asyncio.create_task(authority.admit_block(1, "other", "m", 1))
    await _turns()
    gate.shut(AnchorKind.GIT)
    authority.end_block(0)
    await _turns()
    assert not second.done(), "there is room, and it is forbidden"
    gate.open(AnchorKind.GIT)
    assert await second is None
    assert kinds(said(await spending.entries())) == ["block.admitted", "block.admitted"]


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_block_waits_until_another_ends_and_leaves_room(tmp_path: Path) -> None:
    spending = await one_block(tmp_path, limits(m=(DOLLAR, DOLLAR)))
    task = await waiting(spending, 1)
    spending.authority.end_block(0)
    assert await task is None


async def test_who_comes_just_when_there_is_room_does_not_overtake_who_waits(tmp_path: Path) -> None:
    spending = await one_block(tmp_path, limits(m=(DOLLAR, DOLLAR)))
    first = await waiting(spending, 1)
    # its first step comes before the wake of who waits
    second = asyncio.create_task(spending.authority.admit_block(2, "third", "m", 1))
    spending.authority.end_block(0)
    await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED, timeout=60)
    assert (first.done(), second.done()) == (True, False)
    assert await first is None
    spending.authority.end_block(1)
    assert await second is None
    assert [body["block"] for _, body in said(await spending.entries())] == [0, 1, 2]


async def test_who_stops_waiting_leaves_its_place_to_the_next(tmp_path: Path) -> None:
    spending = await one_block(tmp_path, limits(m=(DOLLAR, DOLLAR)))
    first, second = await waiting(spending, 1), await waiting(spending, 2)
    spending.authority.end_block(0)
    first.cancel()
    assert await second is None


async def test_a_block_stops_waiting_once_no_room_can_come(tmp_path: Path) -> None:
    spending = await one_block(tmp_path, limits(m=(DOLLAR, DOLLAR)))
    attempt, record = spending.attempt()
    lease = spending.authority.lease(attempt, 0, "m")
    task = await waiting(spending, 1)
    await hold(lease, record, f"{attempt}/0", HALF, blobs=REQUEST, **ASKED)
    assert not task.done()
    lease.settle(record, f"{attempt}/0", PICO, outcome="settled", **ANSWERED)
    refusal = await task
    assert refusal is not None and refusal.reason is Reason.CAP_REACHED


async def test_a_block_stops_waiting_at_an_overrun_and_at_a_refused_hold(tmp_path: Path) -> None:
    for name, reason in [("overrun", Reason.OVERRUN), ("refused", Reason.CEILING_REACHED)]:
        spending = await one_block(tmp_path / name, limits(DOLLAR, DOLLAR, m=(DOLLAR, DOLLAR)))
        attempt, record = spending.attempt()
        lease = spending.authority.lease(attempt, 0, "m")
        task = await waiting(spending, 1)
        if reason is Reason.OVERRUN:
            await hold(lease, record, f"{attempt}/0", ZERO, blobs=REQUEST, **ASKED)
            assert lease.settle(record, f"{attempt}/0", PICO, outcome="settled", **ANSWERED)
        else:
            await refusal_of(hold(lease, record, f"{attempt}/0", DOLLAR + DOLLAR + PICO, blobs=REQUEST, **ASKED))
        refusal = await task
        assert refusal is not None and refusal.reason is reason
        await spending.journal.close(None)


async def test_a_block_whose_waiting_is_cancelled_was_never_admitted(tmp_path: Path) -> None:
    spending = await one_block(tmp_path, limits(m=(DOLLAR, DOLLAR)))
    task = await waiting(spending, 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    spending.authority.end_block(0)
    assert await spending.authority.admit_block(1, "other", "m", 1) is None
    assert kinds(said(await spending.entries())) == ["block.admitted", "block.admitted"]


async def test_an_overrun_is_said_after_the_exchange_and_no_block_follows(tmp_path: Path) -> None:
    spending = await one_block(tmp_path, limits(DOLLAR, HALF))
    attempt, record = spending.attempt()
    lease = spending.authority.lease(attempt, 0, "m")
    await hold(lease, record, f"{attempt}/0", PICO, blobs=REQUEST, **ASKED)
    assert lease.settle(record, f"{attempt}/0", DOLLAR, outcome="settled", **ANSWERED)
    await hold(lease, record, f"{attempt}/1", HALF, blobs=REQUEST, **ASKED)
    assert lease.settle(record, f"{attempt}/1", DOLLAR, outcome="settled", **ANSWERED)
    refusal = await refusal_of(hold(lease, record, f"{attempt}/2", ZERO, blobs=REQUEST, **ASKED))
    assert refusal.reason is Reason.CEILING_REACHED
    blocked = await spending.authority.admit_block(1, "other", "m", 1)
    assert blocked is not None and blocked.reason is Reason.CEILING_REACHED
    entries = said(await spending.entries())
    reached = [body for kind, body in entries if kind == "ceiling.reached"]
    assert [(body["scope"], body["spent"], body["wanted"], body["limit"]) for body in reached] == [
        ("overrun", "1.000000000000", "0.000000000000", "1.000000000000"),
        ("ceiling", "2.000000000000", "0.000000000000", "1.500000000000"),
    ]
    assert kinds(entries)[2:4] == ["exchange.ended", "ceiling.reached"]
    assert entries[2][1]["overrun"] is True


async def test_after_a_crossing_nothing_is_held_though_the_total_falls(tmp_path: Path) -> None:
    spending = await one_block(tmp_path, limits())
    attempt, record = spending.attempt()
    lease = spending.authority.lease(attempt, 0, "m")
    await hold(lease, record, f"{attempt}/0", DOLLAR, blobs=REQUEST, **ASKED)
    await hold(lease, record, f"{attempt}/1", ZERO, blobs=REQUEST, **ASKED)
    assert lease.settle(record, f"{attempt}/1", PICO, outcome="settled", **ANSWERED)
    lease.settle(record, f"{attempt}/0", ZERO, outcome="released", **ANSWERED)
    refusal = await refusal_of(hold(lease, record, f"{attempt}/2", PICO, blobs=REQUEST, **ASKED))
    assert refusal.reason is Reason.OVERRUN
    spending.end_attempt(record, attempt)
    await spending.entries()
    again = await Spending.open(tmp_path, limits())
    assert await again.authority.admit_block(0, "task", "m", 1) is not None
    assert again.authority.total == PICO


async def test_a_stale_lease_holds_nothing_and_settles_what_is_in_flight_once(tmp_path: Path) -> None:
    spending = await one_block(tmp_path, limits())
    attempt, record = spending.attempt()
    lease = spending.authority.lease(attempt, 0, "m")
    await hold(lease, record, f"{attempt}/0", HALF, blobs=REQUEST, **ASKED)
    with pytest.raises(ValueError, match="in flight"):
        lease.end()
    with pytest.raises(ValueError, match="in flight"):
        spending.authority.end_block(0)
    refusal = await refusal_of(hold(lease, record, f"{attempt}/1", ZERO, blobs=REQUEST, **ASKED))
    assert refusal.reason is Reason.LEASE_STALE
    lease.settle(record, f"{attempt}/0", ZERO, outcome="released", **ANSWERED)
    with pytest.raises(ValueError, match="not in flight"):
        lease.settle(record, f"{attempt}/0", ZERO, outcome="released", **ANSWERED)
    lease.end()
    spending.authority.end_block(0)
    assert kinds(said(await spending.entries())) == ["block.admitted", "exchange.admitted", "exchange.ended"]


async def test_a_lease_is_for_its_own_attempt_block_and_model(tmp_path: Path) -> None:
    spending = await one_block(tmp_path, limits(m=(DOLLAR, ZERO), other=(DOLLAR, ZERO)))
    attempt, record = spending.attempt()
    for block, model in [(0, "other"), (1, "m")]:
        with pytest.raises(ValueError):
            spending.authority.lease(attempt, block, model)
    first, second = spending.authority.lease(attempt, 0, "m"), spending.authority.lease(attempt, 0, "m")
    with pytest.raises(ValueError, match="no exchange of"):
        await hold(first, record, "else/0", ZERO, blobs=REQUEST, **ASKED)
    await hold(first, record, f"{attempt}/0", HALF, blobs=REQUEST, **ASKED)
    with pytest.raises(ValueError, match="in flight"):
        await hold(second, record, f"{attempt}/0", HALF, blobs=REQUEST, **ASKED)
    with pytest.raises(ValueError, match="under this lease"):
        second.settle(record, f"{attempt}/0", ZERO, outcome="released", **ANSWERED)
    assert spending.authority.held == HALF
    await spending.journal.close(None)


@pytest.mark.parametrize(("outcome", "charged"), [("released", PICO), ("unknown", ZERO), ("settled", -PICO)])
async def test_no_exchange_ends_in_another_way(tmp_path: Path, outcome: str, charged: Usd) -> None:
    spending = await one_block(tmp_path, limits())
    attempt, record = spending.attempt()
    lease = spending.authority.lease(attempt, 0, "m")
    await hold(lease, record, f"{attempt}/0", HALF, blobs=REQUEST, **ASKED)
    with pytest.raises(ValueError):
        lease.settle(record, f"{attempt}/0", charged, outcome=outcome, **ANSWERED)
    assert spending.authority.held == HALF
    lease.settle(record, f"{attempt}/0", ZERO, outcome="released", **ANSWERED)
    assert kinds(said(await spending.entries())).count("exchange.ended") == 1


class Slow:
    """A writer on whose disk a caller can be seen waiting."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self.asked, self.durable = asyncio.Event(), asyncio.Event()

    def post(self, kind: Kind, blobs: Mapping[str, bytes] | None = None, /, **body: Any) -> None:
        self._record.post(kind, blobs, **body)

    async def settle(self) -> None:
        self.asked.set()
        await self.durable.wait()
        await self._record.settle()


@pytest.mark.parametrize("written", [True, False])
async def test_cancelled_before_it_was_sent_an_exchange_ends_as_released_once(tmp_path: Path, written: bool) -> None:
    spending = await one_block(tmp_path, limits())
    attempt, record = spending.attempt()
    lease = spending.authority.lease(attempt, 0, "m")
    slow: EntryWriter = (writer := Slow(record))
    task = asyncio.create_task(hold(lease, slow, f"{attempt}/0", HALF, blobs=REQUEST, **ASKED))
    await writer.asked.wait()
    if written:
        await record.settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (spending.authority.held, spending.authority.total) == (ZERO, ZERO)
    with pytest.raises(ValueError, match="not in flight"):
        lease.settle(record, f"{attempt}/0", ZERO, outcome="released", **ANSWERED)
    lease.end()
    spending.end_attempt(record, attempt)
    entries = await spending.entries()
    _, admitted, ended = said(entries)
    assert admitted[1]["exchange"] == ended[1]["exchange"] == f"{attempt}/0"
    assert (ended[1]["outcome"], ended[1]["charged"], ended[1]["error"]) == (
        "released",
        "0.000000000000",
        "interrupted",
    )
    assert RunState.of(entries).charged == {"m": 0}


@pytest.mark.parametrize("steps", range(4))
async def test_cancelled_at_any_step_nothing_stays_held(tmp_path: Path, steps: int) -> None:
    spending = await one_block(tmp_path, limits())
    attempt, record = spending.attempt()
    lease = spending.authority.lease(attempt, 0, "m")
    task = asyncio.create_task(hold(lease, record, f"{attempt}/0", HALF, blobs=REQUEST, **ASKED))
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        lease.settle(record, f"{attempt}/0", ZERO, outcome="released", **ANSWERED)
    lease.end()
    spending.end_attempt(record, attempt)
    state = RunState.of(await spending.entries())
    assert (spending.authority.held, state.open) == (ZERO, {})


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"route": "x" * 70_000}, Reason.ENTRY_TOO_LARGE),
        ({"input_bound": float("nan")}, Reason.JSON_INVALID),
        ({"unknown": 1}, None),
    ],
)
async def test_what_could_not_be_written_is_not_held(
    tmp_path: Path, wrong: dict[str, Any], error: Reason | None
) -> None:
    spending = await one_block(tmp_path, limits())
    attempt, record = spending.attempt()
    lease = spending.authority.lease(attempt, 0, "m")
    with pytest.raises((Refusal, ValueError)) as caught:
        await hold(lease, record, f"{attempt}/0", HALF, blobs=REQUEST, **{**ASKED, **wrong})
    assert getattr(caught.value, "reason", None) is error
    assert spending.authority.held == ZERO
    await hold(lease, record, f"{attempt}/0", DOLLAR, blobs=REQUEST, **ASKED)
    lease.settle(record, f"{attempt}/0", ZERO, outcome="released", **ANSWERED)
    assert kinds(said(await spending.entries())) == ["block.admitted", "exchange.admitted", "exchange.ended"]


async def test_a_resumed_run_goes_on_where_the_journal_ended_and_unknowns_are_charged(tmp_path: Path) -> None:
    first = await one_block(tmp_path, limits(m=(DOLLAR, HALF)))
    attempt, record = first.attempt()
    lease = first.authority.lease(attempt, 0, "m")
    await hold(lease, record, f"{attempt}/0", HALF, blobs=REQUEST, **ASKED)
    await first.journal.close(None)
    second = await Spending.open(tmp_path, limits(m=(DOLLAR, HALF)))
    assert (second.authority.total, second.authority.held) == (HALF, ZERO)
    assert await second.authority.admit_block(0, "task", "m", 1) is None
    again, record = second.attempt(number=1)
    lease = second.authority.lease(again, 0, "m")
    await hold(lease, record, f"{again}/0", HALF, blobs=REQUEST, **ASKED)
    refusal = await refusal_of(hold(lease, record, f"{again}/1", PICO, blobs=REQUEST, **ASKED))
    assert refusal.reason is Reason.CEILING_REACHED
    lease.settle(record, f"{again}/0", PICO, outcome="settled", **ANSWERED)
    entries = await second.entries()
    assert all(total <= DOLLAR.pico for total, _ in totals(entries, ZERO))
    unknown = next(body for kind, body in said(entries) if kind == "exchange.ended")
    assert (unknown["outcome"], unknown["charged"]) == ("unknown", "0.500000000000")


async def test_opened_at_its_ceiling_a_run_says_so_and_admits_nothing(tmp_path: Path) -> None:
    spending = await Spending.open(tmp_path, limits(before=DOLLAR))
    refusal = await spending.authority.admit_block(0, "task", "m", 1)
    assert refusal is not None and refusal.reason is Reason.CEILING_REACHED
    [(kind, body)] = said(await spending.entries())
    assert (kind, body["scope"], body["spent"], body["wanted"]) == (
        "ceiling.reached",
        "ceiling",
        "1.000000000000",
        "0.000000000000",
    )


async def test_an_overrun_of_an_earlier_opening_is_said_again_and_no_block_follows(tmp_path: Path) -> None:
    first = await one_block(tmp_path, limits())
    attempt, record = first.attempt()
    lease = first.authority.lease(attempt, 0, "m")
    await hold(lease, record, f"{attempt}/0", ZERO, blobs=REQUEST, **ASKED)
    lease.settle(record, f"{attempt}/0", PICO, outcome="settled", **ANSWERED)
    first.end_attempt(record, attempt)
    await first.entries()
    second = await Spending.open(tmp_path, limits())
    refusal = await second.authority.admit_block(0, "task", "m", 1)
    assert refusal is not None and refusal.reason is Reason.OVERRUN
    reached = [body["scope"] for kind, body in said(await second.entries()) if kind == "ceiling.reached"]
    assert reached == ["overrun", "overrun"]


async def test_an_authority_is_for_the_journal_of_its_run(tmp_path: Path) -> None:
    spending = await Spending.open(tmp_path, limits())
    other = seal_admitted(run_id="b" * 26, run_dir=tmp_path, design_sha256="1" * 64, label="proctor-test")
    with pytest.raises(ValueError, match="not bbb"):
        Authority(other, limits(), spending.journal, RunState())
    await spending.journal.close(None)
