"""The exchanges of one attempt with one model: numbered without gaps, held before they are sent, settled once each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from proctor.budget.authority import FOR_MONEY
from proctor.budget.lease import EntryWriter, Lease
from proctor.core.money import ZERO, Usd
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.packs import Content
from proctor.gateway.exchange import Ending, Request

# An attempt that ends has cancelled its agent, which settles at once; what is still in flight then is cancelled too.
CLOSE_SEC = 10.0
# What an agent asks in vain it may ask for ever: the journal is not its to fill.
MAX_REFUSED = 256
MAX_REFUSED_BYTES = 16 * 2**20
# Nor are the disk and the processor an agent's: what is refused, here or by its provider, and counts of tokens cost
# nothing, so that no budget bounds them.
MAX_FREE_BYTES = 512 * 2**20


class Flights:
    """From `hold` to `settle` an exchange is in flight. After `close` nothing is held.

    `refused` is the first refusal for money, None as long as there was none.

    Args:
        most_free: bytes that requests which cost nothing, or are refused, may have together; None for any number.
    """

    def __init__(self, lease: Lease, writer: EntryWriter, attempt: str, *, most_free: int | None = None) -> None:
        self.refused: Refusal | None = None
        self._lease = lease
        self._writer = writer
        self._attempt = attempt
        self._count = 0
        self._closed = False
        self._tasks: set[asyncio.Task[object] | None] = set()
        self._landed = asyncio.Event()
        self._refusals = 0
        self._refused_bytes = 0
        self._sizes: dict[str, int] = {}
        self._free_bytes = 0
        self._most_free = most_free

    @property
    def closed(self) -> bool:
        """Whether the attempt is over."""
        return self._closed

    def check_open(self) -> None:
        """Raises Refusal `lease_stale`."""
        if self._closed:
            raise Refusal(Reason.LEASE_STALE, "the attempt is over, so its model cannot be asked", path=self._attempt)

    def check_free(self) -> None:
        """Raises Refusal `request_too_large`, where too much was asked for that cost nothing."""
        if self._most_free is not None and self._free_bytes > self._most_free:
            raise Refusal(
                Reason.REQUEST_TOO_LARGE,
                "the attempt's requests that cost nothing, or were refused, are larger than what is looked at of them",
                path=self._attempt,
                required={"bytes": self._most_free},
            )

    @contextmanager
    def flight(self) -> Iterator[None]:
        """The caller's task is waited for by `close`, and cancelled where that takes too long."""
        task = asyncio.current_task()
        self._tasks.add(task)
        self._landed.clear()
        try:
            yield
        finally:
            self._tasks.discard(task)
            if not self._tasks:
                self._landed.set()

    async def hold(self, request: Request, before: str | None) -> str:
        """Hold the worst case, durably; returns the exchange's id. Within `flight`.

        Args:
            before: the exchange whose request this one sends again.

        Raises:
            Refusal: for money, on the record; `lease_stale`; the journal's.
        """
        self.check_open()
        exchange = f"{self._attempt}/{self._count}"
        blobs: Mapping[str, Content] = {"request": request.recorded}
        try:
            # Nothing is awaited before it is on its way: so numbers have no gaps, and nobody waits for another's disk.
            self._lease.take(self._writer, exchange, request.held, blobs=blobs, retries=before, **request.admitted)
        except Refusal as refusal:
            if refusal.reason in FOR_MONEY:
                self.refused = self.refused or refusal
                await self.refuse(refusal, request.held, route=request.route, body=request.recorded)
            raise
        self._count += 1
        self._sizes[exchange] = len(request.recorded)
        await self._lease.confirm(self._writer, exchange)
        return exchange

    async def refuse(
        self, refusal: Refusal, held: Usd = ZERO, *, route: str | None = None, body: bytes | None = None
    ) -> None:
        """Have it on the record, durably, that a request is not sent: the first `MAX_REFUSED` of an attempt, and
        the first for money, which decides of its grade.

        Args:
            body: without secrets; not kept after `MAX_REFUSED_BYTES` of them. Raises the journal's Refusal.
        """
        self._free_bytes += len(body or b"")
        self._refusals += 1
        if self._refusals > MAX_REFUSED and refusal is not self.refused:
            return
        self._refused_bytes += len(body or b"")
        kept = {"request": body} if body is not None and self._refused_bytes <= MAX_REFUSED_BYTES else None
        self._lease.refuse(self._writer, refusal, held, route=route, blobs=kept)
        await self._writer.settle()

    def settle(self, exchange: str, ending: Ending) -> None:
        """Charge it, and post its end. Raises the journal's Refusal."""
        size = self._sizes.pop(exchange)
        if ending.charged == ZERO:
            self._free_bytes += size
        self._lease.settle(
            self._writer, exchange, ending.charged, outcome=ending.outcome, blobs=ending.blobs, **ending.body
        )

    async def durable(self) -> None:
        """Wait until all that was posted is. Raises the journal's Refusal."""
        await self._writer.settle()

    def end(self) -> None:
        """Nothing is held from here on, and what asks for it is refused."""
        self._closed = True

    async def landed(self) -> None:
        """Wait until nothing is in flight."""
        while self._tasks:
            await self._landed.wait()

    async def close(self, *, at_once: bool = False) -> None:
        """Wait until all that is in flight is settled and on the record; nothing can be held from here on.

        Args:
            at_once: what is in flight is cancelled now, and not after `CLOSE_SEC`.

        Raises:
            Refusal: the journal's, where it could not be written.
        """
        self._closed = True
        for patience in (0.0 if at_once else CLOSE_SEC, CLOSE_SEC):
            if not self._tasks:
                break
            try:
                async with asyncio.timeout(patience):
                    await self._landed.wait()
            except TimeoutError:
                for task in self._tasks:
                    if task is not None:
                        task.cancel()
        self._lease.end()
        await self._writer.settle()
