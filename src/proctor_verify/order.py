"""The drawn order of blocks, and of the arms in each, recomputed from the design as section 9 of the format says."""

from __future__ import annotations

from array import array
from collections.abc import MutableSequence
from hashlib import sha256
from itertools import permutations
from typing import TypeVar

from proctor_verify import canonical
from proctor_verify.design import Design

_T = TypeVar("_T")
# Of more arms there are more orders than blocks, and one of them is drawn.
_ALL_ORDERS_UP_TO = 4


class Stream:
    """Words of 64 bits, named by a seed and a text."""

    def __init__(self, seed: int, text: str) -> None:
        self._start = canonical.encode([seed, text])[:-1]
        self._next = 0

    def below(self, bound: int) -> int:
        """The next number below a bound from 1 to 2^64."""
        # Rejected: the last words, which would make small remainders likelier.
        limit = 2**64 - 2**64 % bound
        while True:
            digest = sha256(b"%b,%d]" % (self._start, self._next)).digest()
            self._next += 1
            word = int.from_bytes(digest[:8], "big")
            if word < limit:
                return word % bound

    def shuffle(self, items: MutableSequence[_T]) -> None:
        """Put them in the order that the next numbers say."""
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]


class Order:
    """The drawn order. `index_of` has, for each planned block as `Trials` numbers them, its index."""

    def __init__(self, design: Design) -> None:
        self.index_of = array("I", bytes(4 * design.blocks))
        self.blocks_of_model = len(design.tasks) * design.epochs
        self._arms: list[_Arms] = []
        index = 0
        for at, model in enumerate(design.models):
            # `-` stands for no model.
            stream = Stream(design.seed, f"order/{design.stage}/{'-' if model is None else model}")
            order = array("I", range(self.blocks_of_model))
            stream.shuffle(order)
            for place in order:
                task, epoch = divmod(place, design.epochs)
                self.index_of[(task * len(design.models) + at) * design.epochs + epoch] = index
                index += 1
            self._arms.append(_Arms(stream, len(design.arms)))

    def arms_at(self, index: int) -> tuple[int, ...]:
        """The arms of the block of that index, as places in the design, in the order in which they run."""
        model, place = divmod(index, self.blocks_of_model)
        return self._arms[model].at(place)


class _Arms:
    """The order of the arms at each place of one model's blocks."""

    def __init__(self, stream: Stream, count: int) -> None:
        if count <= _ALL_ORDERS_UP_TO:
            self._bases = [(0, *rest) for rest in permutations(range(1, count))]
            stream.shuffle(self._bases)
        else:
            base = list(range(count))
            stream.shuffle(base)
            self._bases = [tuple(base)]
        self._start = stream.below(count)

    def at(self, place: int) -> tuple[int, ...]:
        count = len(self._bases[0])
        base = self._bases[place // count % len(self._bases)]
        turn = (self._start + place) % count
        return base[turn:] + base[:turn]
