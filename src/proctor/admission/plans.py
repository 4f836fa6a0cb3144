"""Every selected task as it would run in the world of every arm, and what stands in the way. Roots are read once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from proctor.agents.base import Abilities
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Availability
from proctor.study import Design, SandboxDesign
from proctor.tasks.offer import Offer
from proctor.tasks.plan import TaskPlan, plan_task
from proctor.tasks.roots import RootFacts, read_root
from proctor.tasks.task import Task


def plan_tasks(
    design: Design,
    tasks: Mapping[str, Task],
    base: Path,
    available: Availability,
    withheld: frozenset[str],
    able: Abilities | None,
) -> tuple[dict[tuple[str, str], TaskPlan], list[Refusal]]:
    """The plans of the tasks that can run, by task and arm, and the obstacles of the others.

    Args:
        design: names the arms and their worlds.
        tasks: by name.
        base: where the paths of the study's roots start.
        available: the sandbox kind that is there.
        withheld: variables that no task is handed.
        able: what the agent of every arm can do; None where there is none.
    """
    obstacles: list[Refusal] = []
    plans: dict[tuple[str, str], TaskPlan] = {}
    roots: dict[Path | None, RootFacts] = {}
    made: dict[str | None, dict[str, TaskPlan]] = {}
    for arm in design.arms:
        # arms whose world is the study's own share its plans, and are refused once
        key = None if arm.sandbox is None else arm.name
        if key not in made:
            made[key] = {}
            try:
                offer = _offer(design.sandbox_of(arm.name), able, base, available, withheld, roots)
            except Refusal as refusal:
                obstacles.append(refusal)
                continue
            for name, task in tasks.items():
                plan, in_the_way = plan_task(task, offer)
                obstacles.extend(in_the_way)
                if not in_the_way:
                    made[key][name] = plan
        plans |= {(task, arm.name): plan for task, plan in made[key].items()}
    return plans, obstacles


def _offer(
    sandbox: SandboxDesign,
    able: Abilities | None,
    base: Path,
    available: Availability,
    withheld: frozenset[str],
    roots: dict[Path | None, RootFacts],
) -> Offer:
    def root(written: str | None) -> RootFacts:
        path = None if written is None else (base / written).absolute()
        if path not in roots:
            roots[path] = read_root(path)
        return roots[path]

    images = available.capabilities.builds_images
    return Offer(
        sandbox=available.kind,
        builds_images=images,
        many_users=available.capabilities.many_users,
        networks=frozenset(network.value for network in available.capabilities.networks),
        network=sandbox.network,
        default_root=RootFacts(None) if images else root(sandbox.rootfs),
        substitutes={} if images else {image: root(written) for image, written in sandbox.substitute.items()},
        image_substitutes=sandbox.substitute if images else {},
        host_env=dict(os.environ),
        withheld_env=withheld,
        needs_solution=able is not None and able.needs_solution,
        takes_prompt=able is None or able.takes_prompt,
    )
