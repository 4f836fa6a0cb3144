"""The money of a study's stages, sized: from what is expected of each model to the study file that says it.

Reads only: what is written, and whether, is the caller's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proctor.admission.admit import check
from proctor.admission.facts import Facts, MoneyFacts, Request
from proctor.admission.money import floor_of_spending, priced
from proctor.admission.money_guards import MONEY
from proctor.budget.rules import Amounts, is_free
from proctor.budget.sizing import CAP_QUANTUM, RESERVE_QUANTUM, Kept, Work, guessed_exchange, scaled, size
from proctor.core.money import ZERO, Usd, exact_dollars
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.fold import RunState
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_entries
from proctor.evidence.runfolder import RunFolder
from proctor.study.actors import ModelDesign
from proctor.study.design import read_design
from proctor.study.edit import with_amounts

# what is wrong with these leaves nothing to count or to price
_NEEDED = frozenset(
    {
        *("study-sound", "study-in-this-version", "tasks-readable", "tasks-selected", "questions-sound"),
        *("models-callable", "model-named", "model-used"),
    }
)


@dataclass(frozen=True)
class Piloted:
    """What a run tells of one model: how it was called, what its trials came to, the largest hold of an exchange."""

    provider: str
    model: str
    trials: int
    charged: Usd
    exchange: Usd


@dataclass(frozen=True)
class StagePlan:
    """A stage with its money. `sources` says of each model where its expected cost is from.

    `amounts` is None where nothing is priced. `refusals` say why there is no plan, or what of it no run would take.
    """

    study: str
    stage: str
    models: tuple[str, ...] = ()
    work: Work = field(default_factory=lambda: Work(0, 0, 0))
    amounts: Amounts | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    synthetic: tuple[str, ...] = ()
    has_budget: bool = False
    refusals: tuple[Refusal, ...] = ()

    @property
    def trials(self) -> int:
        """All trials of the stage."""
        return self.work.trials * max(1, len(self.models))

    @property
    def blocks(self) -> int:
        """All blocks of the stage."""
        return self.work.blocks * max(1, len(self.models))

    @property
    def at_most(self) -> Usd | None:
        """What a run of the stage can cost at most."""
        if self.amounts is None:
            return None
        return max(ZERO, self.amounts.frame.ceiling - self.amounts.frame.spent_before)

    def tables(self) -> dict[str, dict[str, str]]:
        """The stage's tables with these amounts; the budget only where the study gives none."""
        if self.amounts is None:
            return {}
        frame, shares = self.amounts.frame, self.amounts.shares
        tables: dict[str, dict[str, str]] = {}
        if not self.has_budget:
            tables["budget"] = {
                "spent_before": exact_dollars(frame.spent_before),
                "allocation": exact_dollars(frame.allocation),
                "cap": exact_dollars(frame.cap),
                "margin": exact_dollars(frame.margin),
            }
            if (frame.cap_quantum, frame.reserve_quantum) != (CAP_QUANTUM, RESERVE_QUANTUM):
                tables["budget"] |= {
                    "cap_quantum": exact_dollars(frame.cap_quantum),
                    "reserve_quantum": exact_dollars(frame.reserve_quantum),
                }
        tables["expected_costs"] = {name: exact_dollars(share.expected) for name, share in shares.items()}
        tables["caps"] = {name: exact_dollars(share.cap) for name, share in shares.items()}
        tables["reserves"] = {name: exact_dollars(share.reserve) for name, share in shares.items()}
        return tables

    def edit(self, text: str) -> str:
        """The study file with these amounts."""
        return text if self.amounts is None else with_amounts(text, self.stage, self.tables())


def read_pilot(run: Path) -> dict[str, Piloted]:
    """What a run's evidence tells of its models, by name.

    All that was charged counts, also for attempts that were replaced or could not be graded; trials count that were
    attempted and have their final.

    Raises:
        Refusal: RUN_NOT_FOUND, or the evidence cannot be read.
    """
    folder = RunFolder(run)
    if not folder.is_admitted():
        raise Refusal(Reason.RUN_NOT_FOUND, "no admitted run is in this folder", path=str(run))
    design = read_design(folder.design_path)
    state, largest = RunState(), dict[str, Usd]()
    for entry in read_entries(folder.journal_path, validate=False):
        state.apply(entry.kind, entry.body)
        if entry.kind is Kind.EXCHANGE_ADMITTED:
            model, held = entry.body["model"], Usd.parse(entry.body["held"])
            largest[model] = max(held, largest.get(model, ZERO))
    trials: Counter[str] = Counter()
    for cell, counts in state.counts.items():
        if cell is not None and cell.model is not None:
            trials[cell.model] += counts.grades.total()
    return {
        model.name: Piloted(
            model.provider,
            model.model,
            trials[model.name],
            Usd(state.charged[model.name]),
            largest.get(model.name, ZERO),
        )
        for model in design.models
        if trials[model.name]
    }


def plan_stage(request: Request, assumed: Mapping[str, Usd], pilot: Mapping[str, Piloted]) -> StagePlan:
    """Size one stage.

    Args:
        request: names the study and the stage, and narrows nothing.
        assumed: expected costs that hold over those of a pilot and of the study, by model.
        pilot: what a pilot run tells, which holds over the study.
    """
    verdict = check(request)
    gathered = verdict.gathered
    design = None if gathered is None else gathered.design
    money = None if gathered is None else gathered.facts.money
    in_the_way = tuple(refusal for refusal in verdict.refusals if refusal.guard in _NEEDED)
    stage = request.stage or ""
    if design is None or in_the_way:
        return StagePlan("", stage, refusals=in_the_way or verdict.refusals)
    if money is None:
        whole = Work(len(design.tasks) * design.stage.epochs, len(design.arms), design.stage.lanes)
        return StagePlan(design.study.name, design.stage.name, work=whole)
    work = Work(money.blocks, money.arms, money.lanes)
    made_up = tuple(model.name for model in money.models if model.synthetic)
    found = StagePlan(
        design.study.name,
        money.stage,
        money.names,
        work,
        synthetic=made_up,
        has_budget=money.budget is not None,
    )
    if not priced(money) and money.budget is None:
        return found
    expected, sources, missing = _expected(money, work, assumed, pilot)
    if missing:
        return replace(found, refusals=(_missing(money, missing),))
    kept = Kept(money.budget, money.caps, money.reserves, floor_of_spending(money))
    try:
        amounts = size(expected, work, kept, _exchanges(money.models, pilot))
    except Refusal as refusal:
        return replace(found, sources=sources, refusals=(refusal,))
    return replace(found, amounts=amounts, sources=sources, refusals=_judged(request, money, amounts))


def _expected(
    money: MoneyFacts, work: Work, assumed: Mapping[str, Usd], pilot: Mapping[str, Piloted]
) -> tuple[dict[str, Usd], dict[str, str], list[str]]:
    """Expected costs, where each is from, and the models of which nothing is known."""
    expected: dict[str, Usd] = {}
    sources: dict[str, str] = {}
    missing = []
    for model in money.models:
        name = model.name
        told = _told(pilot, model)
        if name in assumed:
            expected[name], sources[name] = assumed[name], "assumed"
        elif told is not None:
            expected[name] = scaled(told.charged, told.trials, work.trials)
            sources[name] = f"pilot, {exact_dollars(told.charged)} in {told.trials} trials"
        elif name in money.expected_costs:
            expected[name], sources[name] = money.expected_costs[name], "the study"
        elif is_free(model.price):
            expected[name], sources[name] = ZERO, "its prices are zero"
        else:
            missing.append(name)
    return expected, sources, missing


def _told(pilot: Mapping[str, Piloted], model: ModelDesign) -> Piloted | None:
    """The pilot's word on a model, if it called the same one under that name."""
    found = pilot.get(model.name)
    return found if found is not None and (found.provider, found.model) == (model.provider, model.model) else None


def _exchanges(models: tuple[ModelDesign, ...], pilot: Mapping[str, Piloted]) -> dict[str, Usd]:
    known: dict[str, Usd] = {}
    for model in models:
        told = _told(pilot, model)
        worst = told.exchange if told is not None else guessed_exchange(model.price, model.max_output_tokens)
        if worst is not None:
            known[model.name] = worst
    return known


def _missing(money: MoneyFacts, models: list[str]) -> Refusal:
    return Refusal(
        Reason.BUDGET_INCOMPLETE,
        f"nothing says what {', '.join(models)} may cost in the stage {money.stage!r}",
        path=f"stages.{money.stage}.expected_costs",
        observed=sorted(money.expected_costs),
        required=models,
        remedy=f"Run a few trials and give that run with --pilot RUN, or say what the whole stage costs for the model: "
        f"--assume {models[0]}=USD, or `{models[0]}` in [stages.{money.stage}.expected_costs].",
    )


def _judged(request: Request, money: MoneyFacts, amounts: Amounts) -> tuple[Refusal, ...]:
    """What the guards on money say of the plan: amounts that the study gives can stand against each other."""
    shares = amounts.shares
    planned = replace(
        money,
        budget=amounts.frame,
        expected_costs={name: share.expected for name, share in shares.items()},
        caps={name: share.cap for name, share in shares.items()},
        reserves={name: share.reserve for name, share in shares.items()},
    )
    return tuple(MONEY.run(Facts(request, money=planned)))


def as_record(plan: StagePlan) -> dict[str, Any]:
    """For JSON: amounts with 12 decimals; null where nothing is priced."""
    amounts = plan.amounts
    body: dict[str, Any] = {
        "study": plan.study,
        "stage": plan.stage,
        "trials": plan.trials,
        "synthetic": list(plan.synthetic),
        "refusals": [refusal.as_record() for refusal in plan.refusals],
        "budget": None,
        "models": [],
    }
    if amounts is not None:
        frame = amounts.frame
        body["budget"] = {
            "spent_before": str(frame.spent_before),
            "expected": str(amounts.total),
            "allocation": str(frame.allocation),
            "cap": str(frame.cap),
            "margin": str(frame.margin),
            "ceiling": str(frame.ceiling),
            "at_most": str(plan.at_most),
        }
        body["models"] = [
            {
                "name": name,
                "expected": str(share.expected),
                "source": plan.sources[name],
                "cap": str(share.cap),
                "reserve": str(share.reserve),
                "blocks": share.blocks,
            }
            for name, share in amounts.shares.items()
        ]
    return body
