"""One attempt at a question row: no sandbox, no folder, all of it in the journal.

start → agent → score → close
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from proctor.agents.base import Answered, RowAgent, RowTurn
from proctor.core.canonical import encode
from proctor.core.models import Message, Role
from proctor.core.outcomes import GradeState, Outcome
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.kinds import Kind
from proctor.grading.scorers.score import target_text
from proctor.rollout import verdict
from proctor.rollout.calls import model_of
from proctor.rollout.ends import Steps, to_its_end
from proctor.rollout.job import Result, RowJob
from proctor.rollout.scoring import score_row
from proctor.rollout.tools import Tools
from proctor.sandbox.base import Ended

# an agent without a deadline of its own still ends
NO_DEADLINE_SEC = 24 * 3600.0
# longer answers are cut before they are scored and kept
MAX_ANSWER_CHARS = 1 << 20


async def run_row(job: RowJob, tools: Tools) -> Result:
    """Run one attempt at a row to its end, whatever that is.

    Raises:
        Refusal: the journal takes no more: then nothing may go on.
        asyncio.CancelledError: after the interrupted attempt was put on the record.
    """
    return await to_its_end(RowAttempt(job, tools))


class RowAttempt(Steps):
    """The steps of one attempt at a row."""

    def __init__(self, job: RowJob, tools: Tools) -> None:
        super().__init__(job, tools)
        self.job = job

    async def run(self) -> Result:
        """All steps but the last, which comes in any case."""
        await self.admit()
        answered = await self.agent()
        return await self.score(answered)

    async def admit(self) -> None:
        """On the record; durable before anything is sent, since every exchange waits for all before it."""
        self.record.post(Kind.ATTEMPT_ADMITTED, **self.job.as_entry())
        self.mark("start")

    async def agent(self) -> Answered:
        """Let the agent answer until it is done or its deadline comes."""
        job = self.job
        self.tools.on_phase(job.label, "agent")
        self.record.post(
            Kind.AGENT_STARTED, {"instruction": _asked(job.messages)}, **job.agent_entry(job.agent.version())
        )
        began = self.tools.clock.mono_ns()
        answered = await self._answer()
        exception, took = answered.exception, self.tools.clock.mono_ns() - began
        # no process ran: the agent lives in this one
        ended = Ended(exit_code=0, signal=None, timed_out=exception is Reason.AGENT_TIMEOUT, duration_ns=took)
        self.record.post(
            Kind.AGENT_ENDED,
            exception=exception.id if exception else None,
            ended=ended.as_record(),
            duration_ns=took,
        )
        self.mark("agent")
        return answered

    async def _answer(self) -> Answered:
        job = self.job
        agent = cast(RowAgent, job.agent)  # admission saw that it can answer
        deadline = job.agent_timeout_sec or NO_DEADLINE_SEC
        async with model_of(job, self.tools, self.record) as reach:
            turn = RowTurn(
                messages=job.messages,
                tools=job.tools,
                deadline_sec=deadline,
                skills=job.skills,
                model=reach.model,
                target=target_text(job.question) if job.agent.needs_solution else None,
            )
            limit = asyncio.timeout(deadline)
            try:
                async with limit:
                    return await agent.answer(turn)
            except TimeoutError:
                if not limit.expired():
                    raise
                return Answered(None, Reason.AGENT_TIMEOUT)
            except Refusal as refusal:
                if refusal.reason is not Reason.CONTEXT_EXCEEDED:
                    raise
                return Answered(None, refusal.reason)

    async def score(self, answered: Answered) -> Result:
        """What the row's scorer makes of the answer, and the grade: from here on the attempt counts."""
        job = self.job
        answer = None if answered.answer is None else answered.answer[:MAX_ANSWER_CHARS]
        scored = await score_row(
            job.question,
            answer,
            workers=self.tools.workers,
            functions=job.functions,
            deadline_sec=job.scorer_timeout_sec,
        )
        redactor = self.tools.gateway.redactor
        scored = replace(scored, detail=redactor.text(scored.detail))
        self.record.post(
            Kind.ANSWER_SCORED,
            {"answer": redactor.bytes((answer or "").encode("utf-8", "backslashreplace"))},
            scorer=job.question.scorer.value,
            detail=scored.detail,
        )
        grade = scored.grade(job.rule)
        if grade.state is not GradeState.UNGRADED:
            # what was compared stands in the entry before: it is nothing that a reader must know beside the grade
            grade = replace(grade, disclosures=())
        self.record.post(Kind.ATTEMPT_GRADED, **verdict.as_entry(grade))
        self.mark("score")
        return Result(Outcome.COMPLETED, grade, answered.exception, answered.message)

    async def close(self, result: Result) -> Result:
        """End the attempt; returns what it came to."""
        self.mark("close")
        result = replace(result, timing=dict(self.timing))
        # one wait for all of it: only a journal that takes no more fails here, and then the end is refused as well
        await self.record.add(Kind.ATTEMPT_ENDED, **result.as_entry())
        return result


def _asked(messages: Sequence[Message]) -> bytes:
    """What the agent is asked: one message of the user is its text alone."""
    if len(messages) == 1 and messages[0].role is Role.USER:
        return messages[0].text.encode("utf-8", "backslashreplace")
    return encode([{"role": message.role.value, "content": message.text} for message in messages])
