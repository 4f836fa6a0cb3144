"""Order of work: drawn from named streams, so that anybody with the design can draw it again.

A stream is named by a seed and a text. Its n-th word (n = 0, 1, 2 …) is the first 8 bytes, big-endian, of SHA-256 over
the canonical JSON (RFC 8785) of `[seed, text, n]`. To draw below k, words are taken until one is less than the
largest multiple of k that is at most 2^64; the result is that word modulo k. To shuffle a list of length m, for
i = m−1 down to 1, draw j below i+1 and swap the entries i and j.

The stream of a stage and a model is named `order/<stage>/<model>`, with `-` where there is no model. From it, in this
order:

1. Blocks: the list of (task, epoch), tasks by name in code point order, for each task epochs ascending, is shuffled.
2. Arms, k of them, where k > 1. Up to four arms: all orders of the arms that begin with the first arm of the design,
   in lexicographic order of the arms' places in the design, are shuffled; these are the bases. More arms: the list of
   arms is shuffled and is the only base. Then a start is drawn below k. The block at place p runs its arms in the
   order of base number floor(p / k) modulo the count of bases, rotated left by (start + p) modulo k.

So in every k blocks from a multiple of k on each arm has each place once, and with up to four arms every order comes
once before any comes again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import permutations
from typing import TypeVar

from proctor.core.canonical import encode

T = TypeVar("T")

# Five arms have 120 orders, more than most stages have blocks: the places alone are balanced from there on.
_ALL_ORDERS_UP_TO = 4


class Stream:
    """An endless row of draws, fixed by seed and name."""

    def __init__(self, seed: int, name: str) -> None:
        self._seed = seed
        self._name = name
        self._taken = 0

    def word(self) -> int:
        """The next 64 bits."""
        digest = hashlib.sha256(encode([self._seed, self._name, self._taken])).digest()
        self._taken += 1
        return int.from_bytes(digest[:8], "big")

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` − 1, each as likely as the other."""
        fair = 2**64 - 2**64 % bound
        while (word := self.word()) >= fair:
            pass
        return word % bound

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """The values in a drawn order."""
        drawn = list(values)
        for place in range(len(drawn) - 1, 0, -1):
            other = self.below(place + 1)
            drawn[place], drawn[other] = drawn[other], drawn[place]
        return drawn


def stream_name(stage: str, model: str | None) -> str:
    """The name of the order stream of a stage and a model."""
    return f"order/{stage}/{model if model is not None else '-'}"


def draw_order(
    seed: int, name: str, tasks: Sequence[str], epochs: int, arms: Sequence[str]
) -> list[tuple[str, int, tuple[str, ...]]]:
    """The blocks (task, epoch, arms) in the order in which they are admitted, arms in the order in which they run."""
    stream = Stream(seed, name)
    blocks = stream.shuffled([(task, epoch) for task in sorted(tasks) for epoch in range(1, epochs + 1)])
    orders = _ArmOrders(stream, arms)
    return [(task, epoch, orders.at(place)) for place, (task, epoch) in enumerate(blocks)]


class _ArmOrders:
    """The order of the arms at each place of the drawn blocks."""

    def __init__(self, stream: Stream, arms: Sequence[str]) -> None:
        first, *others = arms
        if not others:
            self._bases, self._start = [tuple(arms)], 0
            return
        if len(arms) <= _ALL_ORDERS_UP_TO:
            self._bases = stream.shuffled([(first, *rest) for rest in permutations(others)])
        else:
            self._bases = [tuple(stream.shuffled(arms))]
        self._start = stream.below(len(arms))

    def at(self, place: int) -> tuple[str, ...]:
        base = self._bases[place // len(self._bases[0]) % len(self._bases)]
        turn = (self._start + place) % len(base)
        return base[turn:] + base[:turn]
