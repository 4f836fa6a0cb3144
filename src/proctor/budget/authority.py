"""The one authority over a run's money: each decision of the ceiling and its journal entry are one step.

Nothing is awaited between a decision and the entry that says it, so the order of the journal is the order of the
decisions, and whoever folds the journal sees the ceiling hold at every entry. What was decided acts on the world only
once its entry is durable: a process that dies has every exchange that it may have sent on the record.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from proctor.budget.ceiling import Ceiling, Denial, Limits, Scope
from proctor.core.money import ZERO, Usd
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import Admitted
from proctor.evidence.exchanges import unanswered
from proctor.evidence.kinds import Kind
from proctor.evidence.packs import Content

SETTLED = "settled"
RELEASED = "released"

_REASONS = {
    Scope.CEILING: Reason.CEILING_REACHED,
    Scope.OVERRUN: Reason.OVERRUN,
    Scope.CAP: Reason.CAP_REACHED,
    Scope.MODEL_CAP: Reason.CAP_REACHED,
}
# What a hold is refused for on the record.
FOR_MONEY = frozenset({*_REASONS.values(), Reason.BUDGET_ABSENT})


class EntryWriter(Protocol):
    """Writes the entries of one attempt."""

    def post(self, kind: Kind, blobs: Mapping[str, Content] | None = None, /, **body: Any) -> None:
        """Put an entry in order now; the attempt's id is added."""
        ...

    async def settle(self) -> None:
        """Wait until all that was posted is durable."""
        ...


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
        wanted = [Usd.parse(body["wanted"]) for body in past.reached if body["scope"] == Scope.CEILING]
        self._ceiling = Ceiling(
            limits,
            past.charged,
            overran=past.overruns > 0,
            crossed=ZERO in wanted,
            refused=next((amount for amount in reversed(wanted) if amount > ZERO), None),
        )
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

    def _hold(self, exchange: str, block: int, amount: Usd) -> Refusal | None:
        if not self._priced and amount > ZERO:
            return Refusal(Reason.BUDGET_ABSENT, f"{amount} dollars would be held, and the stage has no budget")
        denial = self._ceiling.hold(exchange, block, amount)
        if denial is None:
            return None
        self._disclose(denial)
        # those who wait for room hear that nothing more is admitted
        self._free()
        return _refusal(denial)

    def _drop(self, exchange: str) -> None:
        self._ceiling.settle(exchange, ZERO)
        self._free()

    def _settle(self, exchange: str, charged: Usd) -> bool:
        overrun = self._ceiling.settle(exchange, charged)
        self._free()
        return overrun

    def _disclose_overrun(self) -> None:
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


class Lease:
    """One attempt's right to spend. After `end` it is stale: what is in flight can still be settled, nothing held."""

    def __init__(self, authority: Authority, attempt: str, block: int, model: str) -> None:
        """For `Authority.lease`."""
        self.attempt = attempt
        self.model = model
        self._authority = authority
        self._block = block
        self._held: dict[str, Usd] = {}
        self._stale = False

    async def hold(
        self,
        writer: EntryWriter,
        exchange: str,
        held: Usd,
        *,
        blobs: Mapping[str, Content] | None = None,
        **body: Any,
    ) -> None:
        """`take`, and wait until its entry is durable: it may be sent. Cancelled, it ends as released on the record.

        A refusal for money is on the record too; that of a stale lease is not, for its attempt may have ended.

        Raises: as `take`, and the writer's Refusal.
        """
        try:
            self.take(writer, exchange, held, blobs=blobs, **body)
        except Refusal as refusal:
            if refusal.reason in FOR_MONEY:
                self.refuse(writer, refusal, held, route=body["route"], blobs=blobs)
                await writer.settle()
            raise
        await self.confirm(writer, exchange)

    def take(
        self,
        writer: EntryWriter,
        exchange: str,
        held: Usd,
        *,
        blobs: Mapping[str, Content] | None = None,
        **body: Any,
    ) -> None:
        """Hold an exchange's worst case and post its `exchange.admitted`; `confirm` says when it may be sent.

        Args:
            writer: of the attempt.
            exchange: id, `<attempt>/<index>`, not used before.
            held: the worst case.
            blobs: `request`.
            body: the other fields of `exchange.admitted`.

        Raises:
            Refusal: CEILING_REACHED, OVERRUN, BUDGET_ABSENT: it may not be paid for, and the caller puts that
                on the record with `refuse`; LEASE_STALE: its attempt may have ended; and the journal's.
            ValueError: the exchange is another attempt's or in flight, the amount is negative, fields are missing.
        """
        if not exchange.startswith(f"{self.attempt}/"):
            raise ValueError(f"{exchange} is no exchange of {self.attempt}")
        if self._stale:
            raise Refusal(
                Reason.LEASE_STALE, "the attempt's right to spend has ended", observed=exchange, required="a live lease"
            )
        refusal = self._authority._hold(exchange, self._block, held)
        if refusal is not None:
            raise refusal
        self._held[exchange] = held
        try:
            whole = {**body, "exchange": exchange, "model": self.model, "held": str(held)}
            writer.post(Kind.EXCHANGE_ADMITTED, blobs, **whole)
        except BaseException:
            self._drop(exchange)
            raise

    def refuse(
        self,
        writer: EntryWriter,
        refusal: Refusal,
        held: Usd = ZERO,
        *,
        route: str | None = None,
        blobs: Mapping[str, Content] | None = None,
    ) -> None:
        """Post `exchange.refused`: a request that is not sent. Raises the journal's Refusal."""
        said = {"model": self.model, "reason": refusal.reason.id, "held": str(held), "message": refusal.message}
        body = {**said, "route": route}
        writer.post(Kind.EXCHANGE_REFUSED, blobs, **(body if blobs else {**body, "request": None}))

    async def confirm(self, writer: EntryWriter, exchange: str) -> None:
        """Wait until what was taken is durable; cancelled, it ends as released on the record. Raises Refusal."""
        try:
            await writer.settle()
        except Refusal:
            # not written; or the disk failed, and whoever closes the journal ends what did reach it
            self._drop(exchange)
            raise
        except BaseException:
            # the entry will be durable all the same; a journal that takes no more says so to everyone else
            with suppress(Refusal):
                body = unanswered(Reason.INTERRUPTED, estimated=False)
                self.settle(writer, exchange, ZERO, outcome=RELEASED, **body)
            raise

    def settle(
        self,
        writer: EntryWriter,
        exchange: str,
        charged: Usd,
        *,
        outcome: str,
        blobs: Mapping[str, Content] | None = None,
        **body: Any,
    ) -> bool:
        """Charge an exchange and post its `exchange.ended`; whether more was charged than held.

        Args:
            outcome: `settled`, or `released` where nothing is owed.
            blobs: `response` and `chunks`, where there are any.
            body: the other fields of `exchange.ended`.

        Raises:
            ValueError: it is not in flight (each is settled once), a negative amount, or one that is not zero for
                `released`; fields that are missing.
            Refusal: the journal's.
        """
        if outcome not in (SETTLED, RELEASED) or (outcome == RELEASED and charged != ZERO):
            raise ValueError(f"{exchange} cannot end as {outcome!r} with {charged}")
        if exchange not in self._held:
            raise ValueError(f"{exchange} is not in flight under this lease")
        overrun = self._authority._settle(exchange, charged)
        del self._held[exchange]
        whole = {**body, "exchange": exchange, "outcome": outcome, "charged": str(charged), "overrun": overrun}
        writer.post(Kind.EXCHANGE_ENDED, blobs, **whole)
        if overrun:
            self._authority._disclose_overrun()
        return overrun

    def end(self) -> None:
        """Nothing can be held from here on. Raises ValueError, stale all the same: something is in flight."""
        self._stale = True
        if self._held:
            raise ValueError(f"exchanges are in flight: {sorted(self._held)}")

    def _drop(self, exchange: str) -> None:
        self._authority._drop(exchange)
        del self._held[exchange]


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
