"""The one authority over a run's money: each decision of the ceiling and its journal entry are one step.

Nothing is awaited between a decision and the entry that says it, so the order of the journal is the order of the
decisions, and whoever folds the journal sees the ceiling hold at every entry. What was decided acts on the world only
once its entry is durable: a process that dies has every exchange that it may have sent on the record.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from proctor.budget.ceiling import Ceiling, Denial, Limits, Scope
from proctor.budget.lease import Lease
from proctor.core.money import ZERO, Usd
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import Admitted
from proctor.evidence.kinds import Kind

_REASONS = {
    Scope.CEILING: Reason.CEILING_REACHED,
    Scope.OVERRUN: Reason.OVERRUN,
    Scope.CAP: Reason.CAP_REACHED,
    Scope.MODEL_CAP: Reason.CAP_REACHED,
}
# What a hold is refused for on the record.
FOR_MONEY = frozenset({*_REASONS.values(), Reason.BUDGET_ABSENT})


class Entries(Protocol):
    """The journal of a run, or what takes its place: where decisions are said in the step in which they are made."""

    @property
    def run_id(self) -> str:
        """Of which run, or record, they are."""
        ...

    def post(self, kind: Kind, body: Mapping[str, Any], /) -> object:
        """Put an entry in order now."""
        ...


class Past(Protocol):
    """What earlier openings of a run came to: `charged` in picodollars by model, `reached` what was said of limits."""

    @property
    def charged(self) -> Counter[str]:
        """By model."""
        ...

    @property
    def overruns(self) -> int:
        """How often more was charged than held."""
        ...

    @property
    def reached(self) -> Sequence[Mapping[str, Any]]:
        """Bodies of `ceiling.reached`."""
        ...


def ceiling_after(limits: Limits | None, past: Past) -> Ceiling:
    """The ceiling of a run's next opening: what earlier ones charged counts, and what they closed stays closed."""
    wanted = [Usd.parse(body["wanted"]) for body in past.reached if body["scope"] == Scope.CEILING]
    return Ceiling(
        limits,
        past.charged,
        overran=past.overruns > 0,
        crossed=ZERO in wanted,
        refused=next((amount for amount in reversed(wanted) if amount > ZERO), None),
    )


async def _at_once() -> None:
    """Nothing is waited for."""


class Authority:
    """Decides what may be spent in a run, for one event loop; goes on where the journal's last opening ended.

    Args:
        limits: None where nothing is priced.
        journal: of the admitted run, open.
        past: the fold over that journal. Everything that it charged counts: attempts that were lost, superseded or
            replaced too.
        may_admit: waited for before a block is admitted, and looked at again after every other wait.
    """

    def __init__(
        self,
        admitted: Admitted,
        limits: Limits | None,
        journal: Entries,
        past: Past,
        may_admit: Callable[[], Awaitable[None]] = _at_once,
    ) -> None:
        if admitted.run_id != journal.run_id:
            raise ValueError(f"the journal is of run {journal.run_id}, not {admitted.run_id}")
        self._ceiling = ceiling_after(limits, past)
        self._priced = limits is not None
        self._may_admit = may_admit
        self._journal = journal
        self._disclosed: set[tuple[Scope, str | None]] = set()
        self._freed = asyncio.Event()
        # blocks that wait, by model
        self._lines: defaultdict[str | None, deque[int]] = defaultdict(deque)
        self._disclose(self._ceiling.closed())

    @property
    def total(self) -> Usd:
        """Spent before, settled and open."""
        return self._ceiling.total

    @property
    def held(self) -> Usd:
        """Worst cases of all that is in flight."""
        return self._ceiling.held

    def by_model(self) -> dict[str | None, tuple[Usd, Usd]]:
        """Of each model what was charged, and what is held now."""
        return self._ceiling.by_model()

    async def admit_block(
        self, index: int, task: str, model: str | None, epoch: int, *, empty: bool = False
    ) -> Refusal | None:
        """Set a block's reserve aside and say so in the journal, or return why that can never be.

        Waits while blocks that are open may still leave enough room when they end, which each of them does by the
        deadlines of its attempts. Blocks of a model are admitted in the order in which they came: one that comes just
        when room is left does not overtake those that wait. `empty`: nothing is left to run in the block, so nothing
        is set aside.

        Raises:
            Refusal: the journal's own, where it takes no more.
            ValueError: the block is open already, or its model is none of the limits'.
        """
        line = self._lines[model]
        line.append(index)
        try:
            await self._may_admit()
            while True:
                if line[0] == index:
                    denial = self._ceiling.admit_block(index, model, empty=empty)
                    if denial is None:
                        break
                    if denial.final:
                        self._disclose(denial)
                        return _refusal(denial)
                await self._freed.wait()
                await self._may_admit()
        finally:
            line.remove(index)
            if line:
                self._free()
        reserve = ZERO if empty else self._ceiling.reserve_of(model)
        body = {"block": index, "task": task, "model": model, "epoch": epoch}
        self._journal.post(Kind.BLOCK_ADMITTED, {**body, "reserve": str(reserve) if self._priced else None})
        return None

    def end_block(self, index: int) -> None:
        """Give a block's reserve back; the caller posts `block.ended` in the same step.

        Raises ValueError: it is not open, or an exchange of it is in flight.
        """
        self._ceiling.end_block(index)
        self._free()

    def lease(self, attempt: str, block: int, model: str) -> Lease:
        """The right of one attempt to spend on one model out of its block.

        Raises ValueError: the block is not open, or is another model's.
        """
        if self._ceiling.model_of(block) != model:
            raise ValueError(f"block {block} is not of model {model!r}")
        return Lease(self, attempt, block, model)

    def hold(self, exchange: str, block: int, amount: Usd) -> Refusal | None:
        """For a lease, which posts the hold or this refusal in the same step."""
        if not self._priced and amount > ZERO:
            return Refusal(Reason.BUDGET_ABSENT, f"{amount} dollars would be held, and the stage has no budget")
        denial = self._ceiling.hold(exchange, block, amount)
        if denial is None:
            return None
        self._disclose(denial)
        # those who wait for room hear that nothing more is admitted
        self._free()
        return _refusal(denial)

    def drop(self, exchange: str) -> None:
        """For a lease: nothing of it will be charged."""
        self._ceiling.settle(exchange, ZERO)
        self._free()

    def settle(self, exchange: str, charged: Usd) -> bool:
        """For a lease, which posts `exchange.ended` in the same step; whether more was charged than held."""
        overrun = self._ceiling.settle(exchange, charged)
        self._free()
        return overrun

    def disclose_overrun(self) -> None:
        """For a lease, once the entry that says so is posted."""
        self._disclose(self._ceiling.overrun())
        self._disclose(self._ceiling.passed())

    def _disclose(self, denial: Denial | None) -> None:
        """Say it in the journal, once in an opening for each rule (and model)."""
        if denial is None or (denial.scope, denial.model) in self._disclosed:
            return
        self._disclosed.add((denial.scope, denial.model))
        self._journal.post(Kind.CEILING_REACHED, _numbers(denial))

    def _free(self) -> None:
        self._freed.set()
        self._freed = asyncio.Event()


def _numbers(denial: Denial) -> dict[str, Any]:
    return {
        "scope": denial.scope.value,
        "model": denial.model,
        "spent": str(denial.spent),
        "wanted": str(denial.wanted),
        "limit": str(denial.limit),
    }


def _refusal(denial: Denial) -> Refusal:
    """What an attempt or a lane hears; `observed` is the body of `ceiling.reached`."""
    match denial.scope:
        case Scope.CEILING:
            message = f"{_sum(denial)} would pass the hard ceiling of {denial.limit} dollars"
        case Scope.OVERRUN:
            message = "more was charged than held, so nothing more is admitted"
        case Scope.CAP:
            message = f"{_sum(denial)} would pass the cap of {denial.limit} dollars"
        case Scope.MODEL_CAP:
            message = f"{_sum(denial)} would pass the cap of {denial.limit} dollars of model {denial.model}"
    limit = {"at most": str(denial.limit)}
    return Refusal(_REASONS[denial.scope], message, observed=_numbers(denial), required=limit)


def _sum(denial: Denial) -> str:
    return f"{denial.wanted} dollars on top of {denial.spent}"
