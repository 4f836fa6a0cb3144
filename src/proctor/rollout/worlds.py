"""An attempt's worlds: started, filled, emptied of what must be kept, and gone on every path."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import shutil
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import asdict
from pathlib import Path

from pathspec import PathSpec

from proctor.agents.base import Installed, SkillPack, Turn
from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.redact import Redactor
from proctor.core.refusal import Refusal
from proctor.core.waiting import finish, in_thread
from proctor.evidence.kinds import Kind
from proctor.rollout.job import Artifact, Command, Healthcheck, Job, WorldPlan
from proctor.rollout.record import Record
from proctor.rollout.scratch import scratch_of
from proctor.rollout.tools import Tools
from proctor.sandbox.base import Ended, Exec, PutItem, Sandbox, SandboxSpec, Snapshot

LOGS = ("/logs/verifier", "/logs/agent", "/logs/artifacts")
OPEN = 0o777
# what an agent may leave for people; a flood is cut, and said
LOG_BYTES = 64 * 2**20
LOG_FILES = 2_000


def check_images(job: Job) -> None:
    """Raises the Refusal for which an image of its worlds could not be brought here, before its agent costs money."""
    for plan in (job.world, job.separate):
        if plan is not None and isinstance(plan.image, Refusal):
            raise plan.image


async def start(job: Job, plan: WorldPlan, role: str, tools: Tools) -> Sandbox:
    """Start a world of its own from the plan's root."""
    network = plan.network if role == "agent" else job.tests.network
    return await tools.kind.start(_spec(job, plan, role, network, tools), tools.admitted)


async def fork(job: Job, snapshot: Snapshot, tools: Tools) -> Sandbox:
    """Start the verifier's world on top of the agent's captured one."""
    return await tools.kind.fork(snapshot, _spec(job, job.world, "verifier", job.tests.network, tools), tools.admitted)


@contextlib.asynccontextmanager
async def running(coming: Awaitable[Sandbox]) -> AsyncIterator[Sandbox]:
    """The world while the block runs; stopped afterwards on every path."""
    world = await coming
    try:
        yield world
    finally:
        await finish(world.stop())


def _spec(job: Job, plan: WorldPlan, role: str, network: Network, tools: Tools) -> SandboxSpec:
    assert not isinstance(plan.image, Refusal)  # said by `check_images`
    agent = job.agent
    return SandboxSpec(
        name=f"{job.trial[:8]}-{job.number}-{role[0]}",
        scratch=scratch_of(tools.run, job.trial, job.number) / role[0],
        limits=plan.limits,
        network=network,
        root=plan.root,
        hidden=job.hidden,
        env=plan.env,
        image=None if plan.image is None else plan.image.id,
        bundles=(agent.installed.as_bundle(),) if role == "agent" and isinstance(agent, Installed) else (),
    )


def note(record: Record, role: str, world: Sandbox, plan: WorldPlan, *, from_snapshot: bool) -> None:
    """On the record: what is really in force."""
    record.post(
        Kind.SANDBOX_STARTED,
        role=role,
        from_snapshot=from_snapshot,
        facts=dict(world.facts),
        limits=[asdict(limit) for limit in world.limits_enforced],
        base_substituted=dict(plan.substituted) if plan.substituted else None,
    )


async def furnish(world: Sandbox, plan: WorldPlan, folder: Path) -> None:
    """Make the log folders and the working directory, do the plan's steps, and wait until the world is well.

    Raises:
        Refusal: SANDBOX_START_FAILED where a step or the health check fails.
    """
    batch = [PutItem(log, mode=OPEN) for log in LOGS]
    if plan.workdir != "/":
        batch.append(PutItem(plan.workdir))
    for step in plan.steps:
        if isinstance(step, PutItem):
            batch.append(step)
            continue
        await world.put(batch)
        batch = []
        await _step(world, plan, step, folder)
    if batch:
        await world.put(batch)
    if plan.healthcheck is not None:
        await _well(world, plan, plan.healthcheck, folder)


async def _step(world: Sandbox, plan: WorldPlan, command: Command, folder: Path) -> None:
    ended = await _command(world, plan, command, folder / "setup.txt")
    if ended.exit_code != 0:
        raise Refusal(
            Reason.SANDBOX_START_FAILED,
            f"a step of the task's environment failed: {shlex.join(command.argv)[:200]}",
            observed=ended.as_record(),
        )


async def _well(world: Sandbox, plan: WorldPlan, check: Healthcheck, folder: Path) -> None:
    await asyncio.sleep(check.start_period_sec)
    for again in range(check.retries + 1):
        if again:
            await asyncio.sleep(check.interval_sec)
        probe = Command(("sh", "-c", check.command), plan.workdir, None, check.timeout_sec)
        ended = await _command(world, plan, probe, folder / "healthcheck.txt")
        if ended.exit_code == 0:
            return
    raise Refusal(
        Reason.SANDBOX_START_FAILED,
        "the task's health check did not succeed",
        observed=ended.as_record(),
        required=check.command,
    )


async def _command(
    world: Sandbox, plan: WorldPlan, command: Command, output: Path, *, leave_running: bool = False
) -> Ended:
    return await world.exec(
        Exec(
            command.argv,
            stdout=output,
            cwd=command.cwd,
            env=plan.env,
            user=command.user,
            deadline_sec=command.timeout_sec,
            leave_running=leave_running,
        )
    )


async def put_skills(world: Sandbox, skills: Sequence[SkillPack]) -> None:
    """Put each pack at `/skills/<name>`."""
    if skills:
        await world.put([PutItem(f"/skills/{pack.name}", source=pack.path, fresh=True) for pack in skills])


def turn(job: Job, world: Sandbox, output: Path, deadline_sec: float, redactor: Redactor) -> Turn:
    """What the agent is handed. Only an agent that is the task's own solution gets the solution."""
    return Turn(
        sandbox=world,
        instruction=job.instruction,
        workdir=job.world.workdir,
        env=job.world.env,
        user=job.agent_user,
        output=output,
        deadline_sec=deadline_sec,
        skills=job.skills,
        solution=job.solution if job.agent.needs_solution else None,
        redactor=redactor,
        idle_sec=job.idle_sec,
        mcp_servers=job.mcp_servers,
        leave_running=job.stays,
    )


async def fetch_logs(world: Sandbox, job: Job, folder: Path) -> None:
    """Bring out the agent's logs into `agent/`, and the declared artifacts at their paths below `artifacts/`."""
    for number, command in enumerate(job.collect):
        output = folder / f"collect-{number}.txt"
        await _command(world, job.world, command, output, leave_running=job.stays)
    await fetch_flat(world, "/logs/agent", folder / "agent")
    artifacts = folder / "artifacts"
    await fetch(world, ["/logs/artifacts", *(artifact.source for artifact in job.artifacts)], artifacts)
    await in_thread(_leave_out, artifacts, job.artifacts)


def _leave_out(artifacts: Path, declared: Sequence[Artifact]) -> None:
    for artifact in declared:
        root = artifacts / artifact.source.lstrip("/")
        spec = PathSpec.from_lines("gitignore", artifact.exclude)
        for path in [path for path in root.rglob("*") if path.is_file()]:
            if spec.match_file(path.relative_to(root).as_posix()):
                path.unlink()


async def fetch(world: Sandbox, paths: Sequence[str], into: Path) -> None:
    """Bring files out; what was not taken is listed in `skipped.txt` beside them."""
    fetched = await world.get(paths, into, cap_bytes=LOG_BYTES, cap_files=LOG_FILES)
    skipped = [f"{each.path!r}: {each.skipped}\n" for each in fetched if each.skipped]
    if skipped:
        into.mkdir(parents=True, exist_ok=True)
        text = "".join(skipped).encode("utf-8", "backslashreplace")
        await in_thread((into / "skipped.txt").write_bytes, text)


async def fetch_flat(world: Sandbox, path: str, into: Path) -> None:
    """Bring the content of one folder out, right into `into`; what stands there already keeps its name."""
    coming = into / ".coming"
    await fetch(world, [path], coming)
    await in_thread(_move_up, coming, path, into)


def _move_up(coming: Path, path: str, into: Path) -> None:
    if not coming.is_dir():
        return
    inside = coming / path.lstrip("/")
    found = [*(inside.iterdir() if inside.is_dir() else ()), *coming.glob("skipped.txt")]
    for each in found:
        target = into / each.name
        while target.exists() or target.is_symlink():
            target = target.with_name(target.name + ".inside")
        each.rename(target)
    shutil.rmtree(coming)


async def put_artifacts(world: Sandbox, job: Job, folder: Path) -> None:
    """Into a verifier world of its own: the declared artifacts, at their paths, and nothing else."""
    items = [
        PutItem(artifact.destination, source=folder / "artifacts" / artifact.source.lstrip("/"))
        for artifact in job.artifacts
        if (folder / "artifacts" / artifact.source.lstrip("/")).exists()
    ]
    await world.put(items)
