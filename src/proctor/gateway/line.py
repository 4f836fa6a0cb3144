"""What accesses to one model share, and what all of them do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from proctor.core.clock import Clock
from proctor.core.redact import Redactor
from proctor.gateway.rates import Rate, Sleep
from proctor.gateway.upstream import Upstream
from proctor.gateway.wire.base import Wire

# A rough guess for rates alone, put right by the usage: no money goes by it.
BYTES_PER_TOKEN = 4


@dataclass(slots=True)
class Means:
    """Of a gateway: what takes secrets out, both times, waiting for seconds, and a number from 0 to 1."""

    redactor: Redactor
    clock: Clock
    sleep: Sleep
    chance: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Line:
    """What all attempts of one model share. `wire` is the model's own format."""

    wire: Wire
    upstream: Upstream
    rate: Rate
