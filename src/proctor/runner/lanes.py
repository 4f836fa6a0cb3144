"""Lanes: which attempt runs next, and what its end means. Blocks in the drawn order, a bounded number at once.

A trial is tried until it has its final: attempts that were cut short are superseded, those that infrastructure ended
are replaced up to the design's bound, and a reason that would end every other attempt too stops the schedule.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from proctor.admission.finish import Stop
from proctor.admission.ready import Ready
from proctor.core.exits import Exit
from proctor.core.ids import attempt_id
from proctor.core.reasons import Reason
from proctor.evidence.fold import Final, RunState
from proctor.evidence.kinds import Kind
from proctor.grading.grade import GradeState
from proctor.report.progress import Progress
from proctor.rollout.attempt import run_attempt
from proctor.rollout.job import Outcome, Result
from proctor.rollout.tools import Tools
from proctor.rollout.waiting import finish
from proctor.runner.inputs import Inputs
from proctor.runner.jobs import make_job
from proctor.study.plan import Block, Plan, Trial


@dataclass
class History:
    """One trial so far: attempts, those among them that replaced one, and how the last one ended."""

    attempts: int
    replaced: int
    last: Outcome | None


class Lanes:
    """The schedule of one run."""

    def __init__(
        self,
        ready: Ready,
        inputs: Inputs,
        plan: Plan,
        past: RunState,
        tools: Tools,
        progress: Progress,
        lanes: int,
    ) -> None:
        self._ready = ready
        self._inputs = inputs
        self._plan = plan
        self._past = past
        self._tools = tools
        self._progress = progress
        self._lanes = lanes
        self._left: dict[int, int] = {}
        self._going = asyncio.Event()
        self._going.set()
        self.ungraded = 0

    @property
    def paused(self) -> bool:
        """Whether nothing new starts for now."""
        return not self._going.is_set()

    async def pause(self, paused: bool) -> None:
        """Stop starting attempts, or go on; on the record. Idempotent."""
        if paused == self.paused:
            return
        if paused:
            self._going.clear()
        await self._tools.journal.append(Kind.RUN_PAUSED if paused else Kind.RUN_UNPAUSED, {})
        if not paused:
            self._going.set()
        self._progress.paused(paused)

    async def run(self, stop: Stop) -> None:
        """Work until nothing is left or the run drains."""
        self._close_blocks()
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._watch(stop))
                async with asyncio.TaskGroup() as lanes:
                    for blocks in self._plan.by_model().values():
                        work = self._work(blocks)
                        for _ in range(self._lanes):
                            lanes.create_task(self._lane(work, stop))
                watch.cancel()
        except BaseExceptionGroup as group_fault:
            raise _first(group_fault) from group_fault

    def _work(self, blocks: tuple[Block, ...]) -> Iterator[tuple[Block, Trial]]:
        for block in blocks:
            if block.index not in self._past.blocks_ended:
                yield from ((block, trial) for trial in self._left_of(block))

    def _left_of(self, block: Block) -> list[Trial]:
        return [trial for trial in block.trials() if self._past.final(trial.id) is None]

    def _close_blocks(self) -> None:
        """End blocks whose last final was written by a process that died before it wrote their end."""
        for block in self._plan.blocks:
            if block.index not in self._past.blocks_ended and not self._left_of(block):
                self._admit_block(block)
                self._tools.journal.post(Kind.BLOCK_ENDED, {"block": block.index})

    def _admit_block(self, block: Block) -> None:
        body = {"block": block.index, "task": block.task, "model": block.model, "epoch": block.epoch}
        self._tools.journal.post(Kind.BLOCK_ADMITTED, body)

    async def _watch(self, stop: Stop) -> None:
        deadline = self._ready.design.stage.deadline_sec
        try:
            async with asyncio.timeout(deadline):
                await stop.draining.wait()
        except TimeoutError:
            stop.drain("deadline", Exit.STOPPED, Reason.STAGE_DEADLINE)
        cause = stop.cause or "operator"
        self._progress.draining(cause)
        await self._tools.journal.append(Kind.RUN_DRAINING, {"cause": cause})

    async def _lane(self, work: Iterator[tuple[Block, Trial]], stop: Stop) -> None:
        while await self.may_start(stop):
            block, trial = next(work, (None, None))
            if block is None or trial is None:
                return
            if block.index not in self._left:
                self._left[block.index] = len(self._left_of(block))
                self._admit_block(block)
            final = await self._trial(trial, stop)
            if final is not None:
                await finish(self._final(block, trial, final))

    async def may_start(self, stop: Stop) -> bool:
        """Wait while paused; False once the run drains."""
        # looked at again after waking: a pause may have followed at once, and a lane that waits holds no trial
        while not self._going.is_set() and not stop.draining.is_set():
            waits = [asyncio.ensure_future(event.wait()) for event in (self._going, stop.draining)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
        return not stop.draining.is_set()

    async def _trial(self, trial: Trial, stop: Stop) -> Final | None:
        """Try until there is a final; None where the run drains before."""
        if trial.id in self._past.due:
            return self._past.due[trial.id]
        before = self._past.trial(trial.id)
        history = History(before.attempts, before.replaced, Outcome(before.outcome) if before.outcome else None)
        while True:
            spent = history.last is Outcome.INFRASTRUCTURE and history.replaced >= self._replacements
            if spent:
                return final_of(history, None)
            if not await self.may_start(stop):
                return None
            result = await self._attempt(trial, history)
            if result.exception is not None and result.exception.ends_run:
                stop.drain(result.exception.id, Exit.INFRASTRUCTURE, result.exception)
            done = history.last is Outcome.INFRASTRUCTURE and history.replaced >= self._replacements
            if done or history.last is Outcome.COMPLETED:
                return final_of(history, result)

    async def _attempt(self, trial: Trial, history: History) -> Result:
        number, before = history.attempts, attempt_id(trial.id, history.attempts - 1)
        infrastructure = history.last is Outcome.INFRASTRUCTURE
        superseding = history.last in (Outcome.INTERRUPTED, Outcome.LOST)
        job = make_job(
            self._ready,
            self._inputs,
            trial,
            number,
            supersedes=before if superseding else None,
            replaces=before if infrastructure else None,
        )
        history.attempts += 1
        history.replaced += infrastructure
        try:
            result = await run_attempt(job, self._tools)
        except asyncio.CancelledError:
            self._progress.attempt_over(job.label, Outcome.INTERRUPTED.value)
            raise
        history.last = result.outcome
        self._progress.attempt_over(job.label, result.outcome.value)
        return result

    @property
    def _replacements(self) -> int:
        return self._ready.design.stage.replacements

    async def _final(self, block: Block, trial: Trial, final: Final) -> None:
        """The trial's final, with the block's end if it is the last one: no abort comes between the two."""
        journal = self._tools.journal
        written = [journal.post(Kind.TRIAL_FINAL, final_body(trial.id, final))]
        self._left[block.index] -= 1
        if self._left[block.index] == 0:
            written.append(journal.post(Kind.BLOCK_ENDED, {"block": block.index}))
        await asyncio.gather(*written)
        self.ungraded += final.grade == GradeState.UNGRADED
        self._progress.final(f"{trial.task} · {trial.arm} · {trial.epoch}", final.grade, final.reason)


def final_of(history: History, result: Result | None) -> Final:
    """What the last attempt of a trial makes of it: its grade, or why there is none."""
    number, grade = history.attempts - 1, result.grade if result else None
    if grade is not None:
        return Final(number, grade.state.value, grade.reason.id if grade.reason else None, grade.reward)
    why = result.exception if result and result.exception else Reason.NOT_GRADED
    return Final(number, GradeState.UNGRADED.value, why.id, None)


def final_body(trial: str, final: Final) -> dict[str, Any]:
    """The body of `trial.final`."""
    attempt = None if final.number is None else attempt_id(trial, final.number)
    return {
        "trial": trial,
        "attempt": attempt,
        "grade": final.grade,
        "reason": final.reason,
        "reward": final.reward,
    }


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    fault: BaseException = group
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return fault
