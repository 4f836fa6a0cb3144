"""How attempts end: what a fault makes of one, and what an agent's end is called."""

from __future__ import annotations

import asyncio
import traceback

from proctor.agents.base import LIMITS
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.disk import NO_SPACE, write_refusal
from proctor.rollout.job import Outcome, Result
from proctor.sandbox.base import Ended


def is_cancelled() -> bool:
    """Whether this attempt is to stop: also where a fault of the clean-up took the place of the cancellation."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def ended_by(fault: BaseException) -> Result:
    """What an attempt comes to that a fault ended."""
    if is_cancelled():
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
