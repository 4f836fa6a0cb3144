"""The rate at which one model is called, over all attempts: requests and tokens a minute, first come, first served.

Each is a bucket that fills evenly and holds a second's worth, one at least. A request starts once neither is in debt,
and may take more than there is: so a long one is never locked out, and those behind it wait until it is made up for.
Tokens are guessed before the request is sent and put right by its usage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from proctor.core.clock import Clock

Sleep = Callable[[float], Awaitable[None]]

_MINUTE_NS = 60 * 10**9


class Rate:
    """The buckets of one model.

    Args:
        rpm: requests a minute; None without limit.
        tpm: tokens a minute; None without limit.
    """

    def __init__(self, rpm: int | None, tpm: int | None, clock: Clock, sleep: Sleep) -> None:
        self._requests = _Bucket(rpm, clock) if rpm is not None else None
        self._tokens = _Bucket(tpm, clock) if tpm is not None else None
        self._sleep = sleep
        # its waiters are served in order, and one that is cancelled gives its place up
        self._turn = asyncio.Lock()

    async def take(self, tokens: int) -> None:
        """Wait until a request of about that many tokens may start."""
        if self._requests is None and self._tokens is None:
            return
        async with self._turn:
            while (wait := max(bucket.wait_sec(least) for bucket, least in self._both())) > 0:
                await self._sleep(wait)
            if self._requests is not None:
                self._requests.take(1)
            self.correct(tokens)

    def correct(self, tokens: int) -> None:
        """Count tokens on top of what was guessed; fewer, where negative."""
        if self._tokens is not None:
            self._tokens.take(tokens)

    def _both(self) -> list[tuple[_Bucket, int]]:
        buckets = ((self._requests, 1), (self._tokens, 0))
        return [(bucket, least) for bucket, least in buckets if bucket is not None]


class _Bucket:
    """Counts in units of 1/60,000,000,000, so that each nanosecond adds `per_minute`."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._most = max(per_minute * 10**9, _MINUTE_NS)
        self._level = self._most
        self._seen = clock.mono_ns()

    def wait_sec(self, least: int) -> float:
        """Until `least` are in it."""
        missing = least * _MINUTE_NS - self._fill()
        return -(-missing // self._per_minute) / 1e9 if missing > 0 else 0.0

    def take(self, count: int) -> None:
        """More than there are leaves a debt."""
        self._level = min(self._most, self._fill() - count * _MINUTE_NS)

    def _fill(self) -> int:
        now = self._clock.mono_ns()
        self._level = min(self._most, self._level + (now - self._seen) * self._per_minute)
        self._seen = now
        return self._level
