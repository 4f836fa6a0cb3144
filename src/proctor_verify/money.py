"""The money of a run while its journal streams by: what is settled, held and set aside, for open blocks alone.

Facts only, as in `run`: what does not fit is passed over here. Amounts are picodollars. An open block takes up the
greater of what is left of its reserve and what its exchanges in flight hold.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from proctor_verify.design_parts import Budget
from proctor_verify.prices import pico


class Flight(NamedTuple):
    """An exchange between its admission, in that opening, and its end; `free` is one that only counts tokens."""

    model: str
    held: int
    opening: int
    free: bool


@dataclass(slots=True)
class Bill:
    """What exchanges that ended came to; `charged` in picodollars, `tokens` by bucket."""

    exchanges: int = 0
    charged: int = 0
    estimated: int = 0
    overruns: int = 0
    tokens: dict[str, int] = field(default_factory=dict)

    def add(self, ended: dict[str, Any], charged: int) -> None:
        """Count an exchange in."""
        self.exchanges += 1
        self.charged += charged
        self.estimated += ended["estimated"]
        self.overruns += ended["overrun"]
        for bucket, count in (ended["usage"] or {}).items():
            self.tokens[bucket] = self.tokens.get(bucket, 0) + count


@dataclass(slots=True)
class _Block:
    model: str | None
    reserve: int = 0
    settled: int = 0
    held: int = 0

    @property
    def open(self) -> int:
        return max(self.reserve - self.settled, self.held)


class Money:
    """What the journal so far comes to.

    `overran` is whether an exchange was charged more than it held; `crossed` whether that took the total past the
    hard ceiling. `closed` are the scopes, and `closed_models` the models of the budget, that this opening said are
    admitted no more; `refused` is whether an earlier one said so of the ceiling.
    """

    def __init__(self, budget: Budget | None) -> None:
        self.budget = budget
        self.before = budget.spent_before if budget is not None else 0
        self.charged = 0
        self.charged_of: Counter[str | None] = Counter()
        self.open = 0
        self.open_of: Counter[str | None] = Counter()
        self.overran = False
        self.crossed = False
        self.overran_now = False
        self.crossed_now = False
        self.closed: set[str] = set()
        self.closed_models: set[str] = set()
        self.refused = False
        self._blocks: dict[int, _Block] = {}
        # those that this opening admitted, and that have not ended
        self._admitted: set[int] = set()

    @property
    def total(self) -> int:
        """Spent before, settled and open."""
        return self.before + self.charged + self.open

    def more(self, index: int, amount: int) -> int:
        """How much a hold of that amount adds to what a block takes up."""
        block = self._blocks.get(index)
        if block is None:
            return amount
        return max(block.reserve - block.settled, block.held + amount) - block.open

    def opened(self) -> None:
        """A new opening: all blocks close; what is in flight of them stays held until its end is written."""
        self.overran_now = self.crossed_now = False
        self.refused = self.refused or "ceiling" in self.closed
        self.closed.clear()
        self.closed_models.clear()
        for index in list(self._admitted):
            self.block_ended(index)

    def block_admitted(self, index: int, model: str | None, reserve: str | None) -> None:
        """A block sets its reserve aside."""
        self.block_ended(index)
        block = self._block(index, model)
        self._changed(block, -block.open)
        block.reserve = pico(reserve) if reserve is not None else 0
        self._admitted.add(index)
        self._changed(block, block.open)

    def block_ended(self, index: int) -> None:
        """A block gives back what is left of its reserve."""
        self._admitted.discard(index)
        block = self._blocks.get(index)
        if block is not None:
            self._changed(block, -block.open)
            block.reserve = block.settled = 0
            self._changed(block, block.open)
            self._forget(index, block)

    def held(self, index: int, flight: Flight) -> None:
        """An exchange of a block holds its worst case."""
        block = self._block(index, flight.model)
        before = block.open
        block.held += flight.held
        self._changed(block, block.open - before)

    def settled(self, index: int, flight: Flight, charged: int) -> None:
        """An exchange of a block ends."""
        block = self._block(index, flight.model)
        before = block.open
        block.held -= flight.held
        block.settled += charged
        self._changed(block, block.open - before)
        self.charged += charged
        self.charged_of[block.model] += charged
        if charged > flight.held:
            self.overran = self.overran_now = True
            if self.budget is not None and self.total > self.budget.ceiling:
                self.crossed = self.crossed_now = True
        self._forget(index, block)

    def reached(self, body: dict[str, Any]) -> None:
        """An entry says what is admitted no more."""
        self.closed.add(body["scope"])
        if self.budget is not None and body["model"] in self.budget.shares:
            self.closed_models.add(body["model"])

    def _block(self, index: int, model: str | None) -> _Block:
        block = self._blocks.get(index)
        if block is None:
            block = self._blocks[index] = _Block(model)
        return block

    def _changed(self, block: _Block, by: int) -> None:
        self.open += by
        self.open_of[block.model] += by

    def _forget(self, index: int, block: _Block) -> None:
        if not block.held and not block.reserve:
            del self._blocks[index]
