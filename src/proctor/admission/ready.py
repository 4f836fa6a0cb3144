"""What admission made ready for the runner: the frozen design with everything that it names, read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.agents.base import Agent
from proctor.agents.handed import HandedOver
from proctor.sandbox.base import Image
from proctor.study.design import Design
from proctor.tasks.environment_plan import EnvironmentPlan
from proctor.tasks.plan import TaskPlan
from proctor.tasks.questions import QuestionSet
from proctor.tasks.task import Task


@dataclass(frozen=True)
class Ready:
    """A design, its tasks by name, their plans by (task, arm), its agents by arm, its question rows.

    `functions` has the SHA-256 of each scorer function's file, by name; `base` is the study's folder; `hidden` are
    host paths that no sandbox may show; `images` are those that tasks name, as found; `keep` leaves worlds standing;
    `keys` holds what the variables of the models' keys hold, and is recorded nowhere. `handed` is the agent's class
    where it was handed over in Python.
    """

    design: Design
    base: Path
    tasks: Mapping[str, Task]
    plans: Mapping[tuple[str, str], TaskPlan]
    agents: Mapping[str, Agent]
    hidden: tuple[Path, ...]
    images: Mapping[str, Image] = field(default_factory=dict)
    rows: QuestionSet | None = None
    functions: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    keep: bool = False
    handed: HandedOver | None = None

    def tasks_record(self) -> dict[str, Any]:
        """For the manifest: what stands in for images, and what a reader should know of the tasks."""
        first = {task: plan for (task, _), plan in reversed(list(self.plans.items()))}
        return {
            name: {
                "sha256": self.tasks[name].digest,
                "base_substituted": _substituted(plan.main),
                "verifier_base_substituted": plan.verifier and _substituted(plan.verifier),
                "unknown_keys": [key.name for key in self.tasks[name].unknown_keys],
                "notes": [*self.tasks[name].notes, *self.tasks[name].migrated, *plan.notes],
                "host_variables": list(plan.host_variables),
                "asks": _asks(self.tasks[name]),
                "networks": {"agent": plan.agent_network, "verifier": plan.verifier_network},
            }
            for name, plan in sorted(first.items())
        }


def _substituted(plan: EnvironmentPlan) -> dict[str, Any] | None:
    return None if plan.base_substituted is None else dict(plan.base_substituted)


def _asks(task: Task) -> dict[str, Any]:
    """What the task itself says where the study may be stricter; what holds is in each attempt's entries."""
    table = task.environment.table
    return {
        "agent_timeout_sec": task.agent.timeout_sec,
        "verifier_timeout_sec": task.verifier.timeout_sec,
        "cpus": table.cpus,
        "memory_bytes": table.memory_bytes,
        "storage_bytes": table.storage_bytes,
        "agent_network": task.agent.mode or table.mode,
        "verifier_network": task.verifier.mode or table.mode,
    }
