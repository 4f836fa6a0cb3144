"""Parts that formats of task folders share: environments, texts, names; read out of the digested listing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.compose import NAMES, Compose, read_compose
from proctor.tasks.context import Ignore
from proctor.tasks.recipe import Recipe, read_recipe
from proctor.tasks.schema import EnvironmentTable, TaskToml
from proctor.tasks.task import Environment, Layout, Setup
from proctor.tasks.tree import Kind, Tree, shown
from proctor.tasks.variables import taken_literally

CONFIG_CAP = 1 << 20
TEXT_CAP = 4 << 20

_BUILD_CAP = 1 << 18
_SCHEMA_MAJOR = "1"
_CANARY = re.compile(r"<!--.*canary.*-->|#.*canary.*", re.IGNORECASE)


def real_folders(tree: Tree, names: Iterable[str]) -> None:
    """See that parts are folders of their own. Raises Refusal TASK_UNSAFE."""
    for folder in names:
        entry = tree.entries.get(folder.encode())
        if entry is not None and entry.kind is not Kind.FOLDER:
            # a link from environment/ to tests/ would show the tests to the agent
            message = f"{folder} has to be a folder, not a {entry.kind.name.lower()}."
            raise Refusal(Reason.TASK_UNSAFE, message, path=str(tree.root / folder))


def known_schema(toml: TaskToml, layout: Layout, root: Path) -> None:
    """See that the file is of a schema that is read. Raises Refusal TASK_FORMAT_LATER."""
    if toml.schema_version.partition(".")[0] != _SCHEMA_MAJOR:
        raise Refusal(
            Reason.TASK_FORMAT_LATER,
            f"{layout.file} is of schema {toml.schema_version}; schema 1 is read.",
            path=str(root / layout.file),
            observed=toml.schema_version,
            required="1.x",
        )


def main_environment(tree: Tree, layout: Layout, table: EnvironmentTable, setup: tuple[Setup, ...] = ()) -> Environment:
    """The agent's world."""
    return _environment(tree, "environment", layout, table, setup)


def verifier_environment(
    tree: Tree, layout: Layout, toml: TaskToml, setup: tuple[Setup, ...] = ()
) -> Environment | None:
    """A separate verifier's world: its own image or build of its tests, else the agent's environment made anew.

    Where it states no limits the agent's serve it too; the agent's image, env, setup and workdir only where it has no
    build.
    """
    verifier, main = toml.verifier, toml.environment
    if verifier.environment_mode != "separate" and verifier.environment is None:
        return None
    limits = {"cpus": main.cpus, "memory_mb": main.memory_mb, "storage_mb": main.storage_mb}
    said = verifier.environment.model_dump(exclude_unset=True) if verifier.environment is not None else {}
    own = _environment(tree, layout.tests, layout, EnvironmentTable.model_validate(limits | said), ())
    if own.describes:
        return own
    table = EnvironmentTable.model_validate(main.model_dump(exclude_unset=True) | said)
    return main_environment(tree, layout, table, setup)


def notes_of(toml: TaskToml, environment: Environment) -> list[str]:
    """What a reader of any format should know: a build that is not done, variables that look like templates."""
    notes = []
    if environment.image is not None and environment.recipe is not None:
        notes.append(f"the image {environment.image} is named, and {environment.recipe.path} is not built")
    literal = taken_literally({**toml.environment.env, **toml.verifier.env, **toml.solution.env})
    if literal:
        notes.append(f"these variables hold ${{…}} within a longer value, taken as written: {', '.join(literal)}")
    return notes


def services_of(toml: TaskToml) -> frozenset[str]:
    """The services other than `main` that artifacts and commands are of."""
    named = {item.service for item in toml.artifacts} | {item.service for item in toml.verifier.collect}
    return frozenset(named - {"main"})


def without_canary(text: str) -> tuple[str, int]:
    """What an agent gets of an instruction: without leading canary lines, and how many there were."""
    lines = text.split("\n")
    canary = 0
    while canary < len(lines) and _CANARY.fullmatch(lines[canary].strip()):
        canary += 1
    start = canary
    while canary and start < len(lines) and not lines[start].strip():
        start += 1
    return "\n".join(lines[start:]), canary


def folder_name(tree: Tree) -> str:
    """The name of a task that states none."""
    return shown(tree.root.name.encode("utf-8", "surrogateescape"))


def decoded(data: bytes, where: str) -> str:
    """The text of a file. Raises Refusal TASK_UNREADABLE."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal(Reason.TASK_UNREADABLE, f"The file is not UTF-8 at byte {error.start}.", path=where) from error
    if "\x00" in text:  # no command line, path or variable could carry it on
        raise Refusal(Reason.TASK_UNREADABLE, f"The file has a NUL at byte {data.index(0)}.", path=where)
    return text


def optional_text(tree: Tree, path: str, cap: int = _BUILD_CAP) -> str | None:
    """The text of a file that need not be there. Raises Refusal TASK_UNREADABLE, TASK_CHANGED."""
    if not tree.has_file(path):
        return None
    return decoded(tree.read(path, cap), str(tree.root / path))


def plain(value: Any) -> Any:
    """Values as JSON has them: times as ISO text, numbers that are not finite as text."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, float) and value - value != 0:
        return str(value)
    return value


def _environment(
    tree: Tree, folder: str, layout: Layout, table: EnvironmentTable, setup: tuple[Setup, ...]
) -> Environment:
    recipe, compose = _recipe(tree, f"{folder}/Dockerfile"), _compose(tree, folder)
    if compose is not None and compose.builds and recipe is None:
        message = f"{compose.path} builds, and there is no {folder}/Dockerfile."
        raise Refusal(Reason.TASK_UNREADABLE, message, path=str(tree.root / compose.path))
    return Environment(
        folder=folder,
        file=layout.file,
        table=table,
        recipe=recipe,
        compose=compose,
        ignore=_ignore(tree, folder),
        setup=setup,
    )


def _ignore(tree: Tree, folder: str) -> Ignore:
    own = optional_text(tree, f"{folder}/Dockerfile.dockerignore")
    return Ignore(own if own is not None else optional_text(tree, f"{folder}/.dockerignore") or "")


def _recipe(tree: Tree, path: str) -> Recipe | None:
    text = optional_text(tree, path)
    return None if text is None else read_recipe(text, path)


def _compose(tree: Tree, folder: str) -> Compose | None:
    for name in NAMES:
        text = optional_text(tree, f"{folder}/{name}")
        if text is not None:
            return read_compose(text, f"{folder}/{name}")
    return None
