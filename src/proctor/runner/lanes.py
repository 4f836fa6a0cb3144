"""Lanes: which attempt runs next, and what its end means. Blocks in the drawn order, a bounded number at once.

A trial is tried until it has its final: attempts that were cut short are superseded, those that infrastructure ended
are replaced up to the design's bound, unless it was for want of an image, and a reason that would end every other
attempt too stops the schedule.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from proctor.admission.finish import Stop
from proctor.admission.ready import Ready
from proctor.core.exits import Exit
from proctor.core.families import Family
from proctor.core.ids import attempt_id
from proctor.core.outcomes import GradeState, Outcome
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import finish, first_fault, first_of
from proctor.evidence.fold import Final, NextAttempt, RunState, TrialState
from proctor.evidence.kinds import Kind
from proctor.report.progress import Progress
from proctor.rollout.attempt import run_attempt
from proctor.rollout.job import Result, RowJob
from proctor.rollout.row import run_row
from proctor.rollout.tools import Tools
from proctor.runner.gate import Gate
from proctor.runner.inputs import Inputs
from proctor.runner.jobs import make_job
from proctor.study.plan import Block, Plan, Trial

# images are brought once, before all attempts: what one attempt lacks the next one would lack as well
_IMAGES = frozenset({Reason.IMAGE_MISSING, Reason.IMAGE_MOVED, Reason.IMAGE_BUILD_FAILED})


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
        gate: Gate,
    ) -> None:
        """`gate` is what the anchors hold shut; open where there are none."""
        self._ready = ready
        self._inputs = inputs
        self._plan = plan
        self._past = past
        self._tools = tools
        self._progress = progress
        self._lanes = lanes
        self._gate = gate
        self._left: dict[int, int] = {}
        self._opening: dict[int, asyncio.Task[Refusal | None]] = {}
        self._settled: set[str] = set()
        self._unpaid: Refusal | None = None
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
        await self._settle_past(stop)
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._watch(stop))
                async with asyncio.TaskGroup() as lanes:
                    for blocks in self._plan.by_model().values():
                        work, turn = self._work(blocks), asyncio.Lock()
                        for _ in range(self._lanes):
                            lanes.create_task(self._lane(work, turn, stop))
                if self._unpaid is not None:
                    stop.drain(self._unpaid.reason.id, Exit.STOPPED, self._unpaid.reason)
                if not stop.draining.is_set():
                    watch.cancel()
        except BaseExceptionGroup as group_fault:
            raise first_fault(group_fault) from group_fault

    def _work(self, blocks: tuple[Block, ...]) -> Iterator[tuple[Block, Trial]]:
        for block in blocks:
            if block.index not in self._past.blocks_ended:
                yield from ((block, trial) for trial in self._left_of(block))

    def _left_of(self, block: Block) -> list[Trial]:
        return [
            trial for trial in block.trials() if trial.id not in self._settled and self._past.final(trial.id) is None
        ]

    async def _settle_past(self, stop: Stop) -> None:
        """Say what a process that died left unsaid: finals that no attempt more can change, and ends of blocks.

        None of it needs anything that may be used up by now; but a block is admitted again only behind the gate, and
        where the run drains before that opens, its end is left to the next opening.
        """
        written = []
        for block in self._plan.blocks:
            if block.index in self._past.blocks_ended:
                continue
            for trial in self._left_of(block):
                if (final := self._settled_final(trial)) is not None:
                    self._settled.add(trial.id)
                    written.append(self._say_final(trial, final))
            if not self._left_of(block) and await self._is_anchored(stop):
                await self._tools.authority.admit_block(block.index, block.task, block.model, block.epoch, empty=True)
                self._tools.authority.end_block(block.index)
                written.append(self._tools.journal.post(Kind.BLOCK_ENDED, {"block": block.index}))
        await asyncio.gather(*written)

    def _settled_final(self, trial: Trial) -> Final | None:
        if trial.id in self._past.due:
            return self._past.due[trial.id]
        state = self._past.trial(trial.id)
        return _final_of(state, None) if self._is_spent(state) else None

    def _is_spent(self, state: TrialState) -> bool:
        return state.outcome is Outcome.INFRASTRUCTURE and state.replaced >= self._ready.design.stage.replacements

    async def _opened(self, block: Block, stop: Stop) -> bool:
        """Whether the block may run: its reserve is set aside, once for all lanes that work on it."""
        if block.index in self._left:
            return True
        opening = self._opening.get(block.index)
        if opening is None:
            coming = self._tools.authority.admit_block(block.index, block.task, block.model, block.epoch)
            opening = self._opening[block.index] = asyncio.create_task(coming)
        if not opening.done():
            # while the run drains no open block may end any more, and make room
            await first_of(opening, asyncio.create_task(stop.draining.wait()))
        if opening.cancelled() or not opening.done():
            return False
        refusal = opening.result()
        if refusal is not None:
            self._unpaid = self._unpaid or refusal
            return False
        if self._opening.pop(block.index, None) is not None:
            self._left[block.index] = len(self._left_of(block))
        return True

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

    async def _lane(self, work: Iterator[tuple[Block, Trial]], turn: asyncio.Lock, stop: Stop) -> None:
        while True:
            async with turn:
                taken = await self._take(work, stop)
            if taken is None:
                return
            block, trial = taken
            # begun in the step in which the turn is passed on: nobody comes in between
            final = await self._trial(trial, stop)
            if final is not None:
                await finish(self._final(block, trial, final))

    async def _take(self, work: Iterator[tuple[Block, Trial]], stop: Stop) -> tuple[Block, Trial] | None:
        """The next trial, once it may begin; None where none is left, or none may."""
        if not await self.may_start(stop):
            return None
        taken = next(work, None)
        if taken is None or not await self._opened(taken[0], stop):
            return None
        return taken if await self.may_start(stop) else None

    async def may_start(self, stop: Stop) -> bool:
        """Wait while paused, or while an anchor lacks what it must have; False once the run drains."""
        # looked at again after waking: a pause may have followed at once, and a lane that waits holds no trial
        while not stop.draining.is_set():
            if self.paused:
                await first_of(*(asyncio.create_task(event.wait()) for event in (self._going, stop.draining)))
            elif not self._gate.is_open:
                await self._is_anchored(stop)
            else:
                return True
        return False

    async def _is_anchored(self, stop: Stop) -> bool:
        """Wait for the gate; False where the run drains before it opens."""
        while not self._gate.is_open and not stop.draining.is_set():
            await first_of(*(asyncio.create_task(wait) for wait in (self._gate.passed(), stop.draining.wait())))
        return self._gate.is_open

    async def _trial(self, trial: Trial, stop: Stop) -> Final | None:
        """Try until there is a final; None where the run drains before."""
        state = self._past.trial(trial.id)
        while await self.may_start(stop):
            coming = state.next_attempt(trial.id)
            result = await self._attempt(trial, coming)
            state = state.after(coming, result.outcome)
            if result.exception is not None and result.exception.ends_run:
                status = Exit.STOPPED if result.exception.family is Family.BUDGET else Exit.INFRASTRUCTURE
                stop.drain(result.exception.id, status, result.exception)
            if result.outcome is Outcome.COMPLETED or result.exception in _IMAGES or self._is_spent(state):
                return _final_of(state, result)
        return None

    async def _attempt(self, trial: Trial, coming: NextAttempt) -> Result:
        job = make_job(self._ready, self._inputs, trial, coming)
        try:
            if isinstance(job, RowJob):
                result = await run_row(job, self._tools)
            else:
                result = await run_attempt(job, self._tools)
        except asyncio.CancelledError:
            self._progress.attempt_over(job.label, Outcome.INTERRUPTED)
            raise
        self._progress.attempt_over(job.label, result.outcome)
        return result

    async def _final(self, block: Block, trial: Trial, final: Final) -> None:
        """The trial's final, with the block's end if it is the last one: no abort comes between the two."""
        written = [self._say_final(trial, final)]
        self._left[block.index] -= 1
        if self._left[block.index] == 0:
            del self._left[block.index]
            self._tools.authority.end_block(block.index)
            written.append(self._tools.journal.post(Kind.BLOCK_ENDED, {"block": block.index}))
        await asyncio.gather(*written)

    def _say_final(self, trial: Trial, final: Final) -> asyncio.Future[int]:
        body = {"trial": trial.id, "attempt": attempt_id(trial.id, final.number), "grade": final.grade}
        said = self._tools.journal.post(Kind.TRIAL_FINAL, {**body, "reason": final.reason, "reward": final.reward})
        self.ungraded += final.grade == GradeState.UNGRADED
        self._progress.final(trial.label, final.grade, final.reason)
        return said


def _final_of(state: TrialState, result: Result | None) -> Final:
    """What the last attempt of a trial makes of it: its grade, or why there is none."""
    number, grade = state.attempts - 1, result.grade if result else None
    if grade is not None:
        return Final(number, grade.state.value, grade.reason.id if grade.reason else None, grade.reward)
    why = result.exception if result and result.exception else Reason.NOT_GRADED
    return Final(number, GradeState.UNGRADED.value, why.id, None)
