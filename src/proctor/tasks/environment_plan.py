"""One environment of a task on a sandbox: its root, build steps, variables and working directory, decided purely.

The working directory is the first of: `workdir` of task.toml, the compose file's, the Dockerfile's last WORKDIR; else
`/` for an image (Docker's own default, and that of the images that may be stood in for), and `/app` where the task
names no image at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.context import Context, CopyIn
from proctor.tasks.offer import Offer, StandIn, no_stand_in, stand_in
from proctor.tasks.recipe import Command, Copy, Folder, Install, Recipe, Unsupported
from proctor.tasks.roots import PackageCheck, RootFacts, check_packages
from proctor.tasks.task import Environment
from proctor.tasks.tree import Tree
from proctor.tasks.variables import Resolved, resolve

LOOSE_WORKDIR = "/app"

BuildStep = Folder | Command | CopyIn


@dataclass(frozen=True)
class EnvironmentPlan:
    """One world to make. `root` None is the host's /usr; limits are in cpus and bytes, None where the task has none.

    `build` goes in order, before anything else runs: `Folder` and `CopyIn` are brought in, `Command` runs inside.
    `env` holds values; `host_variables` names those that came from the host (to be redacted in evidence).
    """

    image: str | None
    root: Path | None
    base_substituted: Mapping[str, Any] | None
    workdir: str
    env: Mapping[str, str]
    user: str | None
    build: tuple[BuildStep, ...]
    cpus: float | None
    memory_bytes: int | None
    storage_bytes: int | None
    host_variables: tuple[str, ...]
    notes: tuple[str, ...]

    def brings(self, folder: str) -> bool:
        """Whether the build copies something to that folder."""
        return any(isinstance(s, CopyIn) and (s.target + "/").startswith(folder + "/") for s in self.build)


def plan_environment(
    environment: Environment, tree: Tree, offer: Offer, runs_as: Mapping[str, str | int | None]
) -> tuple[EnvironmentPlan, list[Refusal]]:
    """The plan, and what stops it (the plan is of no use where anything does).

    `runs_as` says who is to run here as which user, such as `{"agent": "dev"}`; None leaves it to the environment.
    """
    table, compose = environment.table, environment.compose
    recipe = environment.recipe if environment.image is None else None
    image = environment.image or (recipe.base_image if recipe else None) or None
    refusals: list[Refusal] = []
    if compose is not None and compose.beyond:
        refusals.append(
            Refusal(
                Reason.TASK_NEEDS_COMPOSE,
                f"{compose.path} asks for more than a main service: {', '.join(compose.beyond)}.",
                path=str(tree.root / compose.path),
                observed=list(compose.beyond),
            )
        )
    refusals.extend(_machine(environment, tree))
    workdir = (
        table.workdir
        or (compose.workdir if compose else None)
        or (recipe.workdir if recipe else None)
        or ("/" if environment.describes else LOOSE_WORKDIR)
    )
    env = dict(recipe.env) if recipe else {}
    resolved = resolve({**(compose.env if compose else {}), **table.env}, offer.host_env, offer.withheld_env, seen=True)
    refusals.extend(missing_variables(resolved, f"{environment.folder} env", tree))
    user = (compose.user if compose else None) or (recipe.user if recipe else None)
    if not offer.many_users:
        refusals.extend(_several_users(recipe, {**runs_as, "environment": user}, tree))
    root, substituted, build, notes = None, None, [], []
    if not offer.builds_images:
        stand, lines = _stand_in(environment, recipe, image, offer)
        root = stand.root.path
        installs = [step for step in recipe.steps if isinstance(step, Install)] if recipe else []
        check = check_packages(stand.root, installs) if stand.explicit else PackageCheck((), ())
        refusals.extend(_unbuildable(environment, recipe, lines, tree))
        refusals.extend(_lacking(environment, check, image, tree))
        if offer.many_users:
            refusals.extend(_unknown_users({**runs_as, "environment": user}, stand.root, tree))
        if image is not None:
            substituted = _record(image, stand, installs, check, recipe)
        try:
            build = _build(environment, recipe, tree, workdir)
        except Refusal as refusal:
            refusals.append(refusal)
    if resolved.withheld:
        notes.append(f"host variables kept out, their defaults used: {', '.join(resolved.withheld)}")
    plan = EnvironmentPlan(
        image=image,
        root=root,
        base_substituted=substituted,
        workdir=workdir,
        env=env | dict(resolved.env),
        user=user,
        build=tuple(build),
        cpus=table.cpus,
        memory_bytes=table.memory_bytes,
        storage_bytes=table.storage_bytes,
        host_variables=resolved.from_host,
        notes=tuple(notes),
    )
    return plan, refusals


def missing_variables(resolved: Resolved, where: str, tree: Tree) -> list[Refusal]:
    """A refusal for templates without value or default, if there are any."""
    if not resolved.missing:
        return []
    kept_out = set(resolved.missing) & set(resolved.withheld)
    why = " (kept out: keys of the study's own models never go in)" if kept_out else ""
    return [
        Refusal(
            Reason.TASK_ENV_MISSING,
            f"{where} wants {', '.join(resolved.missing)} of the host{why}.",
            path=str(tree.root / "task.toml"),
            observed=list(resolved.missing),
        )
    ]


def other_than_root(user: str | int | None) -> bool:
    """Whether a user (or user:group) is not root's."""
    return user is not None and any(part not in ("root", "0", "") for part in str(user).split(":"))


def _machine(environment: Environment, tree: Tree) -> list[Refusal]:
    table, where = environment.table, str(tree.root / "task.toml")
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
    file = f"{tree.root / recipe.path}:{first.line}" if recipe else str(tree.root / "task.toml")
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
    if environment.recipe is None and environment.compose is None and tree.has_folder(environment.folder):
        steps.append(CopyIn(tree.root / environment.folder, workdir))
    return steps


def _several_users(recipe: Recipe | None, runs_as: Mapping[str, str | int | None], tree: Tree) -> list[Refusal]:
    found = [f"the {who} runs as {user}" for who, user in runs_as.items() if other_than_root(user)]
    for step in recipe.steps if recipe else ():
        owner = step.chown if isinstance(step, Copy) else step.owner if isinstance(step, Command) else None
        if other_than_root(owner):
            found.append(f"line {step.line} of its Dockerfile gives files to {owner}")
        if isinstance(step, Folder | Command) and other_than_root(step.user):
            found.append(f"line {step.line} of its Dockerfile runs as {step.user}")
    if not found:
        return []
    message = f"Several users are needed: {'; '.join(found)}."
    return [Refusal(Reason.TASK_NEEDS_ROOT, message, path=str(tree.root / "task.toml"), observed=found)]


def _unknown_users(runs_as: Mapping[str, str | int | None], root: RootFacts, tree: Tree) -> list[Refusal]:
    """Names that the task's image would know and the root in its place does not; ids need no name."""
    if root.users is None:
        return []
    names = {who: str(user).partition(":")[0] for who, user in runs_as.items() if other_than_root(user)}
    unknown = {who: name for who, name in names.items() if name and not name.isdecimal() and name not in root.users}
    if not unknown:
        return []
    said = ", ".join(f"{name} (the {who})" for who, name in unknown.items())
    message = f"The root {root.path} has no user {said}, whom the task's image would bring."
    return [Refusal(Reason.TASK_NEEDS_DOCKER, message, path=str(tree.root / "task.toml"), observed=unknown)]
