"""What tokens cost, and at most can cost: on both sides of a tier's start, and where a side has no price."""

from __future__ import annotations

from typing import Any

import pytest

from proctor_verify.prices import Prices, pico, usd

# in picodollars for a token, by bucket, from where on
Rows = list[tuple[str, int, int]]
PLAIN: Rows = [("input", 0, 2), ("output", 0, 10)]
TIERED: Rows = [*PLAIN, ("input", 1000, 4), ("output", 1000, 3), ("cache_read", 0, 1), ("input", 5000, 5)]
SOUND: Rows = [*PLAIN, ("audio_in", 0, 100), ("audio_out", 0, 200), ("tool_input", 0, 300)]
HIDDEN: Rows = [("cache_read", 0, 7), ("cache_write", 0, 8), ("cache_write_1h", 0, 9), ("reasoning", 0, 20)]


def prices(rows: Rows, **more: Any) -> Prices:
    """Rows out of their order are as good."""
    written = [
        {"bucket": bucket, "above_inputs": above, "usd_per_million": usd(each * 10**6)} for bucket, above, each in rows
    ]
    return Prices({"source": "", "rows": written[::-1], **more})


def test_amounts() -> None:
    assert usd(0) == "0.000000000000" and usd(10**12 + 1) == "1.000000000001" and usd(10**12 - 1) == "0.999999999999"
    assert pico("0.000000000000") == 0 and pico("12.000000000034") == 12 * 10**12 + 34


COSTS: list[tuple[Rows, dict[str, int], int | None]] = [
    (PLAIN, {}, 0),
    (PLAIN, {"input": 3, "output": 2}, 26),
    (PLAIN, {"input": 3, "cache_read": 1}, None),
    (PLAIN, {"output": 1, "reasoning": 1}, None),
    (TIERED, {"input": 1000, "output": 1}, 2010),
    (TIERED, {"input": 1001, "output": 1}, 4007),
    (TIERED, {"input": 999, "cache_read": 1, "output": 1}, 2009),
    (TIERED, {"input": 999, "cache_read": 2, "output": 1}, 4001),
    (TIERED, {"input": 1, "output": 5000}, 50_002),
    (TIERED, {"input": 5000}, 20_000),
    (TIERED, {"input": 5001}, 25_005),
    (SOUND, {"audio_in": 2, "audio_out": 3}, 800),
]


@pytest.mark.parametrize(("rows", "usage", "cost"), COSTS)
def test_what_a_usage_costs(rows: Rows, usage: dict[str, int], cost: int | None) -> None:
    assert prices(rows).cost(usage) == cost


MOST: list[tuple[Rows, int, int, int | None]] = [
    (PLAIN, 0, 0, 0),
    (PLAIN, 0, 3, 30),
    (PLAIN, 3, 2, 26),
    (TIERED, 999, 1, 2008),
    (TIERED, 1000, 1, 2010),
    (TIERED, 1001, 1, 4007),
    # what stays below the second tier is dearer
    (TIERED, 1001, 1000, 12_000),
    (TIERED, 5000, 1, 20_003),
    (TIERED, 5001, 1, 25_008),
    (SOUND, 3, 2, 26),
    ([*PLAIN, *HIDDEN], 1, 1, 29),
    ([("input", 0, 2)], 1, 1, None),
    ([("output", 0, 2)], 1, 1, None),
    ([("output", 0, 2), ("audio_in", 0, 1)], 1, 1, None),
    ([("input", 0, 2), ("audio_out", 0, 1)], 1, 1, None),
    ([], 1, 1, None),
    # a side that has its price from a tier on alone
    ([("input", 0, 2), ("output", 10, 1)], 20, 1, None),
    ([("output", 0, 2), ("input", 10, 1)], 20, 1, None),
    ([*PLAIN, ("input", 10, 1)], 10, 0, 20),
    ([*PLAIN, ("input", 10, 1)], 11, 0, 20),
]


@pytest.mark.parametrize(("rows", "inputs", "outputs", "most"), MOST)
def test_the_most_that_an_exchange_can_cost(rows: Rows, inputs: int, outputs: int, most: int | None) -> None:
    assert prices(rows).worst_case(inputs, outputs) == most


def test_what_each_request_costs_and_parts_of_a_picodollar() -> None:
    each = prices(PLAIN, per_request="0.000000000005")
    assert each.cost({"input": 1}) == each.worst_case(1, 0) == 7
    assert prices(PLAIN, per_request=None).cost({"input": 1}) == 2
    small = Prices(
        {
            "rows": [
                {"bucket": "input", "above_inputs": 0, "usd_per_million": "0.000000000001"},
                {"bucket": "output", "above_inputs": 0, "usd_per_million": "0.000000000000"},
            ]
        }
    )
    assert [small.cost({"input": count}) for count in (1, 10**6, 10**6 + 1)] == [1, 1, 2]
    assert [small.worst_case(count, 9) for count in (0, 1, 10**6, 10**6 + 1)] == [0, 1, 1, 2]


def test_what_is_free() -> None:
    assert prices([("input", 0, 0), ("output", 0, 0)]).free
    assert prices([], per_request="0.000000000000").free
    assert not prices([("input", 0, 0), ("output", 0, 1)]).free
    assert not prices([("input", 0, 0)], per_request="0.000000000001").free
