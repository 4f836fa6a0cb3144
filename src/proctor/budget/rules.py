"""The amounts of a stage's money, and the rules between them: exact rationals, ties included. Pure.

For models m with expected costs e_m, T their sum, allocation S, cap C, blocks N_m and reserve factor k:
a model's cap is S x e_m / T and its reserve k x e_m / N_m, each within half of its quantum. Together the caps are
then at most S and half a quantum for each model, which is no rule of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from proctor.core.money import PICO_PER_USD, ZERO, Usd
from proctor.core.prices import Prices


@dataclass(frozen=True)
class Frame:
    """What a stage may spend as a whole; `reserve_factor` is the exact value of its decimal text."""

    spent_before: Usd
    allocation: Usd
    cap: Usd
    margin: Usd
    cap_quantum: Usd
    reserve_quantum: Usd
    reserve_factor: Fraction

    @property
    def ceiling(self) -> Usd:
        """The hard ceiling H = C + M."""
        return self.cap + self.margin


@dataclass(frozen=True)
class Share:
    """One model's part; `blocks` counts those of the whole stage, one or more."""

    expected: Usd
    cap: Usd
    reserve: Usd
    blocks: int


@dataclass(frozen=True)
class Range:
    """What an amount may be: a formula's exact value in dollars, and half a quantum on both sides."""

    exact: Fraction
    slack: Fraction

    def holds(self, amount: Usd) -> bool:
        """Whether the amount lies in it, its ends included."""
        return abs(amount.fraction() - self.exact) <= self.slack

    @property
    def lowest(self) -> Usd:
        """The smallest amount that holds."""
        return max(ZERO, Usd.ceil(self.exact - self.slack))

    @property
    def highest(self) -> Usd:
        """The largest amount that holds."""
        return -Usd.ceil(-(self.exact + self.slack))

    def as_record(self) -> dict[str, str]:
        """For a refusal: the exact value as a fraction of dollars, and the two ends."""
        return {"exact": str(self.exact), "from": str(self.lowest), "to": str(self.highest)}


@dataclass(frozen=True)
class Amounts:
    """All money of a stage, by model: what the rules are about."""

    frame: Frame
    shares: Mapping[str, Share]

    @property
    def total(self) -> Usd:
        """The expected cost T of the stage."""
        return Usd(sum(share.expected.pico for share in self.shares.values()))

    @property
    def is_short(self) -> bool:
        """Whether what is expected does not fit: a run that costs it is stopped before its end."""
        return self.total > min(self.frame.allocation, self.frame.cap - self.frame.spent_before)

    def cap_range(self, model: str) -> Range:
        """What that model's cap may be. Raises ZeroDivisionError where T is zero."""
        exact = self.frame.allocation.fraction() * Fraction(self.shares[model].expected.pico, self.total.pico)
        return Range(exact, self.frame.cap_quantum.fraction() / 2)

    def reserve_range(self, model: str) -> Range:
        """What the reserve of a block of that model may be."""
        share = self.shares[model]
        exact = self.frame.reserve_factor * share.expected.fraction() / share.blocks
        return Range(exact, self.frame.reserve_quantum.fraction() / 2)


def rounded(exact: Fraction, quantum: Usd) -> Usd:
    """The multiple of the quantum that is nearest, the upper one of two; of a picodollar where the quantum is zero."""
    step = max(quantum, Usd(1))
    units = exact * PICO_PER_USD / step.pico
    return Usd((2 * units.numerator + units.denominator) // (2 * units.denominator) * step.pico)


def rounded_up(exact: Fraction, quantum: Usd) -> Usd:
    """The smallest multiple of the quantum, which is above zero, that is not below the amount."""
    units = exact * PICO_PER_USD / quantum.pico
    return Usd(-(-units.numerator // units.denominator) * quantum.pico)


def is_free(prices: Prices) -> bool:
    """Whether nothing that this prices costs anything: no money is at stake then."""
    amounts = [row.usd_per_million for row in prices.rows] + ([prices.per_request] if prices.per_request else [])
    return all(Usd.parse(amount) == ZERO for amount in amounts)
