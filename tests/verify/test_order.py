"""The drawn order, against the frozen vectors that both programs share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from designs import make_model, make_task
from hypothesis import given
from hypothesis import strategies as st
from primitives import canonical, drawn_order, sha256

from proctor_verify.design import Design, Trials
from proctor_verify.order import Order, Stream

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "vectors/order.json").read_bytes())


def _design(vector: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": 1,
        "study": {"name": "vectors"},
        "stage": {"name": vector["stage"], "epochs": vector["epochs"], "replacements": 0},
        "draw": {"seed": vector["seed"]},
        "tasks": [make_task(name) for name in vector["tasks"]],
        "models": [] if vector["model"] is None else [make_model(vector["model"])],
        "arms": [{"name": name} for name in vector["arms"]],
        "agent": {"name": "nop", "settings": {}, "timeout_sec": None},
        "sandbox": {"kind": "namespace", "network": "none"},
        "grading": {"solved": "reward >= 1.0"},
    }


@pytest.mark.parametrize("vector", VECTORS, ids=[f"{i}" for i in range(len(VECTORS))])
def test_blocks_are_drawn_as_the_vectors_say(vector: dict[str, Any]) -> None:
    wanted = [(task, vector["model"], epoch) for task, epoch, _ in vector["blocks"]]
    value = _design(vector)
    assert drawn_order(value) == list(zip(wanted, (arms for _, _, arms in vector["blocks"]), strict=True))

    design = Design.read(value)
    trials, order = Trials(design), Order(design)
    assert [order.index_of[trials.locate_block(*block)] for block in wanted] == list(range(len(wanted)))
    names = [[design.arms[arm] for arm in order.arms_at(index)] for index in range(len(wanted))]
    assert names == [arms for _, _, arms in vector["blocks"]]


def test_indices_go_on_from_one_model_to_the_next() -> None:
    value = _design(VECTORS[1])
    value["models"] = [make_model("b"), make_model("a")]
    design = Design.read(value)
    trials, order = Trials(design), Order(design)
    drawn = drawn_order(value)
    assert [order.index_of[trials.locate_block(*block)] for block, _ in drawn] == list(range(len(drawn)))
    names = [[design.arms[arm] for arm in order.arms_at(index)] for index in range(len(drawn))]
    assert names == [arms for _, arms in drawn]
    assert {model for (_, model, _), _ in drawn[: len(drawn) // 2]} == {"b"}


def _words(seed: int, count: int) -> list[int]:
    return [int(sha256(canonical([seed, "text", n]))[:16], 16) for n in range(count)]


@given(st.integers(0, 1000), st.integers(2**63 + 1, 2**64))
def test_words_past_the_last_multiple_of_the_bound_are_passed_over(seed: int, bound: int) -> None:
    """Of such a bound there is one multiple, so that up to half of all words are."""
    stream = Stream(seed, "text")
    wanted = [word for word in _words(seed, 20) if word < bound]
    assert [stream.below(bound) for _ in wanted] == wanted


def test_the_last_multiple_of_the_bound_itself_is_passed_over() -> None:
    words = {seed: _words(seed, 2) for seed in range(100)}
    seed, (bound, after) = next((seed, two) for seed, two in words.items() if two[0] > max(2**63, two[1]))
    assert Stream(seed, "text").below(bound) == after
