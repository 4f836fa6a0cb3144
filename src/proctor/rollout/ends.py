"""How attempts end: what a fault makes of one, and what an agent's end is called."""

from __future__ import annotations

import asyncio
import traceback
from abc import ABC, abstractmethod

from proctor.agents.base import LIMITS
from proctor.core.files import NO_SPACE
from proctor.core.outcomes import Outcome
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import finish
from proctor.evidence.disk import write_refusal
from proctor.evidence.kinds import Kind
from proctor.grading.grade import ungraded
from proctor.rollout import verdict
from proctor.rollout.calls import NotPaid
from proctor.rollout.job import Result, Try
from proctor.rollout.record import Record
from proctor.rollout.tools import Tools
from proctor.sandbox.base import Ended


class Steps(ABC):
    """An attempt: what it does, and how it is closed whatever came of that; `timing` is of its phases, in ns."""

    def __init__(self, job: Try, tools: Tools) -> None:
        self.tools = tools
        self.record = Record(tools.journal, tools.run, job.attempt, job.folder)
        self.timing: dict[str, int] = {}
        self._since = tools.clock.mono_ns()

    @abstractmethod
    async def run(self) -> Result:
        """Everything up to the grade."""

    @abstractmethod
    async def close(self, result: Result) -> Result:
        """End it on the record; returns what it came to."""

    def mark(self, phase: str) -> None:
        """A phase ends here."""
        now = self.tools.clock.mono_ns()
        self.timing[phase] = now - self._since
        self._since = now


async def to_its_end(attempt: Steps) -> Result:
    """Run an attempt to its end, whatever that is.

    Raises:
        Refusal: the journal takes no more: then nothing may go on.
        asyncio.CancelledError: after the interrupted attempt was put on the record.
    """
    result = Result(Outcome.INTERRUPTED, None, Reason.INTERRUPTED)
    try:
        result = await attempt.run()
    except NotPaid as fault:
        result = _unpaid(attempt.record, fault.refusal)
    except (Exception, SystemExit) as fault:
        # the boundary of an attempt: a fault of ours ends this attempt, on the record, and not the run
        result = ended_by(fault)
    finally:
        result = await finish(attempt.close(result))
    if _is_cancelled():
        raise asyncio.CancelledError
    return result


def _unpaid(record: Record, refusal: Refusal) -> Result:
    """The attempt counts, and there is nothing to grade: its model may not be paid, or takes no such request."""
    grade = ungraded(refusal.reason, refusal.message)
    record.post(Kind.ATTEMPT_GRADED, **verdict.as_entry(grade))
    return Result(Outcome.COMPLETED, grade, refusal.reason, str(refusal))


def _is_cancelled() -> bool:
    """Whether this attempt is to stop: also where a fault of the clean-up took the place of the cancellation."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def ended_by(fault: BaseException) -> Result:
    """What an attempt comes to that a fault ended."""
    if _is_cancelled():
        return Result(Outcome.INTERRUPTED, None, Reason.INTERRUPTED)
    if isinstance(fault, OSError) and fault.errno in NO_SPACE:
        fault = write_refusal(fault, "")
    if isinstance(fault, Refusal):
        outcome = Outcome.INTERRUPTED if fault.reason.ends_run else Outcome.INFRASTRUCTURE
        return Result(outcome, None, fault.reason, str(fault))
    traceback.print_exception(fault)
    return Result(Outcome.INFRASTRUCTURE, None, Reason.INTERNAL_ERROR, f"{type(fault).__name__}: {fault}")


def exception_of(ended: Ended) -> Reason | None:
    """How an agent ended other than by itself with status 0, if it did."""
    if ended.start_error is not None:
        return Reason.AGENT_START_FAILED
    if ended.timed_out:
        return Reason.AGENT_TIMEOUT
    if ended.limit_hit in LIMITS:
        return LIMITS[ended.limit_hit]
    if ended.signal is not None or ended.limit_hit is not None:
        return Reason.AGENT_KILLED
    if ended.exit_code != 0:
        return Reason.AGENT_ERROR
    if ended.output_dropped:
        return Reason.AGENT_OUTPUT_CAPPED
    return None
