"""Tokens as providers bill them: disjoint buckets, never negative."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


class Bucket(StrEnum):
    """Where a token is counted, in exactly one place."""

    INPUT = "input"
    CACHE_READ = "cache_read"
    CACHE_WRITE = "cache_write"
    CACHE_WRITE_1H = "cache_write_1h"
    AUDIO_IN = "audio_in"
    TOOL_INPUT = "tool_input"
    OUTPUT = "output"
    REASONING = "reasoning"
    AUDIO_OUT = "audio_out"


INPUTS = frozenset(
    {
        Bucket.INPUT,
        Bucket.CACHE_READ,
        Bucket.CACHE_WRITE,
        Bucket.CACHE_WRITE_1H,
        Bucket.AUDIO_IN,
        Bucket.TOOL_INPUT,
    }
)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one exchange, by bucket; buckets without tokens are left out.

    `flags` say what of the provider's numbers does not fit together: such a usage is charged, and disclosed.
    """

    tokens: Mapping[Bucket, int] = field(default_factory=lambda: MappingProxyType({}))
    flags: tuple[str, ...] = ()

    @property
    def inputs(self) -> int:
        """All tokens that went in: what tiers of prices go by."""
        return sum(count for bucket, count in self.tokens.items() if bucket in INPUTS)

    @property
    def total(self) -> int:
        """All tokens."""
        return sum(self.tokens.values())

    def as_record(self) -> dict[str, int]:
        """For the journal: counts by the bucket's name, zeros left out."""
        return {bucket.value: count for bucket, count in self.tokens.items() if count}
