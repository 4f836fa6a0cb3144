"""The model of an attempt: handed to its agent under a lease, and taken back before the agent's end is said."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from proctor.agents.base import abilities
from proctor.core.families import Family
from proctor.core.models import Door, ModelAccess
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import finish
from proctor.evidence.kinds import Kind
from proctor.gateway.doors import Opened
from proctor.rollout.job import Try
from proctor.rollout.record import Record
from proctor.rollout.tools import Tools
from proctor.sandbox.base import Ended, Sandbox

# a provider's last word on this request: trying the whole attempt again would end the same way
_FINAL = frozenset({Reason.REQUEST_REJECTED, Reason.REPLY_TOO_LARGE})
# what an agent may say of its model only where an exchange said so before it; `context` is a limit of its own as well
_OF_EXCHANGES = frozenset(reason for reason in Reason if reason.family in (Family.BUDGET, Family.PROVIDER)) - {
    Reason.CONTEXT_EXCEEDED
}


class NotPaid(Exception):
    """The agent went as far as it could be paid for, or as its provider let it: there is nothing to grade."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


@dataclass(frozen=True)
class Reach:
    """How an agent reaches its trial's model: `model` outside of the sandbox, `opened` inside; or not at all."""

    model: ModelAccess | None = None
    opened: Opened | None = None

    @property
    def door(self) -> Door | None:
        """What an agent inside is handed."""
        return None if self.opened is None else self.opened.door

    def answer_for(self, ended: Ended) -> None:
        """See that what ended an agent inside is its own doing, and not its model's.

        Raises:
            Refusal: the one for which a request could not be paid for, whatever the agent made of that; the one for
                which none was passed on, where the model was never asked; and what went wrong with its last exchange,
                where no agent of the run can go on, or this one gave up.
        """
        if self.opened is None:
            return
        if self.opened.refused is not None:
            raise self.opened.refused
        if self.opened.never_asked is not None:
            raise self.opened.never_asked
        failure = self.opened.failed
        gave_up = ended.exit_code not in (0, None)
        if failure is not None and (failure.reason.ends_run or (failure.again and gave_up)):
            raise Refusal(failure.reason, "the agent ended after its model gave no answer", observed=ended.exit_code)


@contextlib.asynccontextmanager
async def model_of(job: Try, tools: Tools, record: Record, world: Sandbox | None = None) -> AsyncIterator[Reach]:
    """The trial's model while the block runs; all that it cost is settled afterwards.

    `world` is where an agent inside reaches it from.

    Raises:
        NotPaid: in place of a Refusal that ends the attempt for good.
        RuntimeError: in place of one that the agent made up, which the record would contradict.
    """
    if job.model_design is None:
        yield Reach()
        return
    lease = tools.authority.lease(job.attempt, job.block, job.model_design.name)
    if world is not None and abilities(job.agent).inside:
        opened = await tools.gateway.open(job.model_design, lease, record, job.attempt, await world.listen())
        reach, close = Reach(opened=opened), opened.close
    else:
        access = tools.gateway.access(job.model_design, lease, record, job.attempt)
        reach, close = Reach(model=access), access.close
    try:
        yield reach
    except Refusal as refusal:
        if refusal.reason in _OF_EXCHANGES and refusal.reason.id not in _said(record):
            raise RuntimeError(f"the agent gave up for {refusal.reason.id}, which its model never said") from refusal
        if refusal.reason.family in (Family.BUDGET, Family.GATEWAY) or refusal.reason in _FINAL:
            raise NotPaid(refusal) from refusal
        raise
    finally:
        await finish(close())


def _said(record: Record) -> set[str]:
    """Reasons that exchanges of the attempt gave."""
    refused = {body["reason"] for body in record.said.get(Kind.EXCHANGE_REFUSED, ())}
    return refused | {body["error"] for body in record.said.get(Kind.EXCHANGE_ENDED, ())}
