"""What exchanges came to: of an attempt, a trial, or an arm with a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proctor.core.money import Usd
from proctor.core.usage import INPUTS, Bucket

_INPUT_NAMES = frozenset(bucket.value for bucket in INPUTS)


@dataclass(slots=True)
class Spent:
    """What exchanges came to: picodollars, tokens by bucket; `estimated` were charged for want of a usage."""

    charged: int = 0
    exchanges: int = 0
    estimated: int = 0
    overruns: int = 0
    tokens: dict[str, int] = field(default_factory=dict)

    def take(self, body: Mapping[str, Any]) -> None:
        """Count an exchange by its `exchange.ended`. Raises KeyError, TypeError, ValueError, Refusal: it is none."""
        self.charged += Usd.parse(body["charged"]).pico
        self.exchanges += 1
        self.estimated += bool(body["estimated"])
        self.overruns += bool(body["overrun"])
        for bucket, count in (body["usage"] or {}).items():
            if type(count) is not int or count < 0:
                raise ValueError(f"{count!r} is no count of tokens")
            self.tokens[bucket] = self.tokens.get(bucket, 0) + count

    @property
    def cost(self) -> Usd:
        """What was charged."""
        return Usd(self.charged)

    @property
    def tokens_in(self) -> int:
        """Tokens that went in."""
        return sum(count for bucket, count in self.tokens.items() if bucket in _INPUT_NAMES)

    @property
    def tokens_out(self) -> int:
        """Tokens that came out."""
        return sum(self.tokens.values()) - self.tokens_in

    def per(self, count: int) -> tuple[Usd, int] | None:
        """Money and tokens for each of so many, rounded up; None for none."""
        if count == 0:
            return None
        return Usd(-(-self.charged // count)), -(-sum(self.tokens.values()) // count)

    def as_record(self) -> dict[str, Any]:
        """For JSON; all buckets that are known, and any other that was counted."""
        buckets = dict.fromkeys((bucket.value for bucket in Bucket), 0) | self.tokens
        return {
            "charged": str(self.cost),
            "exchanges": self.exchanges,
            "estimated": self.estimated,
            "overruns": self.overruns,
            "tokens": buckets,
        }
