"""One arm with one model, counted."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from proctor.core.money import Usd
from proctor.report.cells import cells
from proctor.report.reading import Reading


@dataclass(frozen=True)
class Group:
    """The trials of one arm with one model.

    `rate` is passed / planned, what is ungraded counting as not passed; `bounds` are what it would be if all that is
    ungraded failed or passed. `interval` is the 95 % interval of `rate`, None where there is none. `cost` is of all
    attempts, in dollars, and `cost_per_solved` of each passed trial, rounded up; None where no model is used, and the
    latter where nothing passed.
    """

    model: str | None
    arm: str
    synthetic: bool
    planned: int
    passed: int
    failed: int
    ungraded: int
    rate: Fraction
    bounds: tuple[Fraction, Fraction]
    interval: tuple[float, float] | None
    cost: Decimal | None
    cost_per_solved: Decimal | None


def groups_of(reading: Reading) -> tuple[Group, ...]:
    """All of them, models and arms in the order of the design."""
    counted = {(each["model"], each["arm"]): each for each in reading.groups()}
    found = []
    for cell in cells(reading):
        counts, planned = counted[cell.model, cell.arm], cell.planned
        per = None if cell.spent is None else cell.spent.per(cell.passed)
        ungraded = int(counts["ungraded"])
        found.append(
            Group(
                model=cell.model,
                arm=cell.arm,
                synthetic=cell.synthetic,
                planned=planned,
                passed=cell.passed,
                failed=int(counts["fail"]),
                ungraded=ungraded,
                rate=Fraction(cell.passed, planned),
                bounds=(Fraction(cell.passed, planned), Fraction(cell.passed + ungraded, planned)),
                interval=None if cell.interval is None else (cell.interval.low, cell.interval.high),
                cost=None if cell.spent is None else decimal(cell.spent.cost),
                cost_per_solved=None if per is None else decimal(per[0]),
            )
        )
    return tuple(found)


def decimal(amount: Usd) -> Decimal:
    """Dollars, exact."""
    return Decimal(str(amount))
