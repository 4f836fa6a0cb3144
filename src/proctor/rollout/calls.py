"""The model of an attempt: handed to its agent under a lease, and taken back before the agent's end is said."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from proctor.core.families import Family
from proctor.core.models import ModelAccess
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import finish
from proctor.evidence.kinds import Kind
from proctor.rollout.job import Try
from proctor.rollout.record import Record
from proctor.rollout.tools import Tools

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


@contextlib.asynccontextmanager
async def model_of(job: Try, tools: Tools, record: Record) -> AsyncIterator[ModelAccess | None]:
    """The trial's model while the block runs, or None where it has none; all that it cost is settled afterwards.

    Raises:
        NotPaid: in place of a Refusal that ends the attempt for good.
        RuntimeError: in place of one that the agent made up, which the record would contradict.
    """
    if job.model_design is None:
        yield None
        return
    lease = tools.authority.lease(job.attempt, job.block, job.model_design.name)
    access = tools.gateway.access(job.model_design, lease, record, job.attempt)
    try:
        yield access
    except Refusal as refusal:
        if refusal.reason in _OF_EXCHANGES and refusal.reason.id not in _said(record):
            raise RuntimeError(f"the agent gave up for {refusal.reason.id}, which its model never said") from refusal
        if refusal.reason.family is Family.BUDGET or refusal.reason in _FINAL:
            raise NotPaid(refusal) from refusal
        raise
    finally:
        await finish(access.close())


def _said(record: Record) -> set[str]:
    """Reasons that exchanges of the attempt gave."""
    refused = {body["reason"] for body in record.said.get(Kind.EXCHANGE_REFUSED, ())}
    return refused | {body["error"] for body in record.said.get(Kind.EXCHANGE_ENDED, ())}
