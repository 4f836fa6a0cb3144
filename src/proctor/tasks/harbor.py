"""Reads a Harbor task folder, and knows the formats that come later by their file."""

from __future__ import annotations

import hashlib
import re
import stat
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.compose import NAMES, Compose, read_compose
from proctor.tasks.context import Ignore
from proctor.tasks.recipe import Recipe, read_recipe
from proctor.tasks.schema import EnvironmentTable, TaskToml
from proctor.tasks.task import SOLUTION, TESTS, Environment, Task
from proctor.tasks.toml_reader import read_toml
from proctor.tasks.tree import Kind, Tree, mode_of, read_tree, shown
from proctor.tasks.variables import taken_literally

LATER = {
    "task.md": "BenchFlow task.md",
    "task.yaml": "Terminal-Bench task.yaml",
    "task.yml": "Terminal-Bench task.yaml",
}

_TOML_CAP = 1 << 20
_TEXT_CAP = 4 << 20
_BUILD_CAP = 1 << 18
_CANARY = re.compile(r"<!--.*canary.*-->|#.*canary.*", re.IGNORECASE)
_SCHEMA_MAJOR = "1"
_FOLDERS = ("environment", "tests", "solution", "steps")


def later_format(folder: Path) -> str | None:
    """The format of a task folder that has no task.toml; None where none is known."""
    return next((name for file, name in LATER.items() if stat.S_ISREG(mode_of(folder / file))), None)


def read_task(path: Path) -> Task:
    """Read a task folder once; every later use is of these bytes.

    Raises:
        Refusal: TASK_NOT_FOUND, TASK_FORMAT_LATER (task.md or task.yaml without task.toml), TASK_UNREADABLE,
            TASK_UNSAFE, TASK_CHANGED (it changed while being read).
    """
    if not stat.S_ISDIR(mode_of(path)):
        raise Refusal(Reason.TASK_NOT_FOUND, "There is no task folder at that path.", path=str(path))
    if not stat.S_ISREG(mode_of(path / "task.toml")):
        later = later_format(path)
        if later is None:
            raise Refusal(Reason.TASK_NOT_FOUND, "The folder holds no task.toml.", path=str(path))
        raise Refusal(Reason.TASK_FORMAT_LATER, f"The format is {later}.", path=str(path), observed=later)
    tree = read_tree(path)
    for folder in _FOLDERS:
        entry = tree.entries.get(folder.encode())
        if entry is not None and entry.kind is not Kind.FOLDER:
            # a link from environment/ to tests/ would show the tests to the agent
            message = f"{folder} has to be a folder, not a {entry.kind.name.lower()}."
            raise Refusal(Reason.TASK_UNSAFE, message, path=str(tree.root / folder))
    data = tree.read("task.toml", _TOML_CAP)
    read = read_toml(data, str(tree.root / "task.toml"))
    _known_schema(read.toml, str(tree.root / "task.toml"))
    notes = [f"{file} stands beside task.toml, which is read" for file in LATER if tree.has_file(file)]
    raw, instruction, canary = _instruction(tree, multi_step=bool(read.toml.steps))
    if canary:
        notes.append(f"{canary} leading canary line(s) are kept from the agent")
    environment = _environment(tree, "environment", read.toml.environment)
    if environment.image is not None and environment.recipe is not None:
        notes.append(f"the image {environment.image} is named, and {environment.recipe.path} is not built")
    literal = taken_literally({**read.toml.environment.env, **read.toml.verifier.env, **read.toml.solution.env})
    if literal:
        notes.append(f"these variables hold ${{…}} within a longer value, taken as written: {', '.join(literal)}")
    if tree.has_file("trajectory.json"):
        notes.append("trajectory.json gives the agent a prior context")
    return Task(
        name=read.toml.task.name or shown(tree.root.name.encode("utf-8", "surrogateescape")),
        tree=tree,
        format="harbor",
        instruction=instruction,
        instruction_sha256=None if raw is None else hashlib.sha256(raw).hexdigest(),
        toml=read.toml,
        environment=environment,
        verifier_environment=_verifier_environment(tree, read.toml),
        solution_script=SOLUTION if tree.has_file(SOLUTION) else None,
        tests_script=TESTS if tree.has_file(TESTS) else None,
        metadata={key: _plain(value) for key, value in read.toml.metadata.items()},
        unknown_keys=read.unknown_keys,
        migrated=read.migrated,
        notes=tuple(notes),
    )


def _known_schema(toml: TaskToml, where: str) -> None:
    if toml.schema_version.partition(".")[0] != _SCHEMA_MAJOR:
        raise Refusal(
            Reason.TASK_FORMAT_LATER,
            f"task.toml is of schema {toml.schema_version}; schema 1 is read.",
            path=where,
            observed=toml.schema_version,
            required="1.x",
        )


def _instruction(tree: Tree, *, multi_step: bool) -> tuple[bytes | None, str, int]:
    """The instruction's bytes, what the agent gets of it, and how many canary lines were left out."""
    if multi_step and not tree.has_file("instruction.md"):
        return None, "", 0
    where = str(tree.root / "instruction.md")
    if not tree.has_file("instruction.md"):
        raise Refusal(Reason.TASK_UNREADABLE, "The task has no instruction.md.", path=where)
    raw = tree.read("instruction.md", _TEXT_CAP)
    text = _decoded(raw, where)
    lines = text.split("\n")
    canary = 0
    while canary < len(lines) and _CANARY.fullmatch(lines[canary].strip()):
        canary += 1
    start = canary
    while canary and start < len(lines) and not lines[start].strip():
        start += 1
    instruction = "\n".join(lines[start:])
    if not instruction.strip():
        raise Refusal(Reason.TASK_UNREADABLE, "The instruction is empty.", path=where)
    return raw, instruction, canary


def _environment(tree: Tree, folder: str, table: EnvironmentTable) -> Environment:
    recipe, compose = _recipe(tree, f"{folder}/Dockerfile"), _compose(tree, folder)
    if compose is not None and compose.builds and recipe is None:
        message = f"{compose.path} builds, and there is no {folder}/Dockerfile."
        raise Refusal(Reason.TASK_UNREADABLE, message, path=str(tree.root / compose.path))
    return Environment(
        folder=folder,
        table=table,
        recipe=recipe,
        compose=compose,
        ignore=Ignore(_optional(tree, f"{folder}/.dockerignore") or ""),
    )


def _verifier_environment(tree: Tree, toml: TaskToml) -> Environment | None:
    """A separate verifier's world: its own image or build of `tests/`, else the agent's environment made anew.

    Where it states no limits the agent's serve it too; the agent's image, env and workdir only where it has no build.
    """
    verifier, main = toml.verifier, toml.environment
    if verifier.environment_mode != "separate" and verifier.environment is None:
        return None
    limits = {"cpus": main.cpus, "memory_mb": main.memory_mb, "storage_mb": main.storage_mb}
    said = verifier.environment.model_dump(exclude_unset=True) if verifier.environment is not None else {}
    own = _environment(tree, "tests", EnvironmentTable.model_validate(limits | said))
    if own.describes:
        return own
    return _environment(
        tree, "environment", EnvironmentTable.model_validate(main.model_dump(exclude_unset=True) | said)
    )


def _recipe(tree: Tree, path: str) -> Recipe | None:
    text = _optional(tree, path)
    return None if text is None else read_recipe(text, path)


def _compose(tree: Tree, folder: str) -> Compose | None:
    for name in NAMES:
        text = _optional(tree, f"{folder}/{name}")
        if text is not None:
            return read_compose(text, f"{folder}/{name}")
    return None


def _optional(tree: Tree, path: str) -> str | None:
    if not tree.has_file(path):
        return None
    return _decoded(tree.read(path, _BUILD_CAP), str(tree.root / path))


def _decoded(data: bytes, where: str) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal(Reason.TASK_UNREADABLE, f"The file is not UTF-8 at byte {error.start}.", path=where) from error
    if "\x00" in text:  # no command line, path or variable could carry it on
        raise Refusal(Reason.TASK_UNREADABLE, f"The file has a NUL at byte {data.index(0)}.", path=where)
    return text


def _plain(value: Any) -> Any:
    """TOML values as JSON has them: times as ISO text, numbers that are not finite as text."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, float) and value - value != 0:
        return str(value)
    return value
