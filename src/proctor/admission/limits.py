"""From the frozen budget of a design to the limits that its ceiling holds."""

from __future__ import annotations

from proctor.budget.ceiling import Limits, ModelLimits
from proctor.core.money import Usd
from proctor.study import Design


def limits_of(design: Design) -> Limits | None:
    """The limits; None where the design has no budget, and nothing that costs can be called."""
    budget = design.budget
    if budget is None:
        return None
    return Limits(
        spent_before=Usd.parse(budget.spent_before),
        cap=Usd.parse(budget.cap),
        margin=Usd.parse(budget.margin),
        models={
            money.name: ModelLimits(Usd.parse(money.cap), Usd.parse(money.reserve))
            for money in budget.models
            if any(model.name == money.name for model in design.models)
        },
    )
