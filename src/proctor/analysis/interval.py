"""An interval and what it is good for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """From `low` to `high`, both included, with the confidence `level` that its `method` gives."""

    low: float
    high: float
    level: float
    method: str

    def as_record(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)
