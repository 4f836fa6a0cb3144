"""What a world of a task is made from, decided purely: an image or a build, or a root that stands in for them.

The working directory is the first of: `workdir` of the task's file, the compose file's, the Dockerfile's last WORKDIR;
else `/` for an image (Docker's own default, and that of the images that may be stood in for), and `/app` where the
task names no image at all. A sandbox with images leaves to the image what neither of the first two says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
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
from proctor.tasks.task import Environment
from proctor.tasks.tree import Tree
from proctor.tasks.users import other_than_root, root_id, unknown_users

_LOOSE_WORKDIR = "/app"

BuildStep = Folder | Command | CopyIn


@dataclass(frozen=True)
class MadeFrom:
    """What a world is made from, and what is done to it."""

    image: str | None
    workdir: str | None
    user: str | None
    build: tuple[BuildStep, ...]
    substituted: Mapping[str, Any] | None
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    root: Path | None = None
    image_plan: ImagePlan | None = None


def from_image(environment: Environment, tree: Tree, offer: Offer) -> tuple[MadeFrom, list[Refusal]]:
    """An image or a build, and what stops it; `workdir` and `user` are None where only the image knows them."""
    compose = environment.compose
    plan, refusals = plan_image(environment, tree, offer)
    workdir = environment.table.workdir or (compose.workdir if compose else None)
    user = compose.user if compose else None
    made = MadeFrom(
        image=None if plan is None else plan.named,
        workdir=workdir,
        user=user if other_than_root(user) else root_id(user),
        build=tuple(_loose_files(environment, tree, workdir or ".")),
        substituted=None if plan is None else _other_images(plan),
        image_plan=plan,
    )
    return made, refusals


def from_root(
    environment: Environment, tree: Tree, offer: Offer, runs_as: Mapping[str, str | int | None]
) -> tuple[MadeFrom, list[Refusal]]:
    """A root in the image's place with the Dockerfile's steps, and what stops it. `runs_as`: see `plan_environment`."""
    compose, recipe = environment.compose, environment.followed
    image = environment.image or (recipe.base_image if recipe else None) or None
    workdir = (
        environment.table.workdir
        or (compose.workdir if compose else None)
        or (recipe.workdir if recipe else None)
        or ("/" if environment.describes else _LOOSE_WORKDIR)
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
    made = MadeFrom(
        image=image,
        workdir=workdir,
        user=user,
        build=tuple(build),
        substituted=None if image is None else _record(image, stand, installs, check, recipe),
        env=dict(recipe.env) if recipe else {},
        root=stand.root.path,
    )
    return made, refusals


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
            observed=[asdict(line) for line in lines],
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
