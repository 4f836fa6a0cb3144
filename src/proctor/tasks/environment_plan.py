"""One environment of a task on a sandbox: its root or image, steps, variables and working directory, decided purely.

The working directory is the first of: `workdir` of the task's file, the compose file's, the Dockerfile's last WORKDIR;
else `/` for an image (Docker's own default, and that of the images that may be stood in for), and `/app` where the
task names no image at all. A sandbox with images leaves to the image what neither of the first two says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.context import Context, CopyIn
from proctor.tasks.images import ImagePlan, plan_image
from proctor.tasks.offer import Offer, StandIn, no_stand_in, stand_in
from proctor.tasks.recipe import Command, Copy, Folder, Install, Recipe, Unsupported
from proctor.tasks.roots import PackageCheck, check_packages
from proctor.tasks.task import Environment, Setup
from proctor.tasks.tree import Tree
from proctor.tasks.users import other_than_root, root_id, several_users, unknown_users
from proctor.tasks.variables import Resolved, resolve

LOOSE_WORKDIR = "/app"

_BY_BASH = 'if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; else exec sh -c "$1"; fi'

BuildStep = Folder | Command | CopyIn


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
    ground, unfounded = (_images if offer.builds_images else _roots)(environment, tree, offer, runs_as)
    refusals += unfounded
    if not offer.many_users:
        as_whom = {**runs_as, "environment": ground.user}
        refusals += several_users(environment.followed, as_whom, tree, environment.file)
    kept_out = f"host variables kept out, their defaults used: {', '.join(resolved.withheld)}"
    plan = EnvironmentPlan(
        image=ground.image,
        root=ground.root,
        base_substituted=ground.substituted,
        image_plan=ground.image_plan,
        workdir=ground.workdir,
        env={**ground.env, **resolved.env},
        user=ground.user,
        build=(*ground.build, *(_setup(each) for each in environment.setup)),
        cpus=table.cpus,
        memory_bytes=table.memory_bytes,
        storage_bytes=table.storage_bytes,
        host_variables=resolved.from_host,
        notes=(kept_out,) if resolved.withheld else (),
    )
    return plan, refusals


@dataclass(frozen=True)
class _Ground:
    """What a world is made from, and what is done to it: with images, or with a root in an image's place."""

    image: str | None
    workdir: str | None
    user: str | None
    build: tuple[BuildStep, ...]
    substituted: Mapping[str, Any] | None
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    root: Path | None = None
    image_plan: ImagePlan | None = None


def _images(
    environment: Environment, tree: Tree, offer: Offer, runs_as: Mapping[str, str | int | None]
) -> tuple[_Ground, list[Refusal]]:
    compose = environment.compose
    plan, refusals = plan_image(environment, tree, offer)
    workdir = environment.table.workdir or (compose.workdir if compose else None)
    user = compose.user if compose else None
    ground = _Ground(
        image=None if plan is None else plan.named,
        workdir=workdir,
        user=user if other_than_root(user) else root_id(user),
        build=tuple(_loose_files(environment, tree, workdir or ".")),
        substituted=None if plan is None else _other_images(plan),
        image_plan=plan,
    )
    return ground, refusals


def _roots(
    environment: Environment, tree: Tree, offer: Offer, runs_as: Mapping[str, str | int | None]
) -> tuple[_Ground, list[Refusal]]:
    compose, recipe = environment.compose, environment.followed
    image = environment.image or (recipe.base_image if recipe else None) or None
    workdir = (
        environment.table.workdir
        or (compose.workdir if compose else None)
        or (recipe.workdir if recipe else None)
        or ("/" if environment.describes else LOOSE_WORKDIR)
    )
    user = (compose.user if compose else None) or (recipe.user if recipe else None)
    stand, lines = _stand_in(environment, recipe, image, offer)
    installs = [step for step in recipe.steps if isinstance(step, Install)] if recipe else []
    check = check_packages(stand.root, installs) if stand.explicit else PackageCheck((), ())
    refusals = [*_unbuildable(environment, recipe, lines, tree), *_lacking(environment, check, image, tree)]
    if offer.many_users:
        refusals += unknown_users({**runs_as, "environment": user}, stand.root, tree, environment.file)
    build: list[BuildStep] = []
    try:
        build = _build(environment, recipe, tree, workdir)
    except Refusal as refusal:
        refusals.append(refusal)
    ground = _Ground(
        image=image,
        workdir=workdir,
        user=user,
        build=tuple(build),
        substituted=None if image is None else _record(image, stand, installs, check, recipe),
        env=dict(recipe.env) if recipe else {},
        root=stand.root.path,
    )
    return ground, refusals


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


def _stand_in(
    environment: Environment, recipe: Recipe | None, image: str | None, offer: Offer
) -> tuple[StandIn, list[Unsupported]]:
    """The root to use, and the lines that keep it from being enough."""
    default = StandIn(offer.default_root, explicit=False)
    lines = [step for step in recipe.steps if isinstance(step, Unsupported)] if recipe else []
    if image is None:
        return default, lines
    found = stand_in(image, offer)
    if found is None and not any(line.text.upper().startswith("FROM") for line in lines):
        lines.insert(0, no_stand_in(image, recipe.from_line if recipe else 0, f"FROM {image}" if recipe else image))
    stand = found or default
    if recipe is not None and not stand.explicit:
        why = "it installs packages, and [sandbox.substitute] names no root for the base image"
        lines += [Unsupported(s.line, s.text, why) for s in recipe.steps if isinstance(s, Install)]
    unique = {(line.line, line.text): line for line in sorted(lines, key=lambda line: line.line)}
    return stand, list(unique.values())


def _unbuildable(
    environment: Environment, recipe: Recipe | None, lines: list[Unsupported], tree: Tree
) -> list[Refusal]:
    if not lines:
        return []
    first = lines[0]
    where = f"{recipe.path} line {first.line}" if recipe else "docker_image"
    more = f" ({len(lines) - 1} more line(s) too)" if len(lines) > 1 else ""
    file = f"{tree.root / recipe.path}:{first.line}" if recipe else str(tree.root / environment.file)
    return [
        Refusal(
            Reason.TASK_NEEDS_DOCKER,
            f"{where} needs a sandbox with images: {first.text}: {first.why}{more}.",
            path=file,
            observed=[{"line": line.line, "text": line.text, "why": line.why} for line in lines],
        )
    ]


def _lacking(environment: Environment, check: PackageCheck, image: str | None, tree: Tree) -> list[Refusal]:
    if not check.missing:
        return []
    return [
        Refusal(
            Reason.TASK_NEEDS_PACKAGES,
            f"The root for {image} lacks what {environment.folder}/Dockerfile installs: {', '.join(check.missing)}.",
            path=str(tree.root / environment.folder / "Dockerfile"),
            observed=list(check.missing),
        )
    ]


def _record(
    image: str, stand: StandIn, installs: list[Install], check: PackageCheck, recipe: Recipe | None
) -> dict[str, Any]:
    return {
        "image": image,
        "root": "host /usr" if stand.root.path is None else str(stand.root.path),
        "explicit": stand.explicit,
        "skipped_installs": list(dict.fromkeys(step.text for step in installs)),
        "version_notes": [*stand.notes, *check.notes],
        "ignored_lines": list(recipe.ignored) if recipe else [],
    }


def _other_images(plan: ImagePlan) -> dict[str, Any] | None:
    """The record of images that the study puts in the place of those that the task names; None where it does not."""
    pairs = plan.bases.items() if plan.reference is None else ((plan.named, plan.reference),)
    other = [(named, taken) for named, taken in pairs if named != taken]
    if not other:
        return None
    image, root = other[0]
    more = [f"{taken} stands in for {named} too" for named, taken in other[1:]]
    nothing: dict[str, Any] = {"skipped_installs": [], "ignored_lines": []}
    return {"image": image, "root": root, "explicit": True, "version_notes": more, **nothing}


def _build(environment: Environment, recipe: Recipe | None, tree: Tree, workdir: str) -> list[BuildStep]:
    context = Context(tree, environment.folder, environment.ignore)
    steps: list[BuildStep] = []
    folders = {"/"}
    for step in recipe.steps if recipe else ():
        if isinstance(step, Copy):
            steps.extend(context.copy(step, folders, f"{environment.folder}/Dockerfile:{step.line}"))
        elif isinstance(step, Folder | Command):
            steps.append(step)
        if isinstance(step, Folder):
            folders.add(step.path)
    if workdir not in folders:
        steps.append(Folder(0, workdir))
    return steps + _loose_files(environment, tree, workdir)


def _loose_files(environment: Environment, tree: Tree, workdir: str) -> list[BuildStep]:
    if environment.recipe is None and environment.compose is None and tree.has_folder(environment.folder):
        return [CopyIn(tree.root / environment.folder, workdir)]
    return []


def _setup(setup: Setup) -> Command:
    argv = ("sh", "-c", _BY_BASH, "sh", setup.command)
    return Command(0, argv, setup.cwd or ".", setup.user, timeout_sec=setup.timeout_sec)
