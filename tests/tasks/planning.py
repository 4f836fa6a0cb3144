"""The two halves of a task's plan, for tests."""

from __future__ import annotations

from proctor.core.refusal import Refusal
from proctor.tasks.offer import Offer
from proctor.tasks.plan import TaskPlan, plan_task
from proctor.tasks.task import Task


def obstacles(task: Task, offer: Offer) -> list[Refusal]:
    """What stops the task there."""
    return plan_task(task, offer)[1]


def environment_plan(task: Task, offer: Offer) -> TaskPlan:
    """How the task runs there, where nothing stops it."""
    plan, refusals = plan_task(task, offer)
    assert refusals == []
    return plan
