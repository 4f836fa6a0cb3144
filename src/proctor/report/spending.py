"""What a run was charged, against its caps and its ceiling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from proctor.core.money import ZERO, Usd
from proctor.evidence.fold import RunState
from proctor.report.text import dollars, safe
from proctor.study import Design


@dataclass(frozen=True)
class ModelSpend:
    """One model's money: charged, held by exchanges in flight, and its cap, None where the run has no budget."""

    model: str
    charged: Usd
    held: Usd
    cap: Usd | None


@dataclass(frozen=True)
class Spend:
    """A run's money now. `before` was spent before it; `cap` and `ceiling` are None where it has no budget."""

    models: tuple[ModelSpend, ...]
    before: Usd = ZERO
    cap: Usd | None = None
    ceiling: Usd | None = None
    synthetic: tuple[str, ...] = ()

    @property
    def charged(self) -> Usd:
        """What the run's exchanges were charged."""
        return Usd(sum(each.charged.pico for each in self.models))

    @property
    def held(self) -> Usd:
        """What is held for exchanges in flight."""
        return Usd(sum(each.held.pico for each in self.models))

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Spend:
        """Back from `as_record`, as another process answers it. Raises Refusal `money_invalid`."""
        models = tuple(
            ModelSpend(each["model"], Usd.parse(each["charged"]), Usd.parse(each["held"]), _amount(each["cap"]))
            for each in record["models"]
        )
        cap, ceiling = _amount(record["cap"]), _amount(record["ceiling"])
        return cls(models, Usd.parse(record["before"]), cap, ceiling, tuple(record["synthetic"]))

    def as_record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "before": str(self.before),
            "charged": str(self.charged),
            "held": str(self.held),
            "cap": None if self.cap is None else str(self.cap),
            "ceiling": None if self.ceiling is None else str(self.ceiling),
            "synthetic": list(self.synthetic),
            "models": [
                {
                    "model": each.model,
                    "charged": str(each.charged),
                    "held": str(each.held),
                    "cap": None if each.cap is None else str(each.cap),
                }
                for each in self.models
            ],
        }

    def line(self) -> str:
        """The whole in a few words, for live progress."""
        limits = ""
        if self.cap is not None and self.ceiling is not None:
            limits = f" of cap {dollars(self.cap)} (ceiling {dollars(self.ceiling)})"
        held = f", {dollars(self.held)} held" if self.held.pico else ""
        return f"{dollars(self.before + self.charged)}{limits}{held}{self._made_up}"

    @property
    def _made_up(self) -> str:
        if not self.synthetic:
            return ""
        return ", SYNTHETIC" if len(self.synthetic) == len(self.models) else ", partly SYNTHETIC"

    def lines(self) -> Iterator[str]:
        """A line for each model against its cap, and one for all against cap and ceiling."""
        for each in self.models:
            made_up = ", SYNTHETIC" if each.model in self.synthetic else ""
            cap = "" if each.cap is None else f" of its cap {dollars(each.cap)}"
            held = f", {dollars(each.held)} held" if each.held.pico else ""
            yield f"{safe(each.model)}: {dollars(each.charged)}{cap}{held}{made_up}"
        if self.cap is not None and self.ceiling is not None:
            before = f", {dollars(self.before)} of it before this run" if self.before.pico else ""
            total = dollars(self.before + self.charged)
            limits = f"the cap {dollars(self.cap)}, hard ceiling {dollars(self.ceiling)}"
            yield f"all: {total} of {limits}{before}{self._made_up}"


def _amount(text: str | None) -> Usd | None:
    return None if text is None else Usd.parse(text)


def spend(design: Design, charged: Mapping[str, Usd], held: Mapping[str, Usd]) -> Spend | None:
    """The money of a run by model, from what was charged and is held; None where the run has no model."""
    if not design.models:
        return None
    budget = design.budget
    caps = {} if budget is None else {money.name: Usd.parse(money.cap) for money in budget.models}
    names = [model.name for model in design.models]
    models = tuple(ModelSpend(name, charged.get(name, ZERO), held.get(name, ZERO), caps.get(name)) for name in names)
    if budget is None:
        return Spend(models, synthetic=design.synthetic)
    cap = Usd.parse(budget.cap)
    return Spend(models, Usd.parse(budget.spent_before), cap, cap + Usd.parse(budget.margin), design.synthetic)


def spend_of(design: Design, state: RunState) -> Spend | None:
    """The same from a run's evidence."""
    held: Counter[str] = Counter()
    for attempt in state.open.values():
        for model, pico in attempt.exchanges.values():
            held[model] += pico
    return spend(
        design,
        {model: Usd(pico) for model, pico in state.charged.items()},
        {model: Usd(pico) for model, pico in held.items()},
    )
