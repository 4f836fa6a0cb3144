"""What a run can cost at most: said before it starts, put on the record, and agreed to by somebody."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from proctor.admission.facts import Facts
from proctor.budget.rules import is_free
from proctor.core.money import ZERO, Usd, exact_dollars
from proctor.study.design import Design


@dataclass(frozen=True)
class AtMost:
    """What is at stake in one run.

    `models` are those selected that can cost anything, and `synthetic` those of them whose costs are made up.
    `expected` is of all selected trials, what is done already included; `spent` is what was spent before the run and
    in it so far; `at_most` is what is left of the hard ceiling.
    """

    study: str
    stage: str
    models: tuple[str, ...]
    synthetic: tuple[str, ...]
    expected: Usd
    cap: Usd
    ceiling: Usd
    spent: Usd
    at_most: Usd

    @property
    def is_real(self) -> bool:
        """Whether somebody will have to pay for it: a model that is made up sends no bill."""
        return set(self.models) > set(self.synthetic)

    def sentence(self) -> str:
        """For people, on one line."""
        so_far = f", {exact_dollars(self.spent)} of it spent already" if self.spent > ZERO else ""
        made_up = ""
        if self.synthetic:
            whose = "all of it" if not self.is_real else ", ".join(self.synthetic)
            made_up = f"; SYNTHETIC, no real money: {whose}"
        return (
            f"{self.study} / {self.stage} can cost at most {exact_dollars(self.at_most)} USD"
            f" (expected {exact_dollars(self.expected)}, cap {exact_dollars(self.cap)},"
            f" hard ceiling {exact_dollars(self.ceiling)}{so_far}){made_up}"
        )

    def as_record(self) -> dict[str, Any]:
        """For the manifest: amounts with 12 decimals."""
        amounts = ("expected", "cap", "ceiling", "spent", "at_most")
        return {
            "models": list(self.models),
            "synthetic": list(self.synthetic),
            **{name: str(getattr(self, name)) for name in amounts},
        }


Confirm = Callable[[AtMost], Coroutine[Any, Any, bool]]


async def nobody(_: AtMost) -> bool:
    """Where nobody can be asked, nobody agrees."""
    return False


def at_most(facts: Facts, design: Design) -> AtMost | None:
    """What the selected models can cost; None where they cost nothing, or no budget says."""
    budget, money = design.budget, facts.money
    costing = tuple(model for model in design.models if not is_free(model.price))
    if budget is None or money is None or not costing:
        return None
    trials = len(design.tasks) * design.stage.epochs * len(design.arms)
    whole = money.blocks * money.arms
    expected = sum(Usd.parse(share.expected).pico for share in budget.models if share.name in _names(design))
    spent = Usd.parse(budget.spent_before) + facts.folder.charged
    cap = Usd.parse(budget.cap)
    ceiling = cap + Usd.parse(budget.margin)
    return AtMost(
        study=design.study.name,
        stage=design.stage.name,
        models=tuple(model.name for model in costing),
        synthetic=tuple(model.name for model in costing if model.synthetic),
        expected=Usd(-(-expected * trials // whole)),
        cap=cap,
        ceiling=ceiling,
        spent=spent,
        at_most=max(ZERO, ceiling - spent),
    )


def _names(design: Design) -> set[str]:
    return {model.name for model in design.models}
