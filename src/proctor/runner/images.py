"""The images of a run, each brought here once and before any attempt: pulled by digest, built from pinned bases."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from proctor.admission.ready import Ready
from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import Admitted
from proctor.core.waiting import in_thread
from proctor.sandbox.base import Image, ImageFacts, SandboxKind
from proctor.tasks.context import Ignore
from proctor.tasks.images import ImagePlan, build_key, pinned
from proctor.tasks.task import Environment, Task

FOLDER = "images"
_AT_ONCE = 2

Shown = Callable[[str], AbstractAsyncContextManager[None]]
Found = Mapping[str, ImageFacts | Refusal]


@dataclass(frozen=True)
class _Build:
    """A build that some task asks for: its plan, and where its Dockerfile and its files lie."""

    task: Task
    environment: Environment
    plan: ImagePlan


def name_of(plan: ImagePlan) -> str:
    """What an image is called among those of a run: the same for plans that come to the same image."""
    if plan.reference is not None:
        return plan.reference
    content = [plan.context_sha256, dict(plan.bases)]
    return f"build {hashlib.sha256(encode(content)).hexdigest()}"


async def bring_images(
    kind: SandboxKind, ready: Ready, at: Callable[[Path], Path], admitted: Admitted, shown: Shown
) -> Found:
    """Every image of the run, by `name_of`; or why it cannot be had, which ends the attempts that need it.

    `at` finds the checked copy of a task's folder, `shown` shows for as long as it is entered what is done.
    """
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(image: Image, doing: str) -> ImageFacts | Refusal:
        async with turns, shown(doing):
            try:
                return await kind.provide(image, admitted)
            except Refusal as refusal:
                return refusal

    names = sorted(ready.images)
    found: dict[str, ImageFacts | Refusal] = dict(
        zip(
            names,
            await asyncio.gather(*(one(ready.images[name], _doing(name, ready.images[name])) for name in names)),
            strict=True,
        )
    )
    builds = {name_of(build.plan): build for build in _builds(ready)}

    async def build(name: str) -> ImageFacts | Refusal:
        bases = {base: found[taken] for base, taken in builds[name].plan.bases.items()}
        missing = next((each for each in bases.values() if isinstance(each, Refusal)), None)
        if missing is not None:
            return missing
        here = {base: facts for base, facts in bases.items() if isinstance(facts, ImageFacts)}
        file = f"{builds[name].plan.folder}/Dockerfile"
        image = await in_thread(_context, builds[name], here, at, admitted)
        return await one(image, f"building the image of {builds[name].task.name} ({file})")

    try:
        made = await asyncio.gather(*(build(name) for name in builds))
    finally:
        await in_thread(shutil.rmtree, _folder(admitted), ignore_errors=True)
    return found | dict(zip(builds, made, strict=True))


def _doing(name: str, image: Image) -> str:
    return f"looking for the image {name}" if image.pull is None else f"pulling the image {name}"


def _builds(ready: Ready) -> Iterator[_Build]:
    for (name, _), plan in sorted(ready.plans.items()):
        task = ready.tasks[name]
        worlds = ((plan.main, task.environment), (plan.verifier, task.verifier_environment or task.environment))
        for world, environment in worlds:
            image = None if world is None else world.image_plan
            if image is not None and image.reference is None:
                yield _Build(task, environment, image)


def _context(build: _Build, bases: Mapping[str, ImageFacts], at: Callable[[Path], Path], admitted: Admitted) -> Image:
    """The build, in a folder of its own, and with images named by their ids: no name can move meanwhile."""
    plan, recipe = build.plan, build.environment.recipe
    assert recipe is not None and plan.folder is not None
    ids = {base: facts.id for base, facts in bases.items()}
    key = build_key(plan, ids, next((facts.platform for facts in bases.values()), "linux"))
    folder = _folder(admitted) / key[:32]
    shutil.copytree(at(build.task.path) / plan.folder, folder, symlinks=True)
    text = pinned((folder / "Dockerfile").read_text(encoding="utf-8"), recipe, ids)
    _leave_out(folder, build.environment.ignore)
    return Image(
        context=folder,
        dockerfile=text,
        base_ids={each: each for each in ids.values()},  # as the Dockerfile that is built names them
        stages=tuple(each.last for each in recipe.instructions if each.keyword == "FROM"),
        key=key,
        timeout_sec=plan.timeout_sec,
    )


def _leave_out(folder: Path, ignore: Ignore) -> None:
    """Remove what `.dockerignore` keeps from a builder."""
    for here, folders, files in os.walk(folder, topdown=False):
        for path in (Path(here, name) for name in (*files, *folders)):
            if path.relative_to(folder).as_posix() not in ignore:
                continue
            if path.is_symlink() or not path.is_dir():
                path.unlink()
            elif not any(path.iterdir()):
                path.rmdir()


def _folder(admitted: Admitted) -> Path:
    return admitted.run_dir / "scratch" / FOLDER


def facts_of(found: Found, plan: ImagePlan | None) -> ImageFacts | Refusal | None:
    """The image that a world is made from; None where its sandbox has no images."""
    if plan is None:
        return None
    return found.get(name_of(plan)) or Refusal(Reason.IMAGE_MISSING, f"nobody brought {plan.named}", path=plan.named)
