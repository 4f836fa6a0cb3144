"""What the runner refuses before there is a design: written by hand, it is none for the verifier either."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from money_stories import money_design
from primitives import Body, canonical

from proctor.core.reasons import Reason
from proctor.study import FrozenTask, Parts, freeze
from proctor.study.load import check_tables
from proctor_verify.designs_alone import judged

TABLES: dict[str, Any] = {
    "study": {"name": "s"},
    "tasks": {"questions": "units.jsonl"},
    "agent": {"name": "toolloop"},
    "arms": {"plain": {}},
    "models": {"luna": {"provider": "practice", "model": "practice-1"}},
    "stages": {
        "main": {
            "budget": {"allocation": "1", "cap": "1"},
            "expected_costs": {"luna": "1"},
            "caps": {"luna": "1"},
            "reserves": {"luna": "3"},
        }
    },
}


@dataclass(frozen=True)
class Wrong:
    """One thing, as a study says it, as a design would, and what the runner calls it."""

    reason: Reason
    study: Callable[[dict[str, Any]], object]
    design: Callable[[Body], object]
    tasks: tuple[str, ...] = ("a",)


def _budget(**amounts: Any) -> tuple[Callable[[Any], object], Callable[[Any], object]]:
    return (
        lambda tables: tables["stages"]["main"]["budget"].update(amounts),
        lambda design: design["budget"].update(amounts),
    )


def _nothing(tables: dict[str, Any]) -> None:
    """The tables are sound."""


CASES = {
    "an amount below zero": Wrong(Reason.MONEY_INVALID, *_budget(margin="-0.000000000001")),
    "an amount of 13 decimals": Wrong(Reason.MONEY_INVALID, *_budget(margin="0.0000000000001")),
    "an amount with an exponent": Wrong(Reason.MONEY_INVALID, *_budget(margin="1e-12")),
    "an amount that is a number": Wrong(Reason.MONEY_INVALID, *_budget(margin=1)),
    "a picodollar above 10^15 dollars": Wrong(Reason.MONEY_INVALID, *_budget(cap="1000000000000000.000000000001")),
    "a price above 10^15 dollars": Wrong(
        Reason.MONEY_INVALID,
        lambda t: t["models"]["luna"].update(
            price={"input": "1000000000000000.000000000001", "output": "1", "source": "a page"}
        ),
        lambda d: d["models"][0]["price"]["rows"][0].update(usd_per_million="1000000000000000.000000000001"),
    ),
    "no reserve factor": Wrong(Reason.INVALID_VALUE, *_budget(reserve_factor=0)),
    "a reserve factor below zero": Wrong(Reason.INVALID_VALUE, *_budget(reserve_factor=-0.5)),
    "a reserve factor that is text": Wrong(Reason.WRONG_TYPE, *_budget(reserve_factor="3")),
    "no epochs": Wrong(
        Reason.INVALID_VALUE,
        lambda t: t["stages"]["main"].update(epochs=0),
        lambda d: d["stage"].update(epochs=0),
    ),
    "epochs that are no whole number": Wrong(
        Reason.WRONG_TYPE,
        lambda t: t["stages"]["main"].update(epochs=1.5),
        lambda d: d["stage"].update(epochs=1.5),
    ),
    "replacements below zero": Wrong(
        Reason.INVALID_VALUE,
        lambda t: t["stages"]["main"].update(replacements=-1),
        lambda d: d["stage"].update(replacements=-1),
    ),
    "no output": Wrong(
        Reason.INVALID_VALUE,
        lambda t: t["models"]["luna"].update(max_output_tokens=0),
        lambda d: d["models"][0].update(max_output_tokens=0),
    ),
    "no arms": Wrong(Reason.INVALID_VALUE, lambda t: t.update(arms={}), lambda d: d.update(arms=[])),
    "a network that there is not": Wrong(
        Reason.INVALID_VALUE,
        lambda t: t.update(sandbox={"network": "some"}),
        lambda d: d["sandbox"].update(network="some"),
    ),
    "a tool that there is not": Wrong(
        Reason.UNKNOWN_NAME,
        lambda t: t["arms"]["plain"].update(tools=["magic"]),
        lambda d: d["arms"][0].update(tools=["magic"]),
    ),
    "a scorer that there is not": Wrong(
        Reason.INVALID_VALUE,
        lambda t: t.update(grading={"scorer": "magic"}),
        lambda d: d["questions"].update(scorer="magic"),
    ),
    "an anchor that is nowhere": Wrong(
        Reason.MISSING_KEY,
        lambda t: t.update(anchor={"required": True}),
        lambda d: d.update(anchor={"every_sec": 600, "required": True}),
    ),
    "an anchor that is pushed to all the time": Wrong(
        Reason.INVALID_VALUE,
        lambda t: t.update(anchor={"drop": "x", "every": "0s"}),
        lambda d: d.update(anchor={"drop": "x", "every_sec": 0, "required": False}),
    ),
    "no tasks": Wrong(Reason.NOTHING_SELECTED, _nothing, lambda d: d.update(tasks=[]), ()),
    "two tasks of one name": Wrong(
        Reason.TASK_DUPLICATE, _nothing, lambda d: d["tasks"].insert(0, d["tasks"][0]), ("a", "a")
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_no_design_is_frozen_and_none_is_read(name: str, tmp_path: Path) -> None:
    wrong, tables, design = CASES[name], copy.deepcopy(TABLES), money_design()
    (tmp_path / "units.jsonl").write_text("")
    wrong.study(tables)
    tasks = [FrozenTask(task, "0" * 64, "question", "units.jsonl") for task in wrong.tasks]
    frozen, refusals = freeze(check_tables(tables, tmp_path, None, "0" * 64), "main", Parts(tasks))
    assert frozen is None and [refusal.reason for refusal in refusals] == [wrong.reason]
    wrong.design(design)
    theirs = judged(canonical(design))
    assert (theirs.report.failed(), theirs.exit_status) == (["design.plan"], 1)


def test_what_those_are_made_of_is_sound(tmp_path: Path) -> None:
    (tmp_path / "units.jsonl").write_text("")
    tasks = [FrozenTask("a", "0" * 64, "question", "units.jsonl")]
    assert freeze(check_tables(TABLES, tmp_path, None, "0" * 64), "main", Parts(tasks))[1] == []
    assert judged(canonical(money_design())).exit_status == 0
