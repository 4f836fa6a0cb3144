"""Stages with money, drawn at the boundaries of every rule: the study's tables, and what the command line selects."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st
from primitives import money

from proctor.study import Selection

PICOS_PER_USD = 10**12
# Of dollars in picodollars: nothing, the smallest, odd ones, and the largest that a study may say.
AMOUNTS = (0, 1, 2, 3, 10**9, 10**12, 333_333_333_333, 144 * 10**12, 10**26 + 1, 10**27)
QUANTA = (0, 1, 2, 3, 10**9, 10**10, 10**12)
FACTORS = (1, 3, 0.1, 0.3, 1e-7, 2.5, 1.0000000001, 123456.789, 2**53 - 1, 5e-324)
STEPS = (0, 0, 0, 0, 0, -1, 1, -(10**9), 10**12)


@dataclass(frozen=True)
class Case:
    """A study's tables, how many tasks it has, and a selection; `by_hand` where its amounts cannot be frozen."""

    tables: dict[str, Any]
    tasks: int
    selection: Selection
    by_hand: bool


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Most hold every rule or break one; amounts lie at the ends of what a rule allows, or a step beside them."""
    names = [f"m{number}" for number in range(draw(st.sampled_from((0, 1, 1, 2, 2, 3, 7))))]
    tasks, epochs = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    stage: dict[str, Any] = {"epochs": epochs}
    tables: dict[str, Any] = {
        "study": {"name": "s"},
        "tasks": {"questions": "units.jsonl"},
        "agent": {"name": "toolloop"},
        "arms": {"plain": {}, "other": {}},
        "models": {name: _model(draw) for name in names},
        "stages": {"main": stage},
    }
    by_hand = False
    if draw(st.integers(0, 7)):
        spent_before = _budget(draw, stage, names, tasks * epochs)
        if draw(st.booleans()):
            amount = _bounded(spent_before - draw(st.sampled_from(STEPS)))
            tables["prior_spend"] = {"amount": money(amount), "source": "a bill", "sha256": "0" * 64}
        if names and draw(st.integers(0, 7)) == 0:
            table = stage[draw(st.sampled_from(("expected_costs", "caps", "reserves")))]
            del table[draw(st.sampled_from(names))]
            by_hand = True
    chosen: tuple[str, ...] = ()
    if names and not by_hand and draw(st.booleans()):
        chosen = tuple(draw(st.lists(st.sampled_from(names), unique=True)))
    limit = draw(st.sampled_from((None, None, 1, tasks, 9)))
    arms = draw(st.sampled_from(((), (), ("other",))))
    return Case(tables, tasks, Selection(limit, arms, chosen), by_hand)


def _model(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.integers(0, 3)) == 0:
        return {"provider": "practice", "model": "practice-1"}
    named = draw(st.sampled_from(({}, {"cache_read": 1}, {"cache_write": 1}, {"input": 1}, {"output": 1})))
    amount = draw(st.sampled_from((0, 0, 1, 10**6, 10**12)))
    price = {"input": money(0), "output": money(0), **{bucket: money(amount) for bucket in named}}
    price |= {"per": draw(st.sampled_from(("1M", "1k", "1"))), "source": "a page"}
    return {"provider": "openai", "model": "a-model", "max_output_tokens": 10, "price": price}


def _budget(draw: st.DrawFn, stage: dict[str, Any], names: list[str], blocks: int) -> int:
    """Puts the stage's money into its table; the amount that was spent before."""
    amounts, step = st.sampled_from(AMOUNTS) | st.integers(0, 10**14), st.sampled_from(STEPS)
    worthless = draw(st.integers(0, 9)) == 0
    expected = {name: 0 if worthless else draw(amounts) for name in names}
    allocation = draw(amounts)
    cap_quantum, reserve_quantum = draw(st.sampled_from(QUANTA)), draw(st.sampled_from(QUANTA))
    factor = draw(st.sampled_from(FACTORS) | st.floats(1e-9, 1e6))
    total = sum(expected.values())
    caps, reserves = {}, {}
    for name, cost in expected.items():
        share = Fraction(allocation * cost, total) if total else Fraction(draw(amounts))
        caps[name] = _near(draw, share, cap_quantum)
        reserves[name] = _near(draw, Fraction(str(factor)) * cost / blocks, reserve_quantum)
        if draw(st.integers(0, 9)) == 0:
            reserves[name] = _bounded(caps[name] + draw(step))
    cap = _bounded(allocation + abs(draw(step)) if draw(st.integers(0, 5)) else allocation - 1)
    margin = draw(st.sampled_from((0, 1, 10**12)))
    full = cap + margin
    spent_before = _bounded(draw(st.sampled_from((0, 0, 0, 1, cap, full - 1, full, full + 1))))
    stage["expected_costs"] = {name: money(cost) for name, cost in expected.items()}
    stage["caps"] = {name: money(amount) for name, amount in caps.items()}
    stage["reserves"] = {name: money(amount) for name, amount in reserves.items()}
    stage["budget"] = {
        "spent_before": money(spent_before),
        "allocation": money(allocation),
        "cap": money(cap),
        "margin": money(margin),
        "cap_quantum": money(cap_quantum),
        "reserve_quantum": money(reserve_quantum),
        "reserve_factor": factor,
    }
    return spent_before


def _near(draw: st.DrawFn, exact: Fraction, quantum: int) -> int:
    """The lowest or the highest amount within half a quantum, a picodollar beside them, or the nearest."""
    low, high = exact - Fraction(quantum, 2), exact + Fraction(quantum, 2)
    lowest, highest = -(-low.numerator // low.denominator), high.numerator // high.denominator
    inside = (lowest, highest, round(exact))
    return _bounded(draw(st.sampled_from(inside * 3 + (lowest - 1, highest + 1))))


def _bounded(amount: int) -> int:
    return min(max(0, amount), 10**27)
