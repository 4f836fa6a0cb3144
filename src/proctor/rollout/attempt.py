"""One attempt, from start to close: the page to read first.

    start → env-ready → agent → pre-verify → verify → post-verify → close

The verifier runs in a world that the agent never acted in; or, where the study says `shared` or `live`, in the
agent's own.

Every step is on the record before the next one acts. Whatever happens on the way (a deadline, a broken sandbox, an
abort), the attempt gets exactly one end, its worlds are gone, and what it left is digested.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

from proctor.core.boundaries import Boundary
from proctor.core.outcomes import Outcome
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import in_thread
from proctor.evidence.kinds import Kind
from proctor.grading.grade import Assurance, Grade
from proctor.rollout import scratch, verdict, worlds
from proctor.rollout.attesting import attested
from proctor.rollout.calls import model_of
from proctor.rollout.derived import attempt_record
from proctor.rollout.ends import Steps, ended_by, exception_of, to_its_end
from proctor.rollout.job import Job, Result
from proctor.rollout.tools import Tools
from proctor.sandbox.base import Sandbox, Snapshot

# an agent without a deadline of its own still ends: nothing waits for ever
NO_DEADLINE_SEC = 7 * 24 * 3600.0


async def run_attempt(job: Job, tools: Tools) -> Result:
    """Run one attempt to its end, whatever that is.

    Raises:
        Refusal: the journal takes no more: then nothing may go on.
        asyncio.CancelledError: after the interrupted attempt was put on the record.
    """
    return await to_its_end(Attempt(job, tools))


class Attempt(Steps):
    """The steps of one attempt, and what they found."""

    def __init__(self, job: Job, tools: Tools) -> None:
        super().__init__(job, tools)
        self.job = job
        self.exception: Reason | None = None

    async def run(self) -> Result:
        """All steps but the last, which comes in any case."""
        await self.admit()
        async with self.agent_world() as world:
            await self.env_ready(world)
            await self.agent(world)
            before = await self.pre_verify(world)
            if self.job.assurance is not Assurance.ISOLATED:
                return await self.post_verify(await self.verify(world, before))
        async with self.verifier_world(before) as world:
            grade = await self.verify(world, before)
        return await self.post_verify(grade)

    async def admit(self) -> None:
        """On the record, durably, before anything acts; no further where a world can never be made."""
        await self.record.add(Kind.ATTEMPT_ADMITTED, **self.job.as_entry())
        await self.record.open()
        self._phase("start")
        worlds.check_images(self.job)

    @contextlib.asynccontextmanager
    async def agent_world(self) -> AsyncIterator[Sandbox]:
        """The world that the agent acts in; gone afterwards, but for what was captured."""
        async with worlds.running(worlds.start(self.job, self.job.world, "agent", self.tools)) as world:
            worlds.note(self.record, "agent", world, self.job.world, from_snapshot=False)
            yield world

    async def env_ready(self, world: Sandbox) -> None:
        """Fill the world with what the task's environment says, and see that it is well."""
        await worlds.furnish(world, self.job.world, self.record.folder)
        await world.mark(self.job.apart)
        self._reached(Boundary.ENV_READY)

    async def agent(self, world: Sandbox) -> None:
        """Let the agent work until it is done or its deadline comes."""
        job, output = self.job, self.record.folder / "agent"
        self.tools.on_phase(job.label, "agent")
        output.mkdir()
        turn = worlds.turn(job, world, output, job.agent_timeout_sec or NO_DEADLINE_SEC, self.tools.gateway.redactor)
        said = job.agent_entry(await attested(job.agent, turn))
        self.record.post(Kind.AGENT_STARTED, {"instruction": job.instruction.encode()}, **said)
        await worlds.put_skills(world, job.skills)
        async with model_of(job, self.tools, self.record, world) as reach:
            ended = await job.agent.act(replace(turn, model=reach.model, door=reach.door))
            reach.answer_for(ended)
        self.exception = exception_of(ended)
        self.record.post(
            Kind.AGENT_ENDED,
            exception=self.exception.id if self.exception else None,
            ended=ended.as_record(),
            duration_ns=ended.duration_ns,
        )
        if ended.start_error is not None:
            raise Refusal(Reason.AGENT_START_FAILED, f"the agent could not be started: {ended.start_error}")
        self.mark("agent")

    async def pre_verify(self, world: Sandbox) -> Snapshot | None:
        """End what the agent left running, bring out what it wrote, and freeze the world as it stands."""
        if not self.job.stays:
            await world.kill_all()
        await worlds.fetch_logs(world, self.job, self.record.folder)
        await self.record.file_all("source")
        self._reached(Boundary.PRE_VERIFY)
        return await world.capture() if self.job.forks else None

    @contextlib.asynccontextmanager
    async def verifier_world(self, before: Snapshot | None) -> AsyncIterator[Sandbox]:
        """A world that the agent never acted in: a fork of the captured one, or the verifier's own."""
        job, tools = self.job, self.tools
        plan = job.separate or job.world
        try:
            if before is not None:
                coming = worlds.fork(job, before, tools)
            else:
                coming = worlds.start(job, plan, "verifier", tools)
            async with worlds.running(coming) as world:
                worlds.note(self.record, "verifier", world, plan, from_snapshot=before is not None)
                yield world
        finally:
            if before is not None:
                await in_thread(scratch.let_go, job, before, tools)

    async def verify(self, world: Sandbox, before: Snapshot | None) -> Grade:
        """Bring the tests in, run them where the agent cannot act, and read the verdict from a cleared path."""
        job, output = self.job, self.record.folder / "verifier"
        self.tools.on_phase(job.label, "verify")
        output.mkdir()
        if job.separate is not None:
            await worlds.furnish(world, job.separate, self.record.folder)
            await worlds.put_artifacts(world, job, self.record.folder)
        ended = await verdict.run_tests(world, job, output)
        self.record.post(
            Kind.VERIFIER_ENDED,
            assurance=job.assurance.value,
            ended=ended.as_record(),
            duration_ns=ended.duration_ns,
        )
        grade, tests = await in_thread(verdict.read, output, ended, job)
        await self.record.write("tests.json", tests)
        return replace(grade, disclosures=(*grade.disclosures, *verdict.inherited(job, before)))

    async def post_verify(self, grade: Grade) -> Result:
        """The grade, on the record: from here on the attempt counts, whatever comes."""
        await self.record.file_all("source")
        await self.record.settle()
        self._reached(Boundary.POST_VERIFY)
        self.record.post(Kind.ATTEMPT_GRADED, **verdict.as_entry(grade))
        return Result(Outcome.COMPLETED, grade, self.exception)

    async def close(self, result: Result) -> Result:
        """Digest what is left, write what people open, and end the attempt; returns what it came to."""
        record = self.record
        try:
            try:
                await record.settle()
            except Refusal as refusal:
                # what could not be written is unsaid; a journal that takes no more refuses the end below as well
                if result.outcome is Outcome.COMPLETED and not record.said.get(Kind.ATTEMPT_GRADED):
                    result = ended_by(refusal)
            if Kind.ATTEMPT_ADMITTED in record.said:
                self.mark("close")
                result = await self._keep_files(replace(result, timing=dict(self.timing)))
                await record.add(Kind.ATTEMPT_ENDED, **result.as_entry())
        finally:
            await in_thread(scratch.clear_scratch, self.job, self.tools)
        return result

    async def _keep_files(self, result: Result) -> Result:
        record = self.record
        try:
            await record.file_all("source")
            await record.write("attempt.json", attempt_record(record.said, result.as_entry()))
            await record.file_all("source")
            await record.settle()
        except (OSError, Refusal) as fault:
            # a disk that takes no more files: the attempt ends on the record all the same, with what stands there
            with contextlib.suppress(OSError, Refusal):
                record.unwrite("attempt.json")
                await record.file_all("partial")
            if result.outcome is Outcome.INTERRUPTED:
                return result
            ended = replace(ended_by(fault), grade=result.grade, timing=result.timing)
            return ended if result.outcome is Outcome.INFRASTRUCTURE else replace(ended, outcome=result.outcome)
        return result

    def _reached(self, boundary: Boundary) -> None:
        self.record.post(Kind.ATTEMPT_BOUNDARY, boundary=boundary.value)
        self._phase(boundary.value)

    def _phase(self, name: str) -> None:
        self.mark(name)
        self.tools.on_phase(self.job.label, name)
