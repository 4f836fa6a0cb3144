"""Orders are drawn from named streams: the vectors hold them still, the properties say what they are good for."""

from __future__ import annotations

import json
from collections import Counter
from math import factorial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.study.order import Stream, draw_order, stream_name

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent.parent / "vectors/order.json").read_text("utf-8"))
SEEDS = st.integers(0, 2**53 - 1)


@pytest.mark.parametrize("number", range(len(VECTORS)))
def test_vectors(number: int) -> None:
    case = VECTORS[number]
    name = stream_name(case["stage"], case["model"])
    stream = Stream(case["seed"], name)
    assert [str(stream.word()) for _ in case["words"]] == case["words"]
    drawn = draw_order(case["seed"], name, case["tasks"], case["epochs"], case["arms"])
    assert [[task, epoch, list(arms)] for task, epoch, arms in drawn] == case["blocks"]


@given(SEEDS, st.integers(1, 6), st.integers(1, 40), st.integers(1, 3))
def test_every_block_comes_once_and_arms_are_balanced(seed: int, arms: int, tasks: int, epochs: int) -> None:
    names = [f"arm{number}" for number in range(arms)]
    drawn = draw_order(seed, "order/main/-", [f"task{number}" for number in range(tasks)], epochs, names)
    assert Counter((task, epoch) for task, epoch, _ in drawn) == Counter(
        (f"task{number}", epoch) for number in range(tasks) for epoch in range(1, epochs + 1)
    )
    orders = [order for _, _, order in drawn]
    assert all(sorted(order) == names for order in orders)
    for start in range(0, len(orders) - arms + 1, arms):
        for place in range(arms):
            assert len({order[place] for order in orders[start : start + arms]}) == arms
    if arms <= 4:
        cycle = factorial(arms)
        assert all(len(set(orders[at : at + cycle])) == cycle for at in range(0, len(orders) - cycle + 1, cycle))


@given(SEEDS, st.permutations(["b", "a", "é", "Z"]))
def test_the_order_in_which_tasks_are_given_does_not_matter(seed: int, tasks: list[str]) -> None:
    assert draw_order(seed, "s", tasks, 2, ["x"]) == draw_order(seed, "s", sorted(tasks), 2, ["x"])


def test_draws_are_fair_and_streams_differ() -> None:
    stream = Stream(3, "fair")
    counts = Counter(stream.below(3) for _ in range(3000))
    assert all(900 < counts[value] < 1100 for value in range(3))
    firsts = {Stream(seed, name).word() for seed in range(5) for name in ("order/a/-", "order/b/-", "order/a/m")}
    assert len(firsts) == 15


def test_words_beyond_the_last_full_multiple_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(0, "any")
    words = iter([2**64 - 1, 5])
    monkeypatch.setattr(stream, "word", lambda: next(words))
    assert stream.below(3) == 2
