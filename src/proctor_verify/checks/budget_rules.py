"""The rules of a budget, one check each, under the names that the runner's guards on money have.

Each is multiplied out, so that all is whole numbers but the reserve factor. A budget that is not whole has nothing to
be compared by: the rules on the amounts of its models pass over it then. Where no cost is expected at all, any cap is
in proportion.
"""

from __future__ import annotations

from collections.abc import Iterator

from proctor_verify.checks.design import DesignRule
from proctor_verify.design import Design
from proctor_verify.design_parts import Budget, Share
from proctor_verify.prices import usd


class BudgetThere(DesignRule):
    id = "budget.there"
    doc = "a design with a model that costs anything has a budget"
    noun = "models"

    def judge(self, design: Design) -> None:
        self.looked = len(design.parts.models)
        if design.parts.budget is None:
            for name, model in design.parts.models.items():
                if not model.prices.free:
                    self.fail("design.json", f"has no budget, and {name} costs money")


class _Rule(DesignRule):
    """A rule that a design with a budget keeps."""

    noun = "budgets"

    def judge(self, design: Design) -> None:
        if design.parts.budget is not None:
            self.looked = 1
            for fault in self.faults(design, design.parts.budget):
                self.fail("design.json", fault)

    def faults(self, design: Design, budget: Budget) -> Iterator[str]:
        """What breaks the rule."""
        raise NotImplementedError


class BudgetWhole(_Rule):
    id = "budget.whole"
    doc = (
        "the budget is of exactly the design's models, and counts the blocks that are planned of each; under a "
        "selection there may be more of either"
    )

    def faults(self, design: Design, budget: Budget) -> Iterator[str]:
        return _unplanned(design, budget)


class _AmountsRule(_Rule):
    """A rule between the amounts of the models, which need to be all there."""

    def faults(self, design: Design, budget: Budget) -> Iterator[str]:
        if next(_unplanned(design, budget), None) is not None:
            return  # said by budget.whole
        total = sum(share.expected for share in budget.shares.values())
        yield from self.broken(budget, total)

    def broken(self, budget: Budget, total: int) -> Iterator[str]:
        """What breaks the rule, of all models; `total` is the sum of what they are expected to cost."""
        for name, share in budget.shares.items():
            if not self.holds(budget, share, total):
                yield self.words(name, share)

    def holds(self, budget: Budget, share: Share, total: int) -> bool:
        """Whether it holds for one model."""
        raise NotImplementedError

    def words(self, name: str, share: Share) -> str:
        """What is said where it does not."""
        raise NotImplementedError


class ExpectedPositive(_AmountsRule):
    id = "budget.expected-positive"
    doc = "the models of a budget are expected to cost more than nothing"

    def broken(self, budget: Budget, total: int) -> Iterator[str]:
        if budget.shares and not total:
            yield "expects no cost at all"


class CapsProportional(_AmountsRule):
    id = "budget.caps-proportional"
    doc = "each model's cap is its share of the allocation by expected cost, within half of `cap_quantum`"

    def holds(self, budget: Budget, share: Share, total: int) -> bool:
        return 2 * abs(share.cap * total - budget.allocation * share.expected) <= budget.cap_quantum * total

    def words(self, name: str, share: Share) -> str:
        return f"has a cap of {usd(share.cap)} for {name}, which is not its share of the allocation"


class ReservesProportional(_AmountsRule):
    id = "budget.reserves-proportional"
    doc = (
        "each model's reserve is `reserve_factor` times the expected cost of a block, within half of `reserve_quantum`"
    )

    def holds(self, budget: Budget, share: Share, total: int) -> bool:
        off = abs(share.reserve * share.blocks - budget.factor * share.expected)
        return 2 * off <= budget.reserve_quantum * share.blocks

    def words(self, name: str, share: Share) -> str:
        return f"has a reserve of {usd(share.reserve)} for {name}, which is not that of its expected cost"


class ReservesInCaps(_AmountsRule):
    id = "budget.reserves-in-caps"
    doc = "no model's reserve is above its cap"

    def holds(self, budget: Budget, share: Share, total: int) -> bool:
        return share.reserve <= share.cap

    def words(self, name: str, share: Share) -> str:
        return f"has a reserve of {usd(share.reserve)} for {name}, above its cap of {usd(share.cap)}"


class AllocationInCap(_Rule):
    id = "budget.allocation-in-cap"
    doc = "the allocation is not above the cap"

    def faults(self, design: Design, budget: Budget) -> Iterator[str]:
        if budget.allocation > budget.cap:
            yield f"has an allocation of {usd(budget.allocation)}, above the cap of {usd(budget.cap)}"


class PriorSpendCounted(_Rule):
    id = "budget.prior-spend-counted"
    doc = "what is declared as spent before is counted in `spent_before`"

    def faults(self, design: Design, budget: Budget) -> Iterator[str]:
        if budget.spent_before < budget.prior:
            yield f"counts {usd(budget.spent_before)} as spent before, and declares {usd(budget.prior)}"


class CeilingFree(_Rule):
    id = "budget.ceiling-free"
    doc = "where there are models, what was spent before is below the ceiling"

    def faults(self, design: Design, budget: Budget) -> Iterator[str]:
        if design.parts.models and budget.spent_before >= budget.ceiling:
            yield f"has {usd(budget.spent_before)} spent before, which reaches the ceiling of {usd(budget.ceiling)}"


RULES: tuple[type[DesignRule], ...] = (
    BudgetThere,
    BudgetWhole,
    ExpectedPositive,
    CapsProportional,
    ReservesProportional,
    AllocationInCap,
    ReservesInCaps,
    PriorSpendCounted,
    CeilingFree,
)


def _unplanned(design: Design, budget: Budget) -> Iterator[str]:
    names, shares = design.parts.models.keys(), budget.shares
    planned = len(design.tasks) * design.epochs
    if not names <= shares.keys() or (design.selection is None and names != shares.keys()):
        yield "has a budget of other models than the stage's"
    for name, share in shares.items():
        if share.blocks < planned or (share.blocks > planned and design.selection is None):
            yield f"counts {share.blocks} blocks of {name}, and plans {planned}"
