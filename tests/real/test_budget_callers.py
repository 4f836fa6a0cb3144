"""Many callers on one budget: the ceiling holds at every entry; killed (-9) at any of them, nothing is forgotten."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from proctor.core.money import ZERO, Usd
from proctor.core.refusal import Refusal
from proctor.evidence.entries import Entry
from proctor.evidence.fold import RunState
from spending_parts import ANSWERED, ASKED, DOLLAR, REQUEST, Spending, hold, limits, said, totals

pytestmark = pytest.mark.real

TESTS = Path(__file__).resolve().parents[1]
CALLERS = 64
KILLS = 20
HELD = 1_000
# room for all that every killed process may leave in flight, and for the last one: a hold that is refused before it
# would close the run for good, and there would be nothing to go on with
CEILING = CALLERS * HELD * (KILLS + 2)

SPENDER = """
import asyncio, json, os, random, sys
from pathlib import Path
from spending_parts import ANSWERED, ASKED, REQUEST, Spending, hold, limits
from proctor.core.money import Usd
from proctor.core.refusal import Refusal

path, opening, ceiling, held, callers, drain = Path(sys.argv[1]), *map(int, sys.argv[2:])

def say(*words):
    os.write(1, json.dumps(words).encode() + b"\\n")

async def caller(spending, number):
    attempt, record = spending.attempt(f"{opening}-{number}", block=opening)
    lease = spending.authority.lease(attempt, opening, "m")
    index = 0
    try:
        while True:
            exchange = f"{attempt}/{index}"
            await hold(lease, record, exchange, Usd(held), blobs=REQUEST, **ASKED)
            # from here on it costs
            charged = held if drain else random.randint(0, 3)
            say("sent", exchange, charged)
            await asyncio.sleep(0)
            lease.settle(record, exchange, Usd(charged), outcome="settled", **ANSWERED)
            await record.settle()
            say("settled", exchange, charged)
            index += 1
    except Refusal as refusal:
        assert refusal.reason.id == "ceiling_reached", refusal
    lease.end()
    spending.end_attempt(record, attempt)

async def main():
    spending = await Spending.open(path, limits(Usd(ceiling - 500), Usd(500), m=(Usd(ceiling), Usd(500))))
    refusal = await spending.authority.admit_block(opening, "task", "m", 1)
    assert refusal is None, refusal
    await asyncio.gather(*(caller(spending, number) for number in range(callers)))
    assert spending.authority.held == Usd(0)
    spending.authority.end_block(opening)
    await spending.journal.close(None)

asyncio.run(main())
"""


async def test_callers_on_a_budget_for_one_pay_for_one_at_a_time(tmp_path: Path) -> None:
    margin = Usd.parse("0.25")
    spending = await Spending.open(tmp_path, limits(DOLLAR - margin, margin, m=(DOLLAR, Usd.parse("0.1"))))
    assert await spending.authority.admit_block(0, "task", "m", 1) is None
    chance = random.Random(7)
    freed = asyncio.Event()
    refused = paid = 0

    async def caller(number: int) -> None:
        nonlocal refused, paid, freed
        attempt, record = spending.attempt(f"task-{number}")
        lease = spending.authority.lease(attempt, 0, "m")
        for index in range(6):
            exchange = f"{attempt}/{index}"
            try:
                await hold(lease, record, exchange, Usd.parse("0.6"), blobs=REQUEST, **ASKED)
            except Refusal as refusal:
                assert refusal.reason.id == "ceiling_reached"
                refused += 1
                await freed.wait()
                continue
            charged = Usd(chance.randint(0, 10**9))
            lease.settle(record, exchange, charged, outcome="settled", **ANSWERED)
            paid += charged.pico
            freed.set()
            freed = asyncio.Event()
        lease.end()
        freed.set()
        spending.end_attempt(record, attempt)

    await asyncio.gather(*(caller(number) for number in range(CALLERS)))
    assert spending.authority.held == ZERO
    spending.authority.end_block(0)
    assert spending.authority.total == Usd(paid)
    entries = await spending.entries()
    every = list(totals(entries, ZERO))
    assert max(total for total, _ in every) <= DOLLAR.pico
    assert max(held for _, held in every) == Usd.parse("0.6").pico, "one at a time, and one"
    assert every[-1][1] == 0
    assert refused > 0
    assert RunState.of(entries).charged["m"] == paid


def _spend(path: Path, opening: int, words: int | None) -> list[list[str]]:
    """What a process said until it was killed, at the latest just after so many words; None lets it end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])}
    numbers = [opening, CEILING, HELD, CALLERS, words is None]
    command = [sys.executable, "-c", SPENDER, str(path), *(str(int(each)) for each in numbers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        said = [] if words is None else [process.stdout.readline() for _ in range(words)]
        if words is not None:
            process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
        assert process.wait(timeout=600) == (0 if words is None else -signal.SIGKILL)
    # the last word may be cut: then it was not said
    return [json.loads(line) for line in said if line.endswith(b"\n")]


def test_killed_again_and_again_nothing_is_paid_twice_and_unknowns_are_charged(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    told = [_spend(tmp_path, opening, chance.randint(1, chance.choice([1, 70, 600]))) for opening in range(KILLS)]
    told.append(_spend(tmp_path, KILLS, None))
    entries = asyncio.run(_entries(tmp_path))
    sent = [(exchange, charged) for words in told for what, exchange, charged in words if what == "sent"]
    settled = {exchange: charged for words in told for what, exchange, charged in words if what == "settled"}
    money = [body for kind, body in said(entries) if kind == "exchange.ended"]
    ends = {body["exchange"]: body for body in money}
    assert len(ends) == len(money), "an exchange ends once"
    assert len(dict(sent)) == len(sent), "nothing is sent twice"
    for exchange, cost in sent:
        charged = Usd.parse(ends[exchange]["charged"]).pico
        assert charged >= cost, "nothing that was sent is forgotten"
        assert charged == settled.get(exchange, HELD if ends[exchange]["outcome"] == "unknown" else cost)
    unknown = [body for body in money if body["outcome"] == "unknown"]
    assert unknown and all(body["charged"] == str(Usd(HELD)) and body["estimated"] for body in unknown)
    assert settled.keys().isdisjoint(body["exchange"] for body in unknown)
    every = list(totals(entries, ZERO))
    assert max(total for total, _ in every) <= CEILING
    # the last process spent until nothing fitted any more
    assert CEILING - HELD < every[-1][0] <= CEILING
    assert every[-1][1] == 0
    assert RunState.of(entries).charged["m"] == sum(Usd.parse(body["charged"]).pico for body in money)


async def _entries(path: Path) -> list[Entry]:
    spending = await Spending.open(path, limits(Usd(CEILING - 500), Usd(500), m=(Usd(CEILING), Usd(500))))
    return await spending.entries()
