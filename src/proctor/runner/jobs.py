"""From the frozen design and the tasks to one attempt's `Job`: all that can be decided beforehand. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from proctor.admission.ready import Ready
from proctor.agents.base import McpServer, Solution
from proctor.core.ids import attempt_id, trial_folder
from proctor.core.network import Network
from proctor.core.refusal import Refusal
from proctor.evidence.fold import NextAttempt
from proctor.grading.grade import Assurance
from proctor.grading.solved import DuplicateTests
from proctor.rollout.job import Artifact, Command, Healthcheck, Job, RowJob, Tests, WorldPlan
from proctor.runner.images import facts_of
from proctor.runner.inputs import Inputs
from proctor.sandbox.base import ImageFacts, Limits, PutItem
from proctor.study.actors import SandboxDesign
from proctor.study.design import Design
from proctor.study.plan import Trial
from proctor.tasks.context import CopyIn
from proctor.tasks.environment_plan import EnvironmentPlan
from proctor.tasks.plan import ImageKnows, TaskPlan
from proctor.tasks.recipe import Command as BuildCommand
from proctor.tasks.recipe import Folder
from proctor.tasks.schema import EnvironmentTable, McpServerTable
from proctor.tasks.task import SOLVE_SCRIPT, TEST_SCRIPT, Task

Limit = TypeVar("Limit", int, float)


def make_job(ready: Ready, inputs: Inputs, trial: Trial, coming: NextAttempt) -> Job | RowJob:
    """The job of one attempt at a trial."""
    design, agent = ready.design, ready.design.agent_of(trial.arm)
    common: dict[str, Any] = {
        "attempt": attempt_id(trial.id, coming.number),
        "trial": trial.id,
        "number": coming.number,
        "block": trial.block,
        "task": trial.task,
        "model": trial.model,
        "arm": trial.arm,
        "epoch": trial.epoch,
        "folder": f"trials/{trial_folder(trial.task, trial.model, trial.arm, trial.epoch)}/{coming.number}",
        "agent": inputs.agents[trial.arm],
        "settings": agent.settings,
        "skills": inputs.skills[trial.arm],
        "rule": inputs.rule,
        "model_design": None if trial.model is None else inputs.models[trial.model, trial.arm],
        "supersedes": coming.supersedes,
        "replaces": coming.replaces,
    }
    if trial.task not in ready.tasks:
        return _row_job(ready, inputs, trial, common)
    task, plan = ready.tasks[trial.task], _whole(ready.plans[trial.task, trial.arm], inputs)
    arm, sandbox = design.arm(trial.arm), design.sandbox_of(trial.arm)
    return Job(
        **common,
        world=_world(plan.main, task.environment.table, sandbox, plan.agent_network, inputs),
        separate=_separate(task, plan, sandbox, inputs),
        instruction=arm.instruct(task.instruction),
        solution=_solution(task, plan, inputs),
        agent_user=plan.agent_user,
        agent_timeout_sec=_stricter(task.agent.timeout_sec, agent.timeout_sec),
        tests=Tests(
            folder=inputs.at(task.path / task.layout.tests) if plan.bring_tests else None,
            script=TEST_SCRIPT,
            target=task.layout.tests_target,
            cwd=task.layout.tests_cwd,
            env=plan.verifier_env,
            user=plan.verifier_user,
            timeout_sec=_stricter(task.verifier.timeout_sec, design.grading.verifier_timeout_sec)
            or task.verifier.timeout_sec,
            network=Network(plan.verifier_network),
        ),
        artifacts=_artifacts(task, plan),
        collect=tuple(
            Command(
                ("sh", "-c", each.command),
                plan.main.starts_in,
                None if each.user is None else str(each.user),
                each.timeout_sec or 600.0,
            )
            for each in task.verifier.collect
        ),
        duplicate_tests=DuplicateTests(design.grading.duplicate_tests),
        hidden=ready.hidden,
        assurance=_assurance(design, plan),
        idle_sec=agent.idle_timeout_sec,
        mcp_servers=tuple(_server(each) for each in task.environment.table.mcp_servers),
        keep=ready.keep,
    )


def _assurance(design: Design, plan: TaskPlan) -> Assurance:
    """A verifier whose task gives it a world of its own is isolated, whatever the study says of others."""
    if plan.verifier is not None or design.grading.assurance is None:
        return Assurance.ISOLATED
    return Assurance(design.grading.assurance)


def _whole(plan: TaskPlan, inputs: Inputs) -> TaskPlan:
    """The plan with what only its images know, as far as they are there."""
    if not plan.images:
        return plan
    main = facts_of(inputs.images, plan.main.image_plan)
    own = None if plan.verifier is None else facts_of(inputs.images, plan.verifier.image_plan)
    return plan.of_images(_knows(main), _knows(own))


def _knows(image: ImageFacts | Refusal | None) -> ImageKnows:
    return ImageKnows(image.workdir, image.user) if isinstance(image, ImageFacts) else ImageKnows("/", None)


def _server(table: McpServerTable) -> McpServer:
    return McpServer(table.name, table.transport, table.url, table.command, tuple(table.args))


def _row_job(ready: Ready, inputs: Inputs, trial: Trial, common: Mapping[str, Any]) -> RowJob:
    design = ready.design
    assert ready.rows is not None and design.questions is not None
    question = ready.rows.row(trial.task)
    *before, last = question.messages
    told = replace(last, text=design.arm(trial.arm).instruct(last.text))
    return RowJob(
        **common,
        agent_timeout_sec=design.agent_of(trial.arm).timeout_sec,
        question=question,
        messages=(*before, told),
        tools=inputs.boxes[trial.model, trial.arm].only(question.tools),
        functions=ready.functions,
        scorer_timeout_sec=design.questions.scorer_timeout_sec,
    )


def _world(
    plan: EnvironmentPlan, table: EnvironmentTable, sandbox: SandboxDesign, network: str, inputs: Inputs
) -> WorldPlan:
    check = table.healthcheck
    return WorldPlan(
        root=plan.root,
        substituted=plan.base_substituted,
        workdir=plan.starts_in,
        env=plan.env,
        user=plan.user,
        steps=tuple(_step(step, plan.starts_in, table.build_timeout_sec, inputs) for step in plan.build),
        limits=Limits(
            cpus=_stricter(plan.cpus, sandbox.cpus),
            memory_bytes=_stricter(plan.memory_bytes, sandbox.memory_bytes),
            storage_bytes=_stricter(plan.storage_bytes, sandbox.storage_bytes),
            pids=sandbox.pids,
        ),
        network=Network(network),
        image=facts_of(inputs.images, plan.image_plan),
        healthcheck=None
        if check is None
        else Healthcheck(check.command, check.interval_sec, check.timeout_sec, check.retries, check.start_period_sec),
    )


def _separate(task: Task, plan: TaskPlan, sandbox: SandboxDesign, inputs: Inputs) -> WorldPlan | None:
    if plan.verifier is None:
        return None
    environment = task.verifier_environment or task.environment
    return _world(plan.verifier, environment.table, sandbox, plan.verifier_network, inputs)


def _artifacts(task: Task, plan: TaskPlan) -> tuple[Artifact, ...]:
    """Paths that are not absolute start at the working directory of the world that they are in."""
    there = plan.verifier or plan.main
    found = []
    for each in task.artifacts:
        source = posixpath.join(plan.main.starts_in, each.source)
        destination = posixpath.join(there.starts_in, each.destination) if each.destination else source
        found.append(Artifact(source, destination, tuple(each.exclude)))
    return tuple(found)


def _step(step: Folder | BuildCommand | CopyIn, workdir: str, timeout_sec: float, inputs: Inputs) -> PutItem | Command:
    if isinstance(step, Folder):
        return PutItem(step.path, owner=step.user)
    if isinstance(step, CopyIn):
        source = inputs.at(step.source) if step.whole else None
        return PutItem(_from(workdir, step.target), source=source, mode=step.mode, owner=step.owner)
    return Command(step.argv, _from(workdir, step.cwd), step.user, step.timeout_sec or timeout_sec)


def _from(workdir: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(workdir, path))


def _solution(task: Task, plan: TaskPlan, inputs: Inputs) -> Solution | None:
    if not task.has_solution:
        return None
    folder = inputs.at(task.path / task.layout.solution)
    return Solution(folder, SOLVE_SCRIPT, plan.solution_env, task.layout.solution_target)


def _stricter(*limits: Limit | None) -> Limit | None:
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else None
