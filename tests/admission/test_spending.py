"""What a run can cost at most, as it is said before it starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from money_parts import FREE, MONEY, model, usd

from proctor.admission.facts import Facts, FolderFacts, Request
from proctor.admission.spending import at_most, nobody
from proctor.core.money import Usd
from proctor.study.actors import ModelDesign
from proctor.study.design import BudgetDesign, Design, ModelMoney
from run_parts import design

FACTS = Facts(Request("run", Path("runs/x")), money=MONEY)


def budget(spent_before: str = "0") -> BudgetDesign:
    shares = [
        ModelMoney(name, str(MONEY.expected_costs[name]), str(MONEY.caps[name]), str(MONEY.reserves[name]), 360)
        for name in MONEY.names
    ]
    amounts = [str(usd(amount)) for amount in (spent_before, "144", "150", "25", "0.01", "0.001")]
    return BudgetDesign(*amounts, 3, tuple(shares))


def frozen(*models: ModelDesign, tasks: int = 120, arms: int = 2, spent_before: str = "0") -> Design:
    names = [f"t{number}" for number in range(tasks)]
    bare = design(names, ["plain", "skilled"][:arms], epochs=3)
    return replace(bare, models=models, budget=budget(spent_before))


LUNA, MOON = model("luna"), model("moon")


def test_the_whole_stage() -> None:
    spending = at_most(FACTS, frozen(LUNA, MOON))
    assert spending is not None
    assert (spending.expected, spending.cap, spending.ceiling) == (usd("48"), usd("150"), usd("175"))
    assert (spending.spent, spending.at_most, spending.is_real) == (usd("0"), usd("175"), True)
    assert spending.sentence() == (
        "hints / main can cost at most 175.00 USD (expected 48.00, cap 150.00, hard ceiling 175.00)"
    )


@pytest.mark.parametrize(
    ("tasks", "arms", "models", "expected"),
    [(10, 2, (LUNA, MOON), "4"), (120, 1, (LUNA, MOON), "24"), (120, 2, (LUNA,), "36"), (10, 1, (MOON,), "0.5")],
)
def test_a_selection_is_expected_to_cost_its_part(
    tasks: int, arms: int, models: tuple[ModelDesign, ...], expected: str
) -> None:
    spending = at_most(FACTS, frozen(*models, tasks=tasks, arms=arms))
    assert spending is not None
    assert spending.expected == usd(expected)
    assert spending.at_most == usd("175")


def test_what_is_spent_already_is_left_out() -> None:
    folder = FolderFacts(admitted=True, charged=usd("12.5"))
    spending = at_most(replace(FACTS, folder=folder), frozen(LUNA, MOON, spent_before="100"))
    assert spending is not None
    assert (spending.spent, spending.at_most) == (usd("112.5"), usd("62.5"))
    assert "112.50 of it spent already" in spending.sentence()
    beyond = at_most(replace(FACTS, folder=replace(folder, charged=usd("80"))), frozen(LUNA, spent_before="100"))
    assert beyond is not None
    assert beyond.at_most == Usd(0)


def test_where_nothing_costs_anything_nothing_is_said() -> None:
    assert at_most(FACTS, frozen(model("luna", FREE))) is None
    assert at_most(FACTS, replace(frozen(LUNA), budget=None)) is None


def test_made_up_costs_are_called_so_and_nobody_has_to_agree() -> None:
    made_up = model("luna", synthetic=True)
    spending = at_most(FACTS, frozen(made_up))
    assert spending is not None
    assert not spending.is_real
    assert "SYNTHETIC, no real money: all of it" in spending.sentence()
    mixed = at_most(FACTS, frozen(made_up, MOON))
    assert mixed is not None
    assert mixed.is_real
    assert "SYNTHETIC, no real money: luna" in mixed.sentence()
    assert mixed.as_record()["synthetic"] == ["luna"]


async def test_nobody_agrees_by_default() -> None:
    spending = at_most(FACTS, frozen(LUNA))
    assert spending is not None
    assert await nobody(spending) is False
