"""Costs are exact and rounded up once; the worst case is never below what an exchange within its bounds can cost."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.core.money import ZERO, Usd
from proctor.core.prices import NoPrice, PriceRow, Prices
from proctor.core.usage import INPUTS, Bucket, Usage

TEXT_INPUTS = [Bucket.INPUT, Bucket.CACHE_READ, Bucket.CACHE_WRITE, Bucket.CACHE_WRITE_1H]
OUTPUTS = [Bucket.OUTPUT, Bucket.REASONING]
PER_MILLION = st.integers(0, 10**15).map(lambda pico: str(Usd(pico)))


def prices(*rows: tuple[Bucket, int, str], per_request: str | None = None) -> Prices:
    return Prices("a test", tuple(PriceRow(*row) for row in rows), per_request)


@st.composite
def tables(draw: st.DrawFn) -> Prices:
    starts = draw(st.lists(st.integers(1, 50), max_size=3, unique=True))
    rows = []
    for bucket in [Bucket.INPUT, Bucket.OUTPUT, *draw(st.sets(st.sampled_from([*TEXT_INPUTS[1:], Bucket.REASONING])))]:
        own = draw(st.sets(st.sampled_from(starts))) if starts else set()
        rows += [(bucket, above, draw(PER_MILLION)) for above in (0, *own)]
    order = draw(st.permutations(rows))
    return prices(*order, per_request=draw(st.none() | PER_MILLION))


def by_hand(table: Prices, usage: Usage) -> Usd:
    """In dollars, by fractions, from the rule as it is written."""
    inputs = sum(count for bucket, count in usage.tokens.items() if bucket in INPUTS)
    dollars = Fraction(table.per_request or 0)
    for bucket, count in usage.tokens.items():
        rows = [
            row for row in table.rows if row.bucket == bucket and (row.above_inputs < inputs or not row.above_inputs)
        ]
        dollars += count * Fraction(max(rows, key=lambda row: row.above_inputs).usd_per_million) / 10**6
    return Usd.ceil(dollars)


@given(tables(), st.data())
def test_costs_follow_the_written_rule_and_the_worst_case_bounds_them(table: Prices, data: st.DataObject) -> None:
    priced = {row.bucket for row in table.rows}
    counts = {bucket: data.draw(st.integers(0, 60)) for bucket in [*TEXT_INPUTS, *OUTPUTS] if bucket in priced}
    usage = Usage(counts)
    cost = table.cost(usage)
    assert cost == by_hand(table, usage)
    inputs = usage.inputs + data.draw(st.integers(0, 20))
    outputs = usage.total - usage.inputs + data.draw(st.integers(0, 20))
    assert cost <= table.worst_case(inputs, outputs)


@settings(max_examples=40)
@given(tables(), st.integers(0, 60), st.integers(0, 60))
def test_the_worst_case_is_reached_by_some_exchange(table: Prices, inputs: int, outputs: int) -> None:
    priced = {row.bucket for row in table.rows}
    costs = [
        table.cost(Usage({into: count, out: outputs}))
        for into in TEXT_INPUTS
        for out in OUTPUTS
        if into in priced and out in priced
        for count in range(inputs + 1)
    ]
    assert table.worst_case(inputs, outputs) == max(costs)


TIERED = prices((Bucket.INPUT, 0, "1"), (Bucket.INPUT, 100, "5"), (Bucket.OUTPUT, 0, "2"), (Bucket.OUTPUT, 100, "10"))


@pytest.mark.parametrize(
    ("tokens", "pico"),
    [
        ({Bucket.INPUT: 100, Bucket.OUTPUT: 1}, 102_000_000),
        ({Bucket.INPUT: 101, Bucket.OUTPUT: 1}, 515_000_000),
        ({Bucket.OUTPUT: 1}, 2_000_000),
        ({}, 0),
    ],
)
def test_a_tier_is_a_cliff_for_all_tokens(tokens: dict[Bucket, int], pico: int) -> None:
    assert TIERED.cost(Usage(tokens)) == Usd(pico)


def test_all_that_goes_in_counts_for_the_tier() -> None:
    table = prices((Bucket.INPUT, 0, "1"), (Bucket.INPUT, 100, "5"), (Bucket.CACHE_READ, 0, "0.1"))
    assert table.cost(Usage({Bucket.INPUT: 1, Bucket.CACHE_READ: 100})) == Usd(5_000_000 + 10_000_000)


@pytest.mark.parametrize(("per_million", "pico"), [("0.000000000001", 1), ("0.000001000000", 1), ("0.000001000001", 2)])
def test_a_part_of_a_picodollar_is_rounded_up(per_million: str, pico: int) -> None:
    assert prices((Bucket.INPUT, 0, per_million)).cost(Usage({Bucket.INPUT: 1})) == Usd(pico)


def test_it_is_rounded_once_and_not_for_each_bucket() -> None:
    table = prices((Bucket.INPUT, 0, "0.0000005"), (Bucket.OUTPUT, 0, "0.0000005"))
    assert table.cost(Usage({Bucket.INPUT: 1, Bucket.OUTPUT: 1})) == Usd(1)


def test_a_request_can_have_a_price_of_its_own() -> None:
    table = prices((Bucket.INPUT, 0, "1"), (Bucket.OUTPUT, 0, "1"), per_request="0.012")
    assert table.cost(Usage()) == Usd.parse("0.012")
    assert table.worst_case(0, 0) == Usd.parse("0.012")


def test_tokens_of_a_bucket_without_a_price_have_no_cost() -> None:
    with pytest.raises(NoPrice) as caught:
        TIERED.cost(Usage({Bucket.INPUT: 1, Bucket.CACHE_READ: 1}))
    assert caught.value.bucket is Bucket.CACHE_READ
    assert TIERED.cost(Usage({Bucket.CACHE_READ: 0})) == ZERO


@pytest.mark.parametrize(("row", "lacks"), [(Bucket.INPUT, Bucket.OUTPUT), (Bucket.OUTPUT, Bucket.INPUT)])
def test_without_a_price_of_a_side_there_is_no_worst_case(row: Bucket, lacks: Bucket) -> None:
    with pytest.raises(NoPrice) as caught:
        prices((row, 0, "1")).worst_case(1, 1)
    assert caught.value.bucket is lacks


def test_a_million_tenths_are_exact() -> None:
    table = prices((Bucket.INPUT, 0, "0.1"), (Bucket.OUTPUT, 0, "0.2"))
    total = ZERO
    for _ in range(1000):
        total += table.cost(Usage({Bucket.INPUT: 1_000_000, Bucket.OUTPUT: 1_000_000}))
    assert total == Usd.parse("300")
