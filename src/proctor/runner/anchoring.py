"""While a run lives, its newest checkpoint is pushed to each anchor: at once, then ever again, beside all other work.

Where the study requires its anchors, nothing starts before each of them took a checkpoint of this opening, nor after a
push failed until one works again. An anchor that took nothing for `Tempo.give_up_sec` since then stops the run.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from proctor.admission.finish import Stop
from proctor.core.clock import SystemClock
from proctor.core.exits import Exit
from proctor.core.refusal import Refusal
from proctor.core.tokens import Admitted
from proctor.core.waiting import finish, first_fault, in_thread
from proctor.evidence.anchors import receipts
from proctor.evidence.anchors.base import AnchorFailed, CheckpointFile
from proctor.evidence.anchors.places import AnchorKind, Place
from proctor.evidence.anchors.pushing import Patience, Pusher, Taken, make_anchor
from proctor.evidence.anchors.receipts import Receipt
from proctor.evidence.disk import write_refusal
from proctor.evidence.journal import Journal
from proctor.evidence.kinds import Kind
from proctor.evidence.runfolder import RunFolder
from proctor.runner.anchor_last import push_last
from proctor.runner.gate import Gate

T = TypeVar("T")

_LATER = "`proctor anchor` pushes it later"


@dataclass(frozen=True)
class Tempo:
    """How a run keeps its anchors: tries of one push; of one that is required, when the next one follows a failed one,
    and how long it may fail; how long the end of a run waits for its last checkpoint to be taken.
    """

    patience: Patience
    again_sec: float = 30.0
    give_up_sec: float = 600.0
    last_sec: float = 60.0


TEMPO = Tempo(Patience())


class Anchoring:
    """The pushes of one opening of a run."""

    def __init__(
        self,
        admitted: Admitted,
        run: RunFolder,
        journal: Journal,
        places: tuple[Place, ...],
        fingerprint: str,
        *,
        every_sec: float,
        required: bool,
        notice: Callable[[str], None],
    ) -> None:
        """Pushes nothing before `run`.

        Args:
            fingerprint: of the run's key.
            every_sec: between one push that was taken and the next.
            notice: tells the person what happened.
        """
        self.gate = Gate(place.kind for place in places if required)
        self._admitted = admitted
        self._run = run
        self._journal = journal
        self._places = places
        self._fingerprint = fingerprint
        self._every_sec = every_sec
        self._required = required
        self._notice = notice
        self._tempo = TEMPO
        self._clock = SystemClock()
        self._stand: list[Receipt] = []
        self._failing: dict[AnchorKind, str] = {}
        # entries of its own behind each checkpoint
        self._own: Counter[int] = Counter()

    def as_record(self) -> list[dict[str, Any]]:
        """What each anchor holds, as `receipts.held` has it; `failing` is why its last push failed, or null, and
        `waited_for` whether nothing starts until one is taken.
        """
        held = receipts.held([(place.kind, place.location) for place in self._places], self._stand)
        return [{**each, **self._now(AnchorKind(each["anchor"]), each["location"])} for each in held]

    def _now(self, kind: AnchorKind, location: str) -> dict[str, Any]:
        pushed = any((place.kind, place.location) == (kind, location) for place in self._places)
        reason = self._failing.get(kind) if pushed else None
        return {"failing": reason, "waited_for": pushed and self.gate.waits_for(kind)}

    async def beside(self, work: Awaitable[T], stop: Stop) -> T:
        """Push while the work is done; returns its result once it is, and nothing is pushed any more.

        Raises: what the work raises, or what the journal or the disk raises where a receipt is kept.
        """
        try:
            async with asyncio.TaskGroup() as group:
                pushing = group.create_task(self._push_all(stop))
                result = await work
                pushing.cancel()
        except BaseExceptionGroup as faults:
            raise first_fault(faults) from faults
        return result

    async def finish(self) -> list[str]:
        """Push the last checkpoint, of a run that is over and still this process's; what a person should know of it."""
        made = self._journal.newest
        if not self._places or made is None or made["size"] != self._journal.size:
            return []
        if self._failing:
            self._notice(
                f"its end is on the record; the last checkpoint is pushed, for {self._tempo.last_sec:.0f} s at most"
            )
        try:
            last = await in_thread(CheckpointFile.read, self._run, self._journal.run_id, made)
            ends = await push_last(
                self._admitted,
                self._run,
                last,
                self._fingerprint,
                self._places,
                receipted=self._places,
                patience=self._tempo.patience,
                deadline_sec=self._tempo.last_sec,
            )
        except (Refusal, OSError) as fault:
            return [f"the last checkpoint was not pushed to its anchors: {fault}; {_LATER}"]
        return [
            f"the last checkpoint is not at {end.place} ({end.failed.reason.id}): {end.failed.message}; {_LATER}"
            for end in ends
            if end.failed is not None
        ]

    async def _push_all(self, stop: Stop) -> None:
        stand = await in_thread(receipts.standing, self._run) if self._places else []
        self._stand = list(receipts.newest(stand).values())
        async with asyncio.TaskGroup() as group:
            for place in self._places:
                anchor = make_anchor(place, self._admitted, self._fingerprint, stand)
                group.create_task(self._keep_pushing(Pusher(self._run, anchor, self._clock, stand), stop))

    async def _keep_pushing(self, pusher: Pusher, stop: Stop) -> None:
        place, failing_since, have = pusher.place, None, 0
        loop = asyncio.get_running_loop()
        try:
            while True:
                wait_sec = self._every_sec
                checkpoint = await self._newest()
                if checkpoint.size > have:
                    try:
                        taken = await pusher.push(checkpoint, self._tempo.patience)
                    except AnchorFailed as failed:
                        failing_since = loop.time() if failing_since is None else failing_since
                        given_up = failed.is_final or loop.time() - failing_since >= self._tempo.give_up_sec
                        await self._failed(place, checkpoint, failed, stop if given_up else None)
                        if self._required:
                            wait_sec = min(self._every_sec, self._tempo.again_sec)
                    else:
                        # a receipt that stands is named, whoever is cancelled meanwhile
                        await finish(self._taken(pusher, taken))
                        if failing_since is not None:
                            self._notice(f"{place} takes checkpoints again, up to entry {checkpoint.size}")
                        have, failing_since = checkpoint.size, None
                await asyncio.sleep(wait_sec)
        finally:
            pusher.close()

    async def _newest(self) -> CheckpointFile:
        """The newest checkpoint of this opening; one is made where there is none, or more than pushes since then."""
        newest = self._journal.newest
        # the one after it is the entry that names it
        if newest is None or self._journal.size > newest["size"] + 1 + self._own[newest["size"]]:
            await self._journal.checkpoint()
        made = self._journal.newest
        assert made is not None, "one was made"
        return await in_thread(CheckpointFile.read, self._run, self._journal.run_id, made)

    async def _taken(self, pusher: Pusher, taken: Taken) -> None:
        try:
            receipt = await pusher.keep(taken)
        except OSError as error:
            raise write_refusal(error, "checkpoints") from error
        await self._post(Kind.CHECKPOINT_ANCHORED, receipt.entry())
        self._stand = [each for each in self._stand if each.anchor is not receipt.anchor] + [receipt]
        self._failing.pop(receipt.anchor, None)
        self.gate.open(receipt.anchor)

    def _post(self, kind: Kind, body: Mapping[str, Any]) -> asyncio.Future[int]:
        newest = self._journal.newest
        self._own[0 if newest is None else newest["size"]] += 1
        return self._journal.post(kind, body)

    async def _failed(self, place: Place, checkpoint: CheckpointFile, failed: AnchorFailed, stop: Stop | None) -> None:
        self._failing[place.kind] = failed.reason.id
        said = self._post(Kind.ANCHOR_FAILED, _failure(place, checkpoint, failed))
        if self._required:
            # in one step with the entry: no block may be admitted behind it
            self.gate.shut(place.kind)
        goes_on = "nothing starts until it works" if self._required else "the run goes on, and it is tried again"
        self._notice(f"{place} did not take the checkpoint ({failed.reason.id}): {failed.message}; {goes_on}")
        if self._required and stop is not None:
            stop.drain(failed.reason.id, Exit.STOPPED, failed.reason)
        await said


def _failure(place: Place, checkpoint: CheckpointFile, failed: AnchorFailed) -> Mapping[str, Any]:
    """The body of an `anchor.failed`."""
    return {
        "anchor": place.kind.value,
        "size": checkpoint.size,
        "attempts": failed.attempts,
        "return_code": failed.return_code,
        "reason": failed.reason.id,
        "message": failed.message,
    }
