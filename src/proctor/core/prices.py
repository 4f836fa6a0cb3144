"""What tokens cost: flat rows, exact arithmetic, rounded up once.

The rule, which the second program follows too: of the rows of a bucket, the one with the greatest `above_inputs` that
is below the exchange's input tokens holds (0 counts as below every number, 0 included), for all tokens of the bucket.
The cost is the sum over buckets of tokens x picodollars per million, plus a million times the price of the request,
divided by a million and rounded up to a whole picodollar.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from proctor.core.money import ZERO, Usd
from proctor.core.usage import INPUTS, Bucket, Usage

MILLION = 10**6
_OUTPUTS = frozenset({Bucket.OUTPUT, Bucket.REASONING})
_TEXT_INPUTS = frozenset({Bucket.INPUT, Bucket.CACHE_READ, Bucket.CACHE_WRITE, Bucket.CACHE_WRITE_1H})


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
        most = ZERO
        for above in tops:
            # the most tokens that this tier can hold: one below the next tier's start, or the bound itself
            nexts = [row.above_inputs for row in self.rows if row.above_inputs > above]
            inputs = min([input_tokens, *nexts])
            dearest_in = max((self._price(bucket, inputs) for bucket in self._priced(_TEXT_INPUTS)), default=None)
            dearest_out = max((self._price(bucket, inputs) for bucket in self._priced(_OUTPUTS)), default=None)
            if dearest_in is None or dearest_out is None:
                raise NoPrice(Bucket.INPUT if dearest_in is None else Bucket.OUTPUT)
            pico = dearest_in.pico * inputs + dearest_out.pico * output_tokens + self._request().pico * MILLION
            most = max(most, Usd(-(-pico // MILLION)))
        return most

    def _sum(self, tokens: Mapping[Bucket, int], inputs: int) -> Usd:
        pico = self._request().pico * MILLION
        for bucket, count in tokens.items():
            if count:
                pico += self._price(bucket, inputs).pico * count
        return Usd(-(-pico // MILLION))

    def _request(self) -> Usd:
        return ZERO if self.per_request is None else Usd.parse(self.per_request)

    def _priced(self, buckets: frozenset[Bucket]) -> list[Bucket]:
        named = {row.bucket for row in self.rows}
        return [bucket for bucket in buckets if bucket.value in named]

    def _price(self, bucket: Bucket, inputs: int) -> Usd:
        held: PriceRow | None = None
        for row in self.rows:
            reached = row.above_inputs == 0 or row.above_inputs < inputs
            if row.bucket == bucket.value and reached and (held is None or row.above_inputs > held.above_inputs):
                held = row
        if held is None:
            raise NoPrice(bucket)
        return _parsed(held.usd_per_million)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Usd:
    # a run has a few prices, and asks for each of them at every exchange
    return Usd.parse(text)


__all__ = ["INPUTS", "NoPrice", "PriceRow", "Prices"]
