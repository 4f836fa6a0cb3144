"""One environment of a task on a sandbox: its root or image, steps, variables and working directory, decided purely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.images import ImagePlan
from proctor.tasks.made_from import BuildStep, from_image, from_root
from proctor.tasks.offer import Offer
from proctor.tasks.recipe import Command
from proctor.tasks.scripts import RUN_TEXT
from proctor.tasks.task import Environment, Setup
from proctor.tasks.tree import Tree
from proctor.tasks.users import several_users
from proctor.tasks.variables import Resolved, resolve


@dataclass(frozen=True)
class EnvironmentPlan:
    """One world to make. `root` None is the host's /usr; limits are in cpus and bytes, None where the task has none.

    `image_plan` is what the world is made from where the sandbox has images; `workdir` and `user` are None there as
    long as only the image knows them (`of_image` has them). `build` goes in order, before anything else runs: `Folder`
    and `CopyIn` are brought in, `Command` runs inside; their paths that are not absolute start at the working
    directory. `env` holds values; `host_variables` names those that came from the host (to be redacted in evidence).
    """

    image: str | None
    root: Path | None
    base_substituted: Mapping[str, Any] | None
    image_plan: ImagePlan | None
    workdir: str | None
    env: Mapping[str, str]
    user: str | None
    build: tuple[BuildStep, ...]
    cpus: float | None
    memory_bytes: int | None
    storage_bytes: int | None
    host_variables: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def starts_in(self) -> str:
        """The working directory of a plan to which nothing is missing."""
        assert self.workdir is not None
        return self.workdir

    def of_image(self, workdir: str, user: str | None) -> EnvironmentPlan:
        """The plan with what only its image knows: where commands start there, and as whom."""
        return replace(self, workdir=self.workdir or workdir or "/", user=self.user or user)


def plan_environment(
    environment: Environment, tree: Tree, offer: Offer, runs_as: Mapping[str, str | int | None]
) -> tuple[EnvironmentPlan, list[Refusal]]:
    """The plan, and what stops it (the plan is of no use where anything does).

    `runs_as` says who is to run here as which user, such as `{"agent": "dev"}`; None leaves it to the environment.
    """
    table, compose = environment.table, environment.compose
    refusals = [*_only_compose(environment, tree), *_machine(environment, tree)]
    resolved = resolve({**(compose.env if compose else {}), **table.env}, offer.host_env, offer.withheld_env, seen=True)
    refusals += missing_variables(resolved, f"{environment.folder} env", tree, environment.file)
    if offer.builds_images:
        made, more = from_image(environment, tree, offer)
    else:
        made, more = from_root(environment, tree, offer, runs_as)
    refusals += more
    if not offer.many_users:
        as_whom = {**runs_as, "environment": made.user}
        refusals += several_users(environment.followed, as_whom, tree, environment.file)
    kept_out = f"host variables kept out, their defaults used: {', '.join(resolved.withheld)}"
    plan = EnvironmentPlan(
        image=made.image,
        root=made.root,
        base_substituted=made.substituted,
        image_plan=made.image_plan,
        workdir=made.workdir,
        env={**made.env, **resolved.env},
        user=made.user,
        build=(*made.build, *(_setup(each) for each in environment.setup)),
        cpus=table.cpus,
        memory_bytes=table.memory_bytes,
        storage_bytes=table.storage_bytes,
        host_variables=resolved.from_host,
        notes=(kept_out,) if resolved.withheld else (),
    )
    return plan, refusals


def missing_variables(resolved: Resolved, where: str, tree: Tree, file: str) -> list[Refusal]:
    """A refusal for templates without value or default, if there are any."""
    if not resolved.missing:
        return []
    kept_out = set(resolved.missing) & set(resolved.withheld)
    why = " (kept out: keys of the study's own models never go in)" if kept_out else ""
    return [
        Refusal(
            Reason.TASK_ENV_MISSING,
            f"{where} wants {', '.join(resolved.missing)} of the host{why}.",
            path=str(tree.root / file),
            observed=list(resolved.missing),
        )
    ]


def _only_compose(environment: Environment, tree: Tree) -> list[Refusal]:
    compose = environment.compose
    if compose is None or not compose.beyond:
        return []
    return [
        Refusal(
            Reason.TASK_NEEDS_COMPOSE,
            f"{compose.path} asks for more than a main service: {', '.join(compose.beyond)}.",
            path=str(tree.root / compose.path),
            observed=list(compose.beyond),
        )
    ]


def _machine(environment: Environment, tree: Tree) -> list[Refusal]:
    table, where = environment.table, str(tree.root / environment.file)
    found = []
    if table.gpus or table.tpu:
        observed = {"gpus": table.gpus, "gpu_types": table.gpu_types, "tpu": table.tpu}
        found.append(
            Refusal(Reason.TASK_NEEDS_GPU, "The task asks for accelerators.", path=where, observed=observed, required=0)
        )
    if table.os.lower() != "linux":
        message = f"The task asks for {table.os}."
        found.append(Refusal(Reason.TASK_OS_UNSUPPORTED, message, path=where, observed=table.os, required="linux"))
    return found


def _setup(setup: Setup) -> Command:
    argv = ("sh", "-c", RUN_TEXT, "sh", setup.command)
    return Command(0, argv, setup.cwd or ".", setup.user, timeout_sec=setup.timeout_sec)
