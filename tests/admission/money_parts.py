"""The money of a stage that holds every rule, and small changes of it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from proctor.admission.facts import MoneyFacts
from proctor.budget.rules import Frame
from proctor.core.money import ZERO, Usd
from proctor.core.prices import PriceRow, Prices
from proctor.study.actors import ModelDesign

PRICES = Prices("a page", (PriceRow("input", 0, "1.25"), PriceRow("output", 0, "10.00")))
FREE = Prices("a server of ours", (PriceRow("input", 0, "0"), PriceRow("output", 0, "0.000000000000")))


def model(name: str, prices: Prices = PRICES, *, synthetic: bool = False, key: str | None = None) -> ModelDesign:
    """One model as it is called."""
    return ModelDesign(name, "openai", f"{name}-1", "chat", None, None, 1000, 180, key, None, None, prices, synthetic)


def usd(text: str) -> Usd:
    return Usd.parse(text)


BUDGET = Frame(ZERO, usd("144.00"), usd("150.00"), usd("25.00"), usd("0.01"), usd("0.001"), Fraction(3))
# by the formulas exactly: 144 x 36 / 48 and 144 x 12 / 48, 3 x 36 / 360 and 3 x 12 / 360
MONEY = MoneyFacts(
    stage="main",
    names=("luna", "moon"),
    models=(model("luna"), model("moon", FREE)),
    budget=BUDGET,
    expected_costs={"luna": usd("36.00"), "moon": usd("12.00")},
    caps={"luna": usd("108.00"), "moon": usd("36.00")},
    reserves={"luna": usd("0.300"), "moon": usd("0.100")},
    blocks=360,
    arms=2,
    lanes=2,
)


def with_budget(money: MoneyFacts, **changed: Any) -> MoneyFacts:
    """With other amounts in `[budget]`."""
    assert money.budget is not None
    return replace(money, budget=replace(money.budget, **changed))


def with_amount(money: MoneyFacts, table: str, name: str, amount: str) -> MoneyFacts:
    """With another amount of one model."""
    return replace(money, **{table: {**getattr(money, table), name: usd(amount)}})


def worthless(money: MoneyFacts) -> MoneyFacts:
    """Expected to cost nothing, and everything else as it would follow from that."""
    nothing = dict.fromkeys(money.names, ZERO)
    return replace(money, expected_costs=nothing, caps=nothing, reserves=nothing)


def one_block(money: MoneyFacts) -> MoneyFacts:
    """A stage of one block, whose reserve by its formula is more than its model's share of the allocation."""
    small = with_budget(money, allocation=usd("2"))
    return replace(
        small,
        expected_costs={"luna": usd("1"), "moon": ZERO},
        caps={"luna": usd("2"), "moon": ZERO},
        reserves={"luna": usd("3"), "moon": ZERO},
        blocks=1,
    )
