"""The right of one attempt to spend: what it asks of the authority, and the entries that say so, one step each."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from proctor.core.money import ZERO, Usd
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.exchanges import unanswered
from proctor.evidence.kinds import Kind
from proctor.evidence.packs import Content

if TYPE_CHECKING:
    from proctor.budget.authority import Authority

SETTLED = "settled"
RELEASED = "released"


class EntryWriter(Protocol):
    """Writes the entries of one attempt."""

    def post(self, kind: Kind, blobs: Mapping[str, Content] | None = None, /, **body: Any) -> None:
        """Put an entry in order now; the attempt's id is added."""
        ...

    async def settle(self) -> None:
        """Wait until all that was posted is durable."""
        ...


class Lease:
    """One attempt's right to spend. After `end` it is stale: what is in flight can still be settled, nothing held."""

    def __init__(self, authority: Authority, attempt: str, block: int, model: str) -> None:
        """For `Authority.lease`."""
        self.attempt = attempt
        self.model = model
        self._authority = authority
        self._block = block
        self._held: dict[str, Usd] = {}
        self._stale = False

    def take(
        self,
        writer: EntryWriter,
        exchange: str,
        held: Usd,
        *,
        blobs: Mapping[str, Content] | None = None,
        **body: Any,
    ) -> None:
        """Hold an exchange's worst case and post its `exchange.admitted`; `confirm` says when it may be sent.

        Args:
            writer: of the attempt.
            exchange: id, `<attempt>/<index>`, not used before.
            held: the worst case.
            blobs: `request`.
            body: the other fields of `exchange.admitted`.

        Raises:
            Refusal: CEILING_REACHED, OVERRUN, BUDGET_ABSENT: it may not be paid for, and the caller puts that
                on the record with `refuse`; LEASE_STALE: its attempt may have ended; and the journal's.
            ValueError: the exchange is another attempt's or in flight, the amount is negative, fields are missing.
        """
        if not exchange.startswith(f"{self.attempt}/"):
            raise ValueError(f"{exchange} is no exchange of {self.attempt}")
        if self._stale:
            raise Refusal(
                Reason.LEASE_STALE, "the attempt's right to spend has ended", observed=exchange, required="a live lease"
            )
        refusal = self._authority.hold(exchange, self._block, held)
        if refusal is not None:
            raise refusal
        self._held[exchange] = held
        try:
            whole = {**body, "exchange": exchange, "model": self.model, "held": str(held)}
            writer.post(Kind.EXCHANGE_ADMITTED, blobs, **whole)
        except BaseException:
            self._drop(exchange)
            raise

    def refuse(
        self,
        writer: EntryWriter,
        refusal: Refusal,
        held: Usd = ZERO,
        *,
        route: str | None = None,
        blobs: Mapping[str, Content] | None = None,
    ) -> None:
        """Post `exchange.refused`: a request that is not sent. Raises the journal's Refusal."""
        said = {"model": self.model, "reason": refusal.reason.id, "held": str(held), "message": refusal.message}
        unread = {} if blobs else {"request": None}
        writer.post(Kind.EXCHANGE_REFUSED, blobs, **said, route=route, **unread)

    async def confirm(self, writer: EntryWriter, exchange: str) -> None:
        """Wait until what was taken is durable; cancelled, it ends as released on the record. Raises Refusal."""
        try:
            await writer.settle()
        except Refusal:
            # not written; or the disk failed, and whoever closes the journal ends what did reach it
            self._drop(exchange)
            raise
        except BaseException:
            # the entry will be durable all the same; a journal that takes no more says so to everyone else
            with suppress(Refusal):
                body = unanswered(Reason.INTERRUPTED, estimated=False)
                self.settle(writer, exchange, ZERO, outcome=RELEASED, **body)
            raise

    def settle(
        self,
        writer: EntryWriter,
        exchange: str,
        charged: Usd,
        *,
        outcome: str,
        blobs: Mapping[str, Content] | None = None,
        **body: Any,
    ) -> bool:
        """Charge an exchange and post its `exchange.ended`; whether more was charged than held.

        Args:
            outcome: `settled`, or `released` where nothing is owed.
            blobs: `response` and `chunks`, where there are any.
            body: the other fields of `exchange.ended`.

        Raises:
            ValueError: it is not in flight (each is settled once), a negative amount, or one that is not zero for
                `released`; fields that are missing.
            Refusal: the journal's.
        """
        if outcome not in (SETTLED, RELEASED) or (outcome == RELEASED and charged != ZERO):
            raise ValueError(f"{exchange} cannot end as {outcome!r} with {charged}")
        if exchange not in self._held:
            raise ValueError(f"{exchange} is not in flight under this lease")
        overrun = self._authority.settle(exchange, charged)
        del self._held[exchange]
        whole = {**body, "exchange": exchange, "outcome": outcome, "charged": str(charged), "overrun": overrun}
        writer.post(Kind.EXCHANGE_ENDED, blobs, **whole)
        if overrun:
            self._authority.disclose_overrun()
        return overrun

    def end(self) -> None:
        """Nothing can be held from here on. Raises ValueError, stale all the same: something is in flight."""
        self._stale = True
        if self._held:
            raise ValueError(f"exchanges are in flight: {sorted(self._held)}")

    def _drop(self, exchange: str) -> None:
        self._authority.drop(exchange)
        del self._held[exchange]
