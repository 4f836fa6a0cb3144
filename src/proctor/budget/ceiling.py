"""The ceiling as a pure state machine: what may be set aside, held and charged, decided on integers of picodollars.

A block that is open has set its reserve aside; exchanges in flight hold their worst case, first out of the reserve,
then on top of it. So a block takes up `max(reserve - settled, held)`, its open amount, and the run's total is
`spent before + settled + the sum of open amounts`. What holds at every moment, in any order of calls:

- a block is admitted only up to the cap, and of its model up to the model's own cap;
- a hold is taken only up to the hard ceiling (cap and margin), which the total never passes but by an overrun;
- once a hold was refused, no block is admitted any more, in later openings of the run neither;
- an overrun (more is charged than was held) is charged in full, and no block follows it; once it takes the total past
  the hard ceiling, no hold follows either, even where the total falls again;
- a block in which nothing is left to run is admitted always: it sets nothing aside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from proctor.core.money import ZERO, Usd


class Scope(StrEnum):
    """Which rule says no; the words of `ceiling.reached`."""

    CEILING = "ceiling"
    OVERRUN = "overrun"
    CAP = "cap"
    MODEL_CAP = "model_cap"


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """What the blocks of one model may come to in all, and what each of them sets aside."""

    cap: Usd
    reserve: Usd


@dataclass(frozen=True, slots=True)
class Limits:
    """The money of a stage. Every amount is zero or more; `models` are all that may have blocks, by name."""

    spent_before: Usd
    cap: Usd
    margin: Usd
    models: Mapping[str, ModelLimits] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def ceiling(self) -> Usd:
        """The hard ceiling."""
        return self.cap + self.margin


@dataclass(frozen=True, slots=True)
class Denial:
    """A no, and its numbers at that moment: `spent + wanted` would pass `limit`, or `spent` has reached it.

    For the scope `overrun`, which no number decides, `limit` is the cap. `final` is false where a block may fit once
    others have ended.
    """

    scope: Scope
    spent: Usd
    wanted: Usd
    limit: Usd
    model: str | None = None
    final: bool = True


@dataclass(slots=True)
class _Block:
    model: str | None
    reserve: int
    settled: int = 0
    held: int = 0
    in_flight: int = 0

    @property
    def open(self) -> int:
        return max(self.reserve - self.settled, self.held)


_NOTHING = Limits(ZERO, ZERO, ZERO)


class Ceiling:
    """The machine. Every amount in is zero or more.

    Args:
        limits: None where nothing is priced: reserves are zero, and only zero can be held.
        charged: picodollars that earlier openings of the run have charged, by model.
        overran: whether one of them charged more than it held.
        crossed: whether that took the total past the hard ceiling.
        refused: the last hold that one of them refused.
    """

    def __init__(
        self,
        limits: Limits | None,
        charged: Mapping[str, int] = MappingProxyType({}),
        *,
        overran: bool = False,
        crossed: bool = False,
        refused: Usd | None = None,
    ) -> None:
        self.limits = limits if limits is not None else _NOTHING
        self._priced = limits is not None
        self._cap, self._ceiling = self.limits.cap.pico, self.limits.ceiling.pico
        self._spent = self.limits.spent_before.pico + sum(charged.values())
        self._settled: Counter[str | None] = Counter(charged)
        self._open = 0
        self._open_of: Counter[str | None] = Counter()
        self._held = 0
        self._blocks: dict[int, _Block] = {}
        self._in_flight: dict[str, tuple[int, int]] = {}
        self._overran = overran
        self._crossed = crossed or (self._priced and self._spent >= self._ceiling)
        self._closed = None if refused is None else self._no(Scope.CEILING, refused.pico)
        self._closed_models: dict[str | None, Denial] = {}

    @property
    def settled(self) -> Usd:
        """What was spent before, and charged since."""
        return Usd(self._spent)

    @property
    def held(self) -> Usd:
        """The worst cases of all that is in flight; zero at rest."""
        return Usd(self._held)

    @property
    def total(self) -> Usd:
        """Spent before, settled and open: what never passes the hard ceiling but by an overrun."""
        return Usd(self._spent + self._open)

    def by_model(self) -> dict[str | None, tuple[Usd, Usd]]:
        """Of each model what was charged, and what is held by what is in flight."""
        held: Counter[str | None] = Counter()
        for index, amount in self._in_flight.values():
            held[self._blocks[index].model] += amount
        models = {*self._settled, *held}
        return {model: (Usd(self._settled[model]), Usd(held[model])) for model in models}

    def reserve_of(self, model: str | None) -> Usd:
        """What a block of that model sets aside. Raises ValueError: the limits do not have the model."""
        if model is None or not self._priced:
            return ZERO
        return self._limits_of(model).reserve

    def model_of(self, block: int) -> str | None:
        """The model of an open block. Raises ValueError: it is not open."""
        return self._block(block).model

    def passed(self) -> Denial | None:
        """The crossing of the hard ceiling, where the total is at or past it for good."""
        if self._crossed and self._spent + self._open >= self._ceiling:
            return self._no(Scope.CEILING, 0)
        return None

    def closed(self) -> Denial | None:
        """Why no block of any model is admitted, where that is said already."""
        return self.passed() or self._closed

    def overrun(self) -> Denial | None:
        """Why no block follows, where more was charged than held."""
        return self._no(Scope.OVERRUN, 0) if self._overran else None

    def admit_block(self, index: int, model: str | None, *, empty: bool = False) -> Denial | None:
        """Open a block and set its reserve aside (zero for an empty one), or say why not.

        Raises:
            ValueError: it is open already, or the limits do not have the model.
        """
        if index in self._blocks:
            raise ValueError(f"block {index} is open already")
        reserve = 0 if empty else self.reserve_of(model).pico
        denial = None if empty else self._denied(model, reserve)
        if denial is None:
            self._blocks[index] = _Block(model, reserve)
            self._opened(model, reserve)
        elif denial.final:
            self._remember(denial)
        return denial

    def hold(self, exchange: str, index: int, amount: Usd) -> Denial | None:
        """Hold the worst case of an exchange of an open block, or say why not.

        Raises:
            ValueError: the amount is negative, the block is not open, or the exchange is in flight already.
        """
        block = self._block(index)
        if exchange in self._in_flight or amount.pico < 0:
            raise ValueError(f"{amount} for {exchange}: it is in flight, or the amount is negative")
        more = max(block.reserve - block.settled, block.held + amount.pico) - block.open
        if self._spent + self._open + more > self._ceiling:
            denial = self.passed() or self._no(Scope.CEILING, amount.pico)
            self._remember(denial)
            return denial
        if self._crossed:
            return self.passed() or self._no(Scope.OVERRUN, amount.pico)
        block.held += amount.pico
        block.in_flight += 1
        self._held += amount.pico
        self._in_flight[exchange] = (index, amount.pico)
        self._opened(block.model, more)
        return None

    def settle(self, exchange: str, charged: Usd) -> bool:
        """Charge what an exchange came to (zero releases it); whether that is an overrun.

        Raises:
            ValueError: the amount is negative, or the exchange is not in flight: each is settled once.
        """
        if exchange not in self._in_flight or charged.pico < 0:
            raise ValueError(f"{charged} for {exchange}: it is not in flight, or the amount is negative")
        index, held = self._in_flight.pop(exchange)
        block = self._blocks[index]
        before = block.open
        block.held -= held
        block.in_flight -= 1
        block.settled += charged.pico
        self._held -= held
        self._spent += charged.pico
        self._settled[block.model] += charged.pico
        self._opened(block.model, block.open - before)
        overrun = charged.pico > held
        if overrun:
            self._overran = True
            self._crossed = self._crossed or self._spent + self._open > self._ceiling
        return overrun

    def end_block(self, index: int) -> None:
        """Give its reserve back. Raises ValueError: it is not open, or an exchange of it is in flight."""
        block = self._block(index)
        if block.in_flight:
            raise ValueError(f"an exchange of block {index} is in flight")
        del self._blocks[index]
        self._opened(block.model, -block.open)

    def _denied(self, model: str | None, reserve: int) -> Denial | None:
        stopped = self.passed() or self.overrun() or self._closed or self._closed_models.get(model)
        return stopped or self._full(model, reserve)

    def _full(self, model: str | None, reserve: int) -> Denial | None:
        """The rule that has no room for a reserve; of two, one that no end of a block can change comes first.

        The model's own cap is looked at before the stage's: others may still fit below that.
        """
        found = []
        if model is not None and self._priced:
            cap, settled = self._limits_of(model).cap, self._settled[model]
            if settled + self._open_of[model] + reserve > cap.pico:
                spent, final = Usd(settled + self._open_of[model]), settled + reserve > cap.pico
                found.append(Denial(Scope.MODEL_CAP, spent, Usd(reserve), cap, model, final))
        if self._spent + self._open + reserve > self._cap:
            found.append(self._no(Scope.CAP, reserve, self._spent + reserve > self._cap))
        return next((denial for denial in found if denial.final), found[0] if found else None)

    def _remember(self, denial: Denial) -> None:
        """What was said to be admitted no more is so, whatever would fit."""
        if denial.scope is Scope.MODEL_CAP:
            self._closed_models.setdefault(denial.model, denial)
        elif self._closed is None:
            self._closed = denial

    def _no(self, scope: Scope, wanted: int, final: bool = True) -> Denial:
        limit = self.limits.ceiling if scope is Scope.CEILING else self.limits.cap
        return Denial(scope, self.total, Usd(wanted), limit, None, final)

    def _opened(self, model: str | None, more: int) -> None:
        self._open += more
        self._open_of[model] += more

    def _block(self, index: int) -> _Block:
        block = self._blocks.get(index)
        if block is None:
            raise ValueError(f"block {index} is not open")
        return block

    def _limits_of(self, model: str) -> ModelLimits:
        limits = self.limits.models.get(model)
        if limits is None:
            raise ValueError(f"the limits have no model {model!r}")
        return limits
