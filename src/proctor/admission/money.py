"""The money of a stage: from the study's tables to facts, and from facts to amounts that rules can be held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from proctor.admission.facts import KeyFacts, MoneyFacts
from proctor.budget.rules import Amounts, Frame, Share, is_free
from proctor.core.money import ZERO, Usd
from proctor.study.actors import ModelDesign
from proctor.study.names import stage_arms, stage_models
from proctor.study.schema import StudyFile
from proctor.study.schema.stages import Budget


def money_facts(file: StudyFile, stage: str, models: Sequence[ModelDesign], tasks: int) -> MoneyFacts:
    """What the study says of a stage's money.

    Args:
        file: the study.
        stage: a stage that it has.
        models: all models of the stage that could be resolved, whatever the command line selects.
        tasks: how many tasks and rows the study and the stage select, before any limit.
    """
    table = file.stages[stage]
    return MoneyFacts(
        stage=stage,
        names=stage_models(file, table),
        models=tuple(models),
        budget=None if table.budget is None else _frame(table.budget),
        expected_costs=table.expected_costs,
        caps=table.caps,
        reserves=table.reserves,
        blocks=tasks * table.epochs,
        arms=len(stage_arms(file, table)),
        lanes=table.lanes,
        prior_spend=file.prior_spend.amount if file.prior_spend is not None else None,
    )


def key_facts(models: Sequence[ModelDesign], environ: Mapping[str, str]) -> tuple[KeyFacts, ...]:
    """Whether the keys of the selected models are there; an empty variable holds none."""
    named = [(model.name, model.api_key_env) for model in models]
    return tuple(
        KeyFacts(name, variable, bool(environ.get(variable, "").strip()))
        for name, variable in named
        if variable is not None
    )


def priced(money: MoneyFacts) -> tuple[str, ...]:
    """The stage's models that can cost anything."""
    return tuple(model.name for model in money.models if not is_free(model.price))


def _frame(budget: Budget) -> Frame:
    return Frame(
        spent_before=budget.spent_before,
        allocation=budget.allocation,
        cap=budget.cap,
        margin=budget.margin,
        cap_quantum=budget.cap_quantum,
        reserve_quantum=budget.reserve_quantum,
        # of the text that was written: 0.1 is a tenth here, and not the float next to it
        reserve_factor=Fraction(str(budget.reserve_factor)),
    )


def amounts_of(money: MoneyFacts) -> Amounts | None:
    """All amounts, or None where some are missing or belong to no model: there is nothing to compute with then."""
    tables = (money.expected_costs, money.caps, money.reserves)
    if money.budget is None or not money.names or money.blocks < 1:
        return None
    if any(table.keys() != set(money.names) for table in tables):
        return None
    shares = {
        name: Share(money.expected_costs[name], money.caps[name], money.reserves[name], money.blocks)
        for name in money.names
    }
    return Amounts(money.budget, shares)


def floor_of_spending(money: MoneyFacts) -> Usd:
    """What is known to be spent before the stage."""
    return money.prior_spend if money.prior_spend is not None else ZERO
