"""The image of a task's world where a sandbox has images: a prebuilt one, or a build and what it starts from. Pure.

A build is pinned before it is done: every image outside of the Dockerfile that a stage or a COPY is from gets replaced
by the id that admission found for it, so that a name which moves in between changes nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.dockerfile import Instruction, NotPlain, expand, split_words
from proctor.tasks.offer import Offer, substitute_image
from proctor.tasks.reach import too_far
from proctor.tasks.recipe import Recipe, Unsupported
from proctor.tasks.task import Environment
from proctor.tasks.tree import Tree

# Flags that the engine's own builder knows; BuildKit has more of them.
_CLASSIC = {"RUN": frozenset[str](), "COPY": frozenset({"from", "chown"}), "ADD": frozenset({"chown"})}
_NO_IMAGE = "scratch"
_FROM = re.compile(r"\A(?:COPY|ADD)\s(?:--\S+\s+)*--from\b", re.IGNORECASE)
# variables that BuildKit sets by itself
_PLATFORM = re.compile(r"\$\{?(BUILD|TARGET)(PLATFORM|OS|ARCH|VARIANT)")


@dataclass(frozen=True)
class ImagePlan:
    """What a world is made from. Either `reference` is the prebuilt image, or `folder` is built.

    `folder` is relative to the task (`environment`, or where its tests lie) and holds a Dockerfile; `context_sha256` is
    the digest of its tree. `bases` has the images that the build starts from: as the Dockerfile names them, variables
    replaced, and which is taken for them. `named` is the image as the task names it, for records.
    """

    named: str
    reference: str | None = None
    folder: str | None = None
    context_sha256: str | None = None
    bases: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    timeout_sec: float = 600.0

    @property
    def wanted(self) -> tuple[str, ...]:
        """The images that have to be here for it."""
        return tuple(self.bases.values()) if self.reference is None else (self.reference,)


def plan_image(environment: Environment, tree: Tree, offer: Offer) -> tuple[ImagePlan | None, list[Refusal]]:
    """The image of an environment, and what stops it; None where the task has neither an image nor a build."""
    if environment.image is not None:
        taken = substitute_image(environment.image, offer)
        return ImagePlan(environment.image, reference=taken), []
    recipe, where = environment.recipe, str(tree.root / environment.file)
    if recipe is None:
        message = "The task names no image and has no Dockerfile, which a sandbox with images needs."
        remedy = f"Add {environment.folder}/Dockerfile or docker_image, or use the namespace sandbox."
        return None, [Refusal(Reason.IMAGE_MISSING, message, path=where, remedy=remedy)]
    file = str(tree.root / recipe.path)
    outside = _outside(environment.folder, ("Dockerfile", ".dockerignore"), tree)
    if outside:
        return None, outside
    try:
        bases = {base: substitute_image(base, offer) for base in external_images(recipe.instructions)}
    except NotPlain as why:
        return None, [Refusal(Reason.TASK_UNREADABLE, f"An image that the build starts from: {why}.", path=file)]
    plan = ImagePlan(
        named=next(iter(bases), _NO_IMAGE),
        folder=environment.folder,
        context_sha256=tree.digest_below(environment.folder),
        bases=bases,
        timeout_sec=environment.table.build_timeout_sec,
    )
    return plan, [*_only_buildkit(recipe, file), *too_far(recipe.instructions, file)]


def _outside(folder: str, names: Iterable[str], tree: Tree) -> list[Refusal]:
    """Files that say how to build, and are links out of what is built: nothing of them is in the build's key."""
    found = []
    for path in (f"{folder}/{name}" for name in names):
        entry = tree.find(path)
        if entry is not None and not entry.path.startswith(os.fsencode(folder) + b"/"):
            message = f"{path} is a link that leaves its build context, to {entry.text}."
            found.append(Refusal(Reason.TASK_UNSAFE, message, path=str(tree.root / path)))
    return found


def images_of(plans: Iterable[ImagePlan | None]) -> tuple[str, ...]:
    """Every image that has to be here for the plans, once, sorted."""
    return tuple(sorted({name for plan in plans if plan is not None for name in plan.wanted}))


def build_key(plan: ImagePlan, base_ids: Mapping[str, str], platform: str) -> str:
    """What names the result of a build: SHA-256, hex, over all that goes in.

    Args:
        plan: a build.
        base_ids: the id of each image that it starts from, by name as the Dockerfile has it.
        platform: such as `linux/amd64`.
    """
    content: dict[str, Any] = {
        "context": plan.context_sha256,
        "bases": dict(base_ids),
        "platform": platform,
    }
    return hashlib.sha256(encode(content)).hexdigest()


def external_images(instructions: Iterable[Instruction]) -> tuple[str, ...]:
    """The images outside of a Dockerfile that its stages, and COPY from an image, start from.

    Raises:
        NotPlain: a name with a variable that has no value, or one that only an ONBUILD comes to.
    """
    return tuple(dict.fromkeys(name for _, name in _external(instructions)))


def pinned(text: str, recipe: Recipe, ids: Mapping[str, str]) -> str:
    """A Dockerfile with other images in the place of those outside of it, by name; its lines keep their numbers.

    Raises:
        NotPlain: as `external_images`.
        KeyError: an image without an id.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    for instruction, name in _external(recipe.instructions):
        span = instruction.last - instruction.line + 1
        lines[instruction.line - 1 : instruction.last] = [_renamed(instruction, ids[name])] + [""] * (span - 1)
    return "\n".join(lines)


def _external(instructions: Iterable[Instruction]) -> Iterator[tuple[Instruction, str]]:
    """Instructions that name an image which is no stage before them, and that image."""
    variables: dict[str, str | None] = {}
    stages: set[str] = set()
    number = 0
    for instruction in instructions:
        if instruction.keyword == "ARG" and not number:
            for word in split_words(instruction.rest, instruction.escape):
                name, given, default = word.partition("=")
                variables[name] = expand(default, variables, instruction.escape) if given else None
        elif instruction.keyword == "FROM":
            words = split_words(instruction.rest, instruction.escape)
            if not words:
                raise NotPlain("a FROM names no image")
            name = expand(words[0], variables, instruction.escape)
            if name.lower() not in stages and name != _NO_IMAGE:
                yield instruction, name
            stages |= {str(number), words[2].lower()} if len(words) == 3 else {str(number)}
            number += 1
        elif instruction.keyword == "COPY":
            source = dict(instruction.flags).get("from", "")
            if source and source.lower() not in stages:
                yield instruction, source
        elif instruction.keyword == "ONBUILD" and _FROM.search(instruction.rest) is not None:
            # done later, by a name that may have moved
            raise NotPlain("an ONBUILD copies from another image")


def _renamed(instruction: Instruction, image: str) -> str:
    if instruction.keyword == "FROM":
        rest = re.sub(r"\A\S+", image, instruction.rest)
        flags = instruction.flags
    else:
        rest = instruction.rest
        flags = tuple((name, image if name == "from" else value) for name, value in instruction.flags)
    return " ".join([instruction.keyword, *(f"--{name}={value}" for name, value in flags), rest])


def _only_buildkit(recipe: Recipe, file: str) -> list[Refusal]:
    lines = [found for each in recipe.instructions if (found := _beyond_classic(each)) is not None]
    if not lines:
        return []
    first = lines[0]
    more = f" ({len(lines) - 1} more line(s) too)" if len(lines) > 1 else ""
    return [
        Refusal(
            Reason.BUILD_UNSUPPORTED,
            f"{recipe.path} line {first.line} needs BuildKit: {first.text}: {first.why}{more}.",
            path=f"{file}:{first.line}",
            observed=[asdict(line) for line in lines],
        )
    ]


def _beyond_classic(instruction: Instruction) -> Unsupported | None:
    if instruction.heredoc:
        return Unsupported(instruction.line, instruction.text, "a heredoc")
    known = _CLASSIC.get(instruction.keyword)
    flags = [
        f"--{name}"
        for name, value in instruction.flags
        if (known is not None and name not in known) or _PLATFORM.search(value)
    ]
    return Unsupported(instruction.line, instruction.text, ", ".join(flags)) if flags else None
