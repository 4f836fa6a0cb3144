"""The drawn order, against the frozen vectors that both programs share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from primitives import drawn_blocks

from proctor_verify.design import Design, Trials
from proctor_verify.order import drawn_places

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "vectors/order.json").read_bytes())


def _design(vector: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": 1,
        "study": {"name": "vectors"},
        "stage": {"name": vector["stage"], "epochs": vector["epochs"], "replacements": 0},
        "draw": {"seed": vector["seed"]},
        "tasks": [{"name": name} for name in vector["tasks"]],
        "models": [] if vector["model"] is None else [{"name": vector["model"]}],
        "arms": [{"name": name} for name in vector["arms"]],
    }


@pytest.mark.parametrize("vector", VECTORS, ids=[f"{i}" for i in range(len(VECTORS))])
def test_blocks_are_drawn_as_the_vectors_say(vector: dict[str, Any]) -> None:
    wanted = [(task, vector["model"], epoch) for task, epoch, _ in vector["blocks"]]
    value = _design(vector)
    assert drawn_blocks(value) == wanted

    design = Design.read(value)
    trials, places = Trials(design), drawn_places(design)
    assert [places[trials.locate_block(*block)] for block in wanted] == list(range(len(wanted)))


def test_indices_go_on_from_one_model_to_the_next() -> None:
    value = _design(VECTORS[1])
    value["models"] = [{"name": "b"}, {"name": "a"}]
    design = Design.read(value)
    trials, places = Trials(design), drawn_places(design)
    drawn = drawn_blocks(value)
    assert [places[trials.locate_block(*block)] for block in drawn] == list(range(len(drawn)))
    assert {model for _, model, _ in drawn[: len(drawn) // 2]} == {"b"}
