"""A budget from expected costs: caps, reserves and, where a study has none yet, the amounts around them. Pure.

Without a budget of the study's own, the allocation is T x (1 + the larger of one half and k x L / N), rounded up to
whole cents, for a total T of expected costs, reserve factor k, N blocks of a model and L of them open at once: half as
much again as expected, and never so little that a run which costs what was expected is stopped by the reserves of its
last blocks. The cap is what was spent before and the allocation; the margin is what every lane of every model could
need at once: the larger of a block's reserve and the worst case of one exchange. Quanta are finer than the defaults
where amounts are so small that rounding would change them by more than a hundredth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from proctor.budget.rules import Amounts, Frame, Range, Share, rounded, rounded_up
from proctor.core.money import PICO_PER_USD, ZERO, Usd
from proctor.core.prices import NoPrice, Prices
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal

CAP_QUANTUM = Usd(10**10)
RESERVE_QUANTUM = Usd(10**9)
RESERVE_FACTOR = Fraction(3)
_CENT = Usd(10**10)
_MICRO = Usd(10**6)
_SPARE = Fraction(1, 2)
_FINEST = 100


@dataclass(frozen=True)
class Work:
    """What a stage is to do with each model: its blocks, how many trials a block has, and how many run at once."""

    blocks: int
    arms: int
    lanes: int

    @property
    def trials(self) -> int:
        """Trials of one model."""
        return self.blocks * self.arms


@dataclass(frozen=True)
class Kept:
    """What a study gives already: amounts that hold their rules stay as they are."""

    frame: Frame | None
    caps: Mapping[str, Usd]
    reserves: Mapping[str, Usd]
    spent_before: Usd = ZERO


def size(expected: Mapping[str, Usd], work: Work, kept: Kept, exchanges: Mapping[str, Usd]) -> Amounts:
    """All amounts of a stage.

    Args:
        expected: the expected cost of each model of the stage.
        work: at least one block.
        kept: what the study gives.
        exchanges: the worst case of one exchange, of the models for which it is known.

    Raises:
        Refusal: BUDGET_INCONSISTENT where nothing is expected to cost anything: there are no shares of nothing.
    """
    total = Usd(sum(cost.pico for cost in expected.values()))
    if total <= ZERO:
        raise Refusal(
            Reason.BUDGET_INCONSISTENT,
            "the expected costs come to nothing, and a budget is shared out by them",
            observed=str(total),
            required="above zero",
            remedy="Give expected costs: in the study, by --assume or from a run with --pilot.",
        )
    frame = kept.frame or _frame(expected, total, work, kept.spent_before)
    bare = Amounts(frame, {name: Share(cost, ZERO, ZERO, work.blocks) for name, cost in expected.items()})
    shares = {
        name: replace(
            share,
            cap=_amount(kept.caps.get(name), bare.cap_range(name), frame.cap_quantum),
            reserve=_amount(kept.reserves.get(name), bare.reserve_range(name), frame.reserve_quantum),
        )
        for name, share in bare.shares.items()
    }
    if kept.frame is None:
        at_once = sum(max(share.reserve, exchanges.get(name, ZERO)).pico for name, share in shares.items())
        frame = replace(frame, margin=rounded_up(Fraction(work.lanes * at_once, PICO_PER_USD), _CENT))
    return Amounts(frame, shares)


def scaled(charged: Usd, done: int, planned: int) -> Usd:
    """What `planned` trials cost if `done` of them came to `charged`; rounded up to a millionth of a dollar."""
    return rounded_up(charged.fraction() * planned / done, _MICRO)


def guessed_exchange(prices: Prices, max_output_tokens: int) -> Usd | None:
    """The worst case of an exchange with as much input as its output may be; None where a side has no price.

    For a margin only: what is really held is bounded by each request itself.
    """
    try:
        return prices.worst_case(max_output_tokens, max_output_tokens)
    except NoPrice:
        return None


def _frame(expected: Mapping[str, Usd], total: Usd, work: Work, spent_before: Usd) -> Frame:
    last = RESERVE_FACTOR * min(work.lanes, work.blocks) / work.blocks
    allocation = rounded_up(total.fraction() * (1 + max(_SPARE, last)), _CENT)
    least = min(cost for cost in expected.values() if cost > ZERO).fraction()
    return Frame(
        spent_before=spent_before,
        allocation=allocation,
        cap=spent_before + allocation,
        margin=ZERO,
        cap_quantum=min(CAP_QUANTUM, _fine(allocation.fraction() * least / total.fraction())),
        reserve_quantum=min(RESERVE_QUANTUM, _fine(RESERVE_FACTOR * least / work.blocks)),
        reserve_factor=RESERVE_FACTOR,
    )


def _fine(amount: Fraction) -> Usd:
    """The largest power of ten of picodollars that is at most a hundredth of the amount; one where none is."""
    pico = int(amount * PICO_PER_USD / _FINEST)
    return Usd(10 ** (len(str(pico)) - 1)) if pico else Usd(1)


def _amount(given: Usd | None, wanted: Range, quantum: Usd) -> Usd:
    return given if given is not None and wanted.holds(given) else rounded(wanted.exact, quantum)
