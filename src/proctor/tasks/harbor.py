"""Reads a Harbor task folder: `task.toml` and `instruction.md`."""

from __future__ import annotations

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.parts import (
    CONFIG_CAP,
    TEXT_CAP,
    decoded,
    folder_name,
    known_schema,
    main_environment,
    notes_of,
    plain,
    real_folders,
    services_of,
    verifier_environment,
    without_canary,
)
from proctor.tasks.task import Layout, Task
from proctor.tasks.toml_reader import read_toml
from proctor.tasks.tree import Tree

FORMAT = "harbor"


def read_harbor(tree: Tree) -> Task:
    """The task of a folder that holds `task.toml`.

    Raises:
        Refusal: TASK_FORMAT_LATER (another schema), TASK_UNREADABLE, TASK_UNSAFE, TASK_CHANGED.
    """
    layout = Layout()
    real_folders(tree, ("environment", layout.tests, layout.solution, "steps"))
    read = read_toml(tree.read(layout.file, CONFIG_CAP), str(tree.root / layout.file))
    toml = read.toml
    known_schema(toml, layout, tree.root)
    instruction, canary = _instruction(tree, multi_step=bool(toml.steps))
    environment = main_environment(tree, layout, toml.environment)
    notes = [f"{canary} leading canary line(s) are kept from the agent"] if canary else []
    notes += notes_of(toml, environment)
    prior = tree.has_file("trajectory.json")
    if prior:
        notes.append("trajectory.json gives the agent a prior context")
    return Task(
        name=toml.task.name or folder_name(tree),
        tree=tree,
        format=FORMAT,
        layout=layout,
        instruction=instruction,
        toml=toml,
        environment=environment,
        verifier_environment=verifier_environment(tree, layout, toml),
        metadata={key: plain(value) for key, value in toml.metadata.items()},
        unknown_keys=read.unknown_keys,
        migrated=read.migrated,
        notes=tuple(notes),
        later=(f"[[steps]] ({len(toml.steps)})",) if toml.steps else (),
        later_prompts=("trajectory.json (a prior context for the agent)",) if prior else (),
        services=services_of(toml),
    )


def _instruction(tree: Tree, *, multi_step: bool) -> tuple[str, int]:
    """What the agent gets of the instruction, and how many canary lines were left out."""
    if multi_step and not tree.has_file("instruction.md"):
        return "", 0
    where = str(tree.root / "instruction.md")
    if not tree.has_file("instruction.md"):
        raise Refusal(Reason.TASK_UNREADABLE, "The task has no instruction.md.", path=where)
    instruction, canary = without_canary(decoded(tree.read("instruction.md", TEXT_CAP), where))
    if not instruction.strip():
        raise Refusal(Reason.TASK_UNREADABLE, "The instruction is empty.", path=where)
    return instruction, canary
