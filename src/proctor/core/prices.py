"""What tokens cost: flat rows, exact arithmetic, rounded up once.

The rule, which the second program follows too: of the rows of a bucket, the one with the greatest `above_inputs` that
is below the exchange's input tokens holds (0 counts as below every number, 0 included), for all tokens of the bucket.
The cost is the sum over buckets of tokens x picodollars per million, plus a million times the price of the request,
divided by a million and rounded up to a whole picodollar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from proctor.core.money import Usd
from proctor.core.usage import INPUTS, Bucket, Usage

MILLION = 10**6
_OUTPUTS = (Bucket.OUTPUT, Bucket.REASONING)
_TEXT_INPUTS = (Bucket.INPUT, Bucket.CACHE_READ, Bucket.CACHE_WRITE, Bucket.CACHE_WRITE_1H)


class NoPrice(LookupError):
    """A bucket that tokens were counted in has no price; `bucket` says which."""

    def __init__(self, bucket: Bucket) -> None:
        super().__init__(bucket.value)
        self.bucket = bucket


@dataclass(frozen=True)
class PriceRow:
    """One price: dollars for a million tokens of a bucket (12 decimals), in exchanges of more input than that."""

    bucket: str
    above_inputs: int
    usd_per_million: str


@dataclass(frozen=True)
class Prices:
    """All prices of one model. `source` says where they were read; `per_request` is money, absent where it is none."""

    source: str
    rows: tuple[PriceRow, ...]
    per_request: str | None = field(default=None, metadata={"absent_if_unused": True})

    def cost(self, usage: Usage) -> Usd:
        """What an exchange of that usage costs. Raises NoPrice."""
        return self._sum(usage.tokens, usage.inputs)

    def worst_case(self, input_tokens: int, output_tokens: int) -> Usd:
        """The most that an exchange of text can cost within these bounds: the dearest bucket of each side.

        Every tier that could be reached is looked at: with fewer input tokens a dearer tier can hold.
        Raises NoPrice where a side has no price at all.
        """
        tops = {row.above_inputs for row in self.rows if row.above_inputs < input_tokens} | {0}
        most = 0
        for above in tops:
            # the most tokens that this tier can hold: one below the next tier's start, or the bound itself
            nexts = [row.above_inputs for row in self.rows if row.above_inputs > above]
            inputs = min([input_tokens, *nexts])
            dearest_in, dearest_out = self._dearest(_TEXT_INPUTS, inputs), self._dearest(_OUTPUTS, inputs)
            pico = dearest_in * inputs + dearest_out * output_tokens + self._request * MILLION
            most = max(most, -(-pico // MILLION))
        return Usd(most)

    def _sum(self, tokens: Mapping[Bucket, int], inputs: int) -> Usd:
        pico = self._request * MILLION
        for bucket, count in tokens.items():
            if count:
                pico += self._price(bucket, inputs) * count
        return Usd(-(-pico // MILLION))

    # read once: a run has a few prices, and asks for each of them at every exchange
    @cached_property
    def _request(self) -> int:
        """Picodollars."""
        return 0 if self.per_request is None else Usd.parse(self.per_request).pico

    @cached_property
    def _tiers(self) -> Mapping[str, list[tuple[int, int]]]:
        """By bucket, the greatest first: above how many input tokens, and picodollars per million."""
        tiers: dict[str, list[tuple[int, int]]] = {}
        for row in self.rows:
            tiers.setdefault(row.bucket, []).append((row.above_inputs, Usd.parse(row.usd_per_million).pico))
        return {bucket: sorted(rows, key=lambda row: -row[0]) for bucket, rows in tiers.items()}

    def _dearest(self, buckets: Sequence[Bucket], inputs: int) -> int:
        """Of those that have a price. Raises NoPrice: none has, and names the first."""
        priced = [self._price(bucket, inputs) for bucket in buckets if bucket.value in self._tiers]
        if not priced:
            raise NoPrice(buckets[0])
        return max(priced)

    def _price(self, bucket: Bucket, inputs: int) -> int:
        """Picodollars per million. Raises NoPrice."""
        for above, pico in self._tiers.get(bucket.value, ()):
            if above == 0 or above < inputs:
                return pico
        raise NoPrice(bucket)


__all__ = ["INPUTS", "NoPrice", "PriceRow", "Prices"]
