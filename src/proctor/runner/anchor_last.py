"""The last checkpoint of a run that is over, pushed to anchors: it covers `run.ended`, and no entry names its receipts.

A run does this itself once its end is on the record, for a bounded time; `proctor anchor` does it later (`anchor_run`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from proctor.core.clock import SystemClock
from proctor.core.reasons import Reason
from proctor.core.tokens import Admitted
from proctor.core.waiting import finish
from proctor.evidence.anchors import receipts
from proctor.evidence.anchors.base import AnchorFailed, CheckpointFile
from proctor.evidence.anchors.places import Place
from proctor.evidence.anchors.pushing import Patience, Pusher, make_anchor
from proctor.evidence.anchors.receipts import Receipt
from proctor.evidence.disk import write_refusal
from proctor.evidence.runfolder import RunFolder


@dataclass(frozen=True)
class Last:
    """What became of the last checkpoint at one place. `receipt` is None where it has none.

    `new` says that it was pushed just now; `failed` why it was not, or does not stand there though a receipt says so.
    """

    place: Place
    receipt: Receipt | None
    new: bool
    failed: AnchorFailed | None = None

    @property
    def there(self) -> bool:
        """Whether it stands there."""
        return self.failed is None


async def push_last(
    admitted: Admitted,
    run: RunFolder,
    checkpoint: CheckpointFile,
    fingerprint: str,
    places: Sequence[Place],
    *,
    receipted: Iterable[Place],
    had: Mapping[Place, Receipt] | None = None,
    patience: Patience,
    deadline_sec: float,
) -> list[Last]:
    """Push to all places at once, and keep the receipts of those in `receipted`; whoever calls holds the run's lock.

    Where a receipt of it was `had`, the place is looked at first: nothing is pushed that stands there.

    Raises:
        Refusal: `disk_full`, `write_failed`: a receipt could not be written; `evidence_damaged` of another one.
    """
    stand, kept, said = receipts.standing(run), set(receipted), had or {}

    async def push(place: Place) -> Last:
        anchor = make_anchor(place, admitted, fingerprint, stand)
        pusher = Pusher(run, anchor, SystemClock(), stand if place in kept else ())
        try:
            async with asyncio.timeout(deadline_sec):
                if place in said and await pusher.stands(checkpoint):
                    return Last(place, said[place], False)
                taken = await pusher.push(checkpoint, patience)
        except AnchorFailed as failed:
            return Last(place, said.get(place), False, failed)
        except TimeoutError:
            message = f"it was not there after {deadline_sec:.0f} seconds"
            return Last(place, said.get(place), False, AnchorFailed(Reason.ANCHOR_UNREACHABLE, message))
        finally:
            pusher.close()
        return Last(place, await finish(pusher.keep(taken)) if place in kept else said.get(place), True)

    try:
        return list(await asyncio.gather(*map(push, places)))
    except OSError as error:
        raise write_refusal(error, "checkpoints") from error
