"""Small designs for generated runs, frozen by the runner: prices in tiers, tight money, rules at a threshold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from primitives import money, sha256

from proctor.core.prices import PriceRow, Prices
from proctor.study import Design, FrozenTask, ModelDesign, Parts, freeze
from proctor.study.design import QuestionsDesign
from proctor.study.load import check_tables

# Where tiers start, in tokens that go in: bounds and usages lie around them.
TIERS = (50, 100)
RULES = ("reward >= 0.5", "reward > 0.5", "reward == 1", "reward >= 1e-1", "acc >= 1")
_PER_MILLION = ("0.000001000000", "0.333333333333", "1.000000000000", "2.500000000001", "1000000.000000000000")


@st.composite
def designs(draw: st.DrawFn, folder: Path) -> Design:
    """A stage of up to three tasks and rows, two epochs, two arms and two models, with a budget where any costs."""
    names = [f"m{number}" for number in range(draw(st.sampled_from((0, 1, 1, 1, 2, 2))))]
    models = {name: _model(draw, name) for name in names}
    arms: dict[str, Any] = {"plain": {}}
    if draw(st.booleans()):
        arms["short"] = {"model": {"max_output_tokens": 30}} if draw(st.booleans()) else {}
    stage: dict[str, Any] = {
        "epochs": draw(st.integers(1, 2)),
        "replacements": draw(st.integers(0, 2)),
    }
    tables: dict[str, Any] = {
        "study": {"name": "s"},
        "tasks": {"questions": "units.jsonl"},
        "draw": {"seed": draw(st.integers(0, 3))},
        "agent": {"name": "oracle", "timeout": "60s"},
        "sandbox": {"kind": "namespace", "network": "none"},
        "grading": {"solved": draw(st.sampled_from(RULES))},
        "arms": arms,
        "models": {name: {"provider": "openai", "model": "m", "max_output_tokens": 60} for name in names},
        "stages": {"main": stage},
    }
    if models:
        _budget(draw, stage, models)
    loaded = check_tables(tables, folder, None, "0" * 64)
    parts = Parts(_tasks(draw), models, (), QuestionsDesign("units.jsonl", "0" * 64, "exact", 30))
    design, refusals = freeze(loaded, "main", parts)
    assert design is not None, refusals
    return design


def _tasks(draw: st.DrawFn) -> list[FrozenTask]:
    kinds = draw(st.lists(st.sampled_from(("question", "harbor")), min_size=1, max_size=3))
    paths = {"question": "units.jsonl", "harbor": "tasks/t"}
    return [FrozenTask(f"t{n}", sha256(b"%d" % n), kind, paths[kind]) for n, kind in enumerate(kinds)]


def _model(draw: st.DrawFn, name: str) -> ModelDesign:
    amounts = st.sampled_from(_PER_MILLION)
    rows = [PriceRow(bucket, 0, draw(amounts)) for bucket in ("input", "output")]
    rows += [
        PriceRow(bucket, start, draw(amounts))
        for bucket in ("input", "output", "cache_read")
        for start in draw(st.sampled_from(((), (TIERS[0],), TIERS)))
        if bucket != "cache_read"
    ]
    if draw(st.booleans()):
        rows += [PriceRow(bucket, 0, draw(amounts)) for bucket in ("cache_read", "cache_write_1h", "reasoning")]
    per_request = draw(st.sampled_from((None, None, "0.000000000001", "0.000100000000")))
    price = Prices("made up", tuple(rows), per_request)
    return ModelDesign(name, "openai", "m", "anthropic", None, None, 60, 60, None, None, None, price)


def _budget(draw: st.DrawFn, stage: dict[str, Any], models: dict[str, ModelDesign]) -> None:
    """Quanta are wide, so that caps and reserves may be what makes a run come to its ends."""
    step = st.sampled_from((-1, 0, 0, 1))
    worst = {name: model.price.worst_case(60, 60).pico for name, model in models.items()}
    reserves = {name: max(0, draw(st.sampled_from((0, 1, 2))) * amount + draw(step)) for name, amount in worst.items()}
    caps = {
        name: max(reserve, reserve * draw(st.integers(1, 3)) + draw(st.sampled_from((0, 1, 3))) * worst[name])
        for name, reserve in reserves.items()
    }
    spent_before = draw(st.sampled_from((0, 1, 10**9)))
    cap = spent_before + draw(st.integers(1, 4)) * max(*reserves.values(), 1) + draw(step)
    margin = max(0, draw(st.sampled_from((0, 1, 2))) * max(worst.values()) + draw(step))
    if spent_before >= cap + margin:
        margin += spent_before + 1
    stage["budget"] = {
        "spent_before": money(spent_before),
        "allocation": money(0),
        "cap": money(cap),
        "margin": money(margin),
        "cap_quantum": money(10**27),
        "reserve_quantum": money(10**27),
        "reserve_factor": 1,
    }
    stage["expected_costs"] = dict.fromkeys(models, money(1))
    stage["caps"] = {name: money(amount) for name, amount in caps.items()}
    stage["reserves"] = {name: money(amount) for name, amount in reserves.items()}
