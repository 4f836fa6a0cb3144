"""Guards on money: what must hold of a budget before anything is spent. The rules are in `budget.rules`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from proctor.admission.facts import Facts, MoneyFacts
from proctor.admission.money import amounts_of, floor_of_spending, priced
from proctor.budget.rules import Amounts, Share, rounded_up
from proctor.core.guards import Registry
from proctor.core.money import ZERO, Usd, exact_dollars
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

MONEY: Registry[Facts] = Registry()
guard = MONEY.guard


@guard("budget-there", "A stage with a model that costs anything has a budget.", Reason.BUDGET_ABSENT)
def budget_there(facts: Facts) -> Iterable[Refusal]:
    """Without one nothing would stop it."""
    money = facts.money
    if money is None or money.budget is not None:
        return
    if costing := priced(money):
        yield Refusal(
            Reason.BUDGET_ABSENT,
            f"the stage {money.stage!r} has models that cost money, and no budget",
            path=_path(money, "budget"),
            observed=list(costing),
            required=["allocation", "cap", "margin"],
        )


@guard(
    "budget-whole",
    "Expected costs, caps and reserves are given for exactly the models of the stage.",
    Reason.BUDGET_INCOMPLETE,
)
def budget_whole(facts: Facts) -> Iterable[Refusal]:
    """Judged before any arithmetic."""
    money = facts.money
    if money is None or money.budget is None:
        return
    tables = {"expected_costs": money.expected_costs, "caps": money.caps, "reserves": money.reserves}
    for key, table in tables.items():
        missing = [name for name in money.names if name not in table]
        extra = [name for name in table if name not in money.names]
        if missing or extra:
            what = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has {', '.join(extra)} too"] * bool(extra)
            yield Refusal(
                Reason.BUDGET_INCOMPLETE,
                f"`{_path(money, key)}` {' and '.join(what)}",
                path=_path(money, key),
                observed=sorted(table),
                required=sorted(money.names),
            )


@guard("expected-positive", "The expected cost of a stage with a budget is above zero.", Reason.BUDGET_INCONSISTENT)
def expected_positive(facts: Facts) -> Iterable[Refusal]:
    """Caps are shares of it."""
    both = _both(facts)
    if both is not None and both[1].total == ZERO:
        yield Refusal(
            Reason.BUDGET_INCONSISTENT,
            "the expected costs of the stage come to nothing",
            path=_path(both[0], "expected_costs"),
            observed=str(ZERO),
            required="above zero",
        )


@guard(
    "caps-proportional",
    "Each cap is its model's share of the allocation, by expected cost, within half of `cap_quantum`.",
    Reason.BUDGET_INCONSISTENT,
)
def caps_proportional(facts: Facts) -> Iterable[Refusal]:
    """Together they are at most the allocation and half a quantum for each model."""
    both = _both(facts)
    if both is None or both[1].total == ZERO:
        return
    money, amounts = both
    for name, share in amounts.shares.items():
        wanted = amounts.cap_range(name)
        if not wanted.holds(share.cap):
            yield _off(
                f"the cap of {name!r} is not allocation x expected cost / all expected costs",
                _path(money, f"caps.{name}"),
                share.cap,
                wanted.as_record(),
            )


@guard(
    "reserves-proportional",
    "Each reserve is `reserve_factor` times the expected cost of a block, within half of `reserve_quantum`.",
    Reason.BUDGET_INCONSISTENT,
)
def reserves_proportional(facts: Facts) -> Iterable[Refusal]:
    """A block is admitted by what it is likely to need."""
    both = _both(facts)
    if both is None:
        return
    money, amounts = both
    for name, share in amounts.shares.items():
        wanted = amounts.reserve_range(name)
        if not wanted.holds(share.reserve):
            yield _off(
                f"the reserve of {name!r} is not reserve_factor x expected cost / {share.blocks} blocks",
                _path(money, f"reserves.{name}"),
                share.reserve,
                wanted.as_record(),
            )


@guard("allocation-in-cap", "The allocation is not above the cap.", Reason.BUDGET_INCONSISTENT)
def allocation_in_cap(facts: Facts) -> Iterable[Refusal]:
    """What is shared out may be spent."""
    money = facts.money
    if money is not None and money.budget is not None and money.budget.allocation > money.budget.cap:
        yield _off(
            "the allocation is above the cap",
            _path(money, "budget.allocation"),
            money.budget.allocation,
            {"to": str(money.budget.cap)},
        )


@guard("reserves-in-caps", "No reserve of a block is above its model's cap.", Reason.BUDGET_INCONSISTENT)
def reserves_in_caps(facts: Facts) -> Iterable[Refusal]:
    """Otherwise not even the first block would be admitted."""
    both = _both(facts)
    if both is None:
        return
    money, amounts = both
    for name, share in amounts.shares.items():
        if share.reserve > share.cap:
            yield _off(
                f"the reserve of one block of {name!r} is above all that the model may spend",
                _path(money, f"reserves.{name}"),
                share.reserve,
                {"to": str(share.cap)},
                _larger(amounts, share),
            )


@guard("prior-spend-counted", "`spent_before` counts what is declared as spent before.", Reason.PRIOR_SPEND_UNCOUNTED)
def prior_spend_counted(facts: Facts) -> Iterable[Refusal]:
    """A ceiling over a part of the spending is none."""
    money = facts.money
    if money is None or money.budget is None or money.budget.spent_before >= floor_of_spending(money):
        return
    yield Refusal(
        Reason.PRIOR_SPEND_UNCOUNTED,
        "spent_before is less than what [prior_spend] declares",
        path=_path(money, "budget.spent_before"),
        observed=str(money.budget.spent_before),
        required=f"{floor_of_spending(money)} or more",
    )


@guard("ceiling-free", "There is something left to spend below the hard ceiling.", Reason.CEILING_REACHED)
def ceiling_free(facts: Facts) -> Iterable[Refusal]:
    """A run that was cut short is resumed even so: its evidence is ended, and its ceiling admits nothing."""
    money = facts.money
    if money is None or money.budget is None or not money.names:
        return
    spent = money.budget.spent_before + (facts.folder.charged if facts.folder.ended else ZERO)
    if spent >= money.budget.ceiling:
        yield Refusal(
            Reason.CEILING_REACHED,
            "what is spent already reaches the cap and its margin",
            path=_path(money, "budget"),
            observed=str(spent),
            required=f"below {money.budget.ceiling}",
        )


@guard("spend-confirmed", "Somebody agreed to what the run can cost at most.", Reason.SPEND_NOT_CONFIRMED)
def spend_confirmed(facts: Facts) -> Iterable[Refusal]:
    """Asked after all other guards agree."""
    if facts.agreed is False:
        yield Refusal(Reason.SPEND_NOT_CONFIRMED, "the run can cost money, and nobody agreed to that", path="--yes")


def _both(facts: Facts) -> tuple[MoneyFacts, Amounts] | None:
    """What the study says and the amounts of it, where all of them are there, and each task and row was counted."""
    money = facts.money
    # of what was refused nobody knows how many blocks it is: amounts that fit would be called wrong, and made so
    if money is None or facts.tasks or facts.questions:
        return None
    amounts = amounts_of(money)
    return None if amounts is None else (money, amounts)


def _path(money: MoneyFacts, key: str) -> str:
    return f"stages.{money.stage}.{key}"


def _off(message: str, path: str, observed: Usd, required: Mapping[str, Any], remedy: str | None = None) -> Refusal:
    return Refusal(
        Reason.BUDGET_INCONSISTENT,
        message,
        path=path,
        observed=str(observed),
        required=dict(required),
        remedy=remedy,
    )


def _larger(amounts: Amounts, share: Share) -> str | None:
    """The allocation whose share, however it is rounded, has room for the reserve."""
    if share.expected == ZERO:
        return None
    room = share.reserve.fraction() + amounts.frame.cap_quantum.fraction() / 2
    needed = rounded_up(room * Fraction(amounts.total.pico, share.expected.pico), Usd(10**10))
    return f"Raise `allocation` (and `cap`) to {exact_dollars(needed)} or more, and run `proctor plan STUDY --write`."
