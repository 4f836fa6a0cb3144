"""What an exchange costs, and the most that one can cost, as section 4 of the format has it; picodollars throughout."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

from proctor_verify.vocabulary import INPUTS

MILLION = 10**6
_INPUTS = frozenset({"input", "cache_read", "cache_write", "cache_write_1h"})
_OUTPUTS = frozenset({"output", "reasoning"})


def pico(amount: str) -> int:
    """Picodollars of an amount as entries write it, with exactly 12 decimals."""
    return int(amount.replace(".", ""))


def usd(amount: int) -> str:
    """The amount as entries write it."""
    whole, decimals = divmod(amount, 10**12)
    return f"{whole}.{decimals:012d}"


def dollars(amount: str) -> str:
    """Money as a person writes it: without zeros that say nothing."""
    return amount.rstrip("0").rstrip(".")


class _Tier(NamedTuple):
    """Prices for exchanges with more than `above` input tokens and at most `most`, by bucket."""

    above: int
    most: int | None
    by_bucket: dict[str, int]
    dearest: tuple[int, int] | None


class Prices:
    """The prices of one model."""

    def __init__(self, record: dict[str, Any]) -> None:
        """From `price` of a model of the design, which has its shape."""
        per_request = record.get("per_request")
        self._request = 0 if per_request is None else pico(per_request) * MILLION
        self._rows = [(row["bucket"], row["above_inputs"], pico(row["usd_per_million"])) for row in record["rows"]]
        self.free = not self._request and not any(price for _, _, price in self._rows)

    @cached_property
    def _tiers(self) -> list[_Tier]:
        # made when an exchange asks: a design may have thousands of models with hundreds of tiers each
        starts = sorted({0, *(above for _, above, _ in self._rows)})
        return [_tier(self._rows, above, most) for above, most in zip(starts, [*starts[1:], None], strict=True)]

    def cost(self, usage: dict[str, int]) -> int | None:
        """What that usage costs, or None where a bucket of it has no price."""
        tiers = self._tiers
        at = 0
        inputs = sum(count for bucket, count in usage.items() if bucket in INPUTS)
        while (most := tiers[at].most) is not None and inputs > most:
            at += 1
        prices = tiers[at].by_bucket
        total = self._request
        for bucket, count in usage.items():
            price = prices.get(bucket)
            if price is None:
                return None
            total += price * count
        return -(-total // MILLION)

    def worst_case(self, inputs: int, outputs: int) -> int | None:
        """The most that an exchange of text within these bounds can cost, or None where a side has no price."""
        most = 0
        for tier in self._tiers:
            if tier.above and tier.above >= inputs:
                break
            if tier.dearest is None:
                return None
            dearest_in, dearest_out = tier.dearest
            within = inputs if tier.most is None else min(inputs, tier.most)
            most = max(most, dearest_in * within + dearest_out * outputs)
        return -(-(most + self._request) // MILLION)


def _tier(rows: Iterable[tuple[str, int, int]], above: int, most: int | None) -> _Tier:
    by_bucket = {bucket: price for bucket, start, price in sorted(rows, key=lambda row: row[1]) if start <= above}
    ins = [price for bucket, price in by_bucket.items() if bucket in _INPUTS]
    outs = [price for bucket, price in by_bucket.items() if bucket in _OUTPUTS]
    return _Tier(above, most, by_bucket, (max(ins), max(outs)) if ins and outs else None)
