"""One push with its tries: again and again, ever later, until it is taken or it is not to be expected any more."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from proctor.core.clock import Clock
from proctor.core.tokens import Admitted
from proctor.core.waiting import in_thread
from proctor.evidence.anchors import receipts
from proctor.evidence.anchors.base import Anchor, AnchorFailed, CheckpointFile, Pushed
from proctor.evidence.anchors.drop import DropAnchor
from proctor.evidence.anchors.git import GitAnchor
from proctor.evidence.anchors.places import AnchorKind, Place
from proctor.evidence.anchors.receipts import Receipt, Stretch
from proctor.evidence.runfolder import RunFolder

T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """How often one push is tried, and how long is waited between: `first_sec`, doubled each time up to `most_sec`.

    Each wait is drawn between half of that and all of it, so that many runs do not come back at once.
    """

    tries: int = 5
    first_sec: float = 1.0
    most_sec: float = 30.0

    def waits(self) -> list[float]:
        """The waits between the tries, in seconds."""
        most = [min(self.most_sec, self.first_sec * 2**number) for number in range(self.tries - 1)]
        return [wait * random.uniform(0.5, 1.0) for wait in most]


@dataclass(frozen=True)
class Taken:
    """A checkpoint that stands at an anchor, and has no receipt yet."""

    checkpoint: CheckpointFile
    pushed: Pushed
    took: Stretch


def make_anchor(place: Place, admitted: Admitted, fingerprint: str, stand: Sequence[Receipt]) -> Anchor:
    """The anchor of a place, for the run that was admitted; `stand` are the run's receipts."""
    if place.kind is AnchorKind.DROP:
        return DropAnchor(place, admitted)
    commits = [
        receipt.commit for receipt in stand if (receipt.anchor, receipt.location) == (place.kind, place.location)
    ]
    return GitAnchor(place, admitted, fingerprint, last=commits[-1] if commits else None)


class Pusher:
    """Pushes the checkpoints of one run to one anchor, and keeps the receipts of it. For one event loop."""

    def __init__(self, run: RunFolder, anchor: Anchor, clock: Clock, stand: Sequence[Receipt]) -> None:
        """`stand` are the run's receipts so far."""
        self.place = anchor.place
        self._run = run
        self._anchor = anchor
        self._clock = clock
        own = [receipt for receipt in stand if receipt.anchor is anchor.place.kind]
        # the wall clock may be set back; what receipts say of it may not fall
        self._floor = own[-1].ended if own else ""

    async def push(self, checkpoint: CheckpointFile, patience: Patience) -> Taken:
        """Push until it is taken; what is returned is for `keep`.

        Cancelled, a push that goes on is ended, and what stands at the anchor then has no receipt.

        Raises:
            AnchorFailed: the last try's, with the number of tries.
        """
        started = self._now()
        waits = patience.waits()
        attempts = 0
        while True:
            attempts += 1
            try:
                pushed = await self._try(lambda: self._anchor.push(checkpoint, self._now()))
                break
            except AnchorFailed as failed:
                if failed.is_final or not waits:
                    raise failed.after(attempts) from failed
            await asyncio.sleep(waits.pop(0))
        return Taken(checkpoint, pushed, Stretch(started, self._now(), attempts))

    async def stands(self, checkpoint: CheckpointFile) -> bool:
        """As `Anchor.stands`, once. Raises AnchorFailed."""
        return await self._try(lambda: self._anchor.stands(checkpoint))

    async def keep(self, taken: Taken) -> Receipt:
        """Write the receipt, durably. Raises OSError."""
        return await in_thread(receipts.write, self._run, self.place, taken.checkpoint, taken.pushed, taken.took)

    def close(self) -> None:
        """Let go of what the anchor made on this machine."""
        self._anchor.close()

    async def _try(self, work: Callable[[], T]) -> T:
        trying = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            return await asyncio.shield(trying)
        except asyncio.CancelledError:
            self._anchor.cancel()
            # so that it is over, and its scratch folder nobody's, when this is
            await asyncio.wait({trying})
            if not trying.cancelled():
                trying.exception()
            raise

    def _now(self) -> str:
        self._floor = max(self._floor, self._clock.utc())
        return self._floor
