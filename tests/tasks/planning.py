"""The two halves of a task's plan, for tests."""

from __future__ import annotations

from proctor.core.refusal import Refusal
from proctor.tasks.plan import TaskPlan, plan_task
from proctor.tasks.task import Task
from proctor.tasks.world import World


def obstacles(task: Task, world: World) -> list[Refusal]:
    """What stops the task there."""
    return plan_task(task, world)[1]


def environment_plan(task: Task, world: World) -> TaskPlan:
    """How the task runs there, where nothing stops it."""
    plan, refusals = plan_task(task, world)
    assert refusals == []
    return plan
