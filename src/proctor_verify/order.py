"""The drawn order of blocks, recomputed from the design as section 9 of the evidence format says."""

from __future__ import annotations

from array import array
from hashlib import sha256

from proctor_verify import canonical
from proctor_verify.design import Design


class _Stream:
    """Words of 64 bits, named by a seed and a text."""

    def __init__(self, seed: int, text: str) -> None:
        self._start = canonical.encode([seed, text])[:-1]
        self._next = 0

    def below(self, bound: int) -> int:
        # Rejected: the last words, which would make small remainders likelier.
        limit = 2**64 - 2**64 % bound
        while True:
            digest = sha256(b"%b,%d]" % (self._start, self._next)).digest()
            self._next += 1
            word = int.from_bytes(digest[:8], "big")
            if word < limit:
                return word % bound


def drawn_places(design: Design) -> array[int]:
    """For each planned block, as `Trials` numbers them, its index in the drawn order."""
    places = array("I", bytes(4 * design.blocks))
    index = 0
    for at, model in enumerate(design.models):
        # `-` stands for no model.
        stream = _Stream(design.seed, f"order/{design.stage}/{'-' if model is None else model}")
        order = array("I", range(len(design.tasks) * design.epochs))
        for i in range(len(order) - 1, 0, -1):
            j = stream.below(i + 1)
            order[i], order[j] = order[j], order[i]
        for place in order:
            task, epoch = divmod(place, design.epochs)
            places[(task * len(design.models) + at) * design.epochs + epoch] = index
            index += 1
    return places
