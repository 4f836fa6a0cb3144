"""Reads a BenchFlow task folder: `task.md`, its values carried over into the terms of the other formats.

What the format has beyond them is either held (`prompt_prefix`, `setup_commands`), named as not of this version, or
listed as read and without effect: nothing is dropped in silence.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.tasks.benchflow_schema import ROOT_KEYS, Own
from proctor.tasks.front_matter import Document, read_document
from proctor.tasks.parts import (
    TEXT_CAP,
    decoded,
    folder_name,
    known_schema,
    main_environment,
    notes_of,
    optional_text,
    plain,
    real_folders,
    services_of,
    verifier_environment,
    without_canary,
)
from proctor.tasks.task import TEST_SCRIPT, Layout, Task
from proctor.tasks.toml_reader import faults_of, read_config
from proctor.tasks.tree import Tree

FORMAT = "benchflow"
FILE = "task.md"

# Harbor's names and the format's own, the longer first.
_WORDS = {
    "verifier.environment_mode": "verifier.sandbox_mode",
    "verifier.environment": "verifier.sandbox",
    "environment": "sandbox",
    "solution": "oracle",
}
_PLAIN_COMMANDS = tuple(f"{shell}{script}" for shell in ("", "bash ", "sh ") for script in ("test.sh", "./test.sh"))


@dataclass(frozen=True)
class _Front:
    """The file's values: in Harbor's terms, and what only this format has."""

    raw: dict[str, Any]
    own: Own


def read_benchflow(tree: Tree) -> Task:
    """The task of a folder that holds `task.md`.

    Raises:
        Refusal: TASK_FORMAT_LATER (another schema), TASK_UNREADABLE (an unknown root key too), TASK_UNSAFE,
            TASK_CHANGED.
    """
    real_folders(tree, ("environment", "verifier", "tests", "oracle", "solution", "prompts", "steps"))
    layout, where = _layout(tree), str(tree.root / FILE)
    document = read_document(decoded(tree.read(FILE, TEXT_CAP), where), where)
    front = _front(document.values, where)
    read = read_config(front.raw, where, _WORDS)
    toml, own = read.toml, front.own
    known_schema(toml, layout, tree.root)
    prompt, canary = without_canary(document.prompt)
    if not prompt.strip() and not toml.steps:
        raise Refusal(Reason.TASK_UNREADABLE, "task.md has no prompt.", path=where)
    setup = own.sandbox.setup()
    environment = main_environment(tree, layout, toml.environment, setup)
    notes = [f"{canary} leading canary line(s) are kept from the agent"] if canary else []
    notes += [*notes_of(toml, environment), *_unused(own, document, tree)]
    service = own.verifier.service
    return Task(
        name=toml.task.name or own.short_name or folder_name(tree),
        tree=tree,
        format=FORMAT,
        layout=layout,
        instruction="\n\n".join(part for part in (own.agent.prompt_prefix.strip(), prompt) if part),
        toml=toml,
        environment=environment,
        verifier_environment=verifier_environment(tree, layout, toml, setup),
        metadata={key: plain(value) for key, value in toml.metadata.items()},
        unknown_keys=read.unknown_keys,
        migrated=read.migrated,
        notes=tuple(notes),
        later=(*_later(own, toml.steps), *_strategy(tree, layout)),
        later_prompts=tuple(own.prompted()),
        services=services_of(toml) | ({service} - {"main"}),
    )


def _layout(tree: Tree) -> Layout:
    """The format's own folders where they are there, else those of the older format that it grew out of."""
    own_tests, own_solution = tree.has_folder("verifier"), tree.has_folder("oracle")
    return Layout(
        file=FILE,
        tests="verifier" if own_tests else "tests",
        tests_target="/verifier" if own_tests else "/tests",
        tests_cwd="/verifier" if own_tests else None,
        solution="oracle" if own_solution else "solution",
        solution_target="/oracle" if own_solution else "/solution",
    )


def _front(values: Mapping[str, Any], where: str) -> _Front:
    unknown = sorted(values.keys() - ROOT_KEYS)
    if unknown:
        raise Refusal(
            Reason.TASK_UNREADABLE,
            f"task.md has root keys that the format does not know: {', '.join(unknown)}.",
            path=where,
            observed=unknown,
            required=sorted(ROOT_KEYS),
        )
    if "oracle" in values and "solution" in values:
        raise Refusal(Reason.TASK_UNREADABLE, "task.md has both oracle and its alias solution.", path=where)
    raw = copy.deepcopy(dict(values))
    try:
        own = Own.take(raw)
    except ValidationError as error:
        message = f"task.md cannot be read: {'; '.join(faults_of(error))}."
        raise Refusal(Reason.TASK_UNREADABLE, message, path=where) from error
    for theirs, ours in (("sandbox", "environment"), ("oracle", "solution")):
        if theirs in raw:
            raw[ours] = raw.pop(theirs)
    steps = raw.get("steps")
    tables = [raw, *(steps if isinstance(steps, list) else ())]
    for verifier in [table.get("verifier") for table in tables if isinstance(table, dict)]:
        for theirs, ours in (("sandbox", "environment"), ("sandbox_mode", "environment_mode")):
            if isinstance(verifier, dict) and theirs in verifier:
                verifier[ours] = verifier.pop(theirs)
    if type(raw.get("schema_version")) in (int, float):  # YAML takes 1.3 without quotes for a number
        raw["schema_version"] = str(raw["schema_version"])
    return _Front(raw, own)


def _later(own: Own, steps: list[Any]) -> Iterator[str]:
    """What no agent can be run on yet."""
    if steps:
        yield f"steps ({len(steps)})"
    if own.verifier.type != "test-script":
        yield f"verifier.type = {own.verifier.type}"
    yield from own.sandbox.later()
    if own.profiles:
        yield f"profile ({', '.join(own.profiles)})"
    yield from own.benchflow.later()


def _strategy(tree: Tree, layout: Layout) -> Iterator[str]:
    """A verifier's own document, where it wants something else than `test.sh` run."""
    path = f"{layout.tests}/verifier.md"
    text = optional_text(tree, path, TEXT_CAP)
    if text is None:
        return
    where = str(tree.root / path)
    verifier = read_document(text, where).values.get("verifier")
    strategies = verifier.get("strategies") if isinstance(verifier, dict) else None
    if not isinstance(verifier, dict) or not isinstance(strategies, dict) or not strategies:
        raise Refusal(Reason.TASK_UNREADABLE, "verifier.md names no verifier.strategies.", path=where)
    name = verifier.get("default_strategy", next(iter(strategies)))
    strategy = strategies.get(name) if isinstance(name, str) else None
    if not isinstance(strategy, dict):
        raise Refusal(Reason.TASK_UNREADABLE, "verifier.default_strategy is no strategy.", path=where, observed=name)
    if strategy.get("type") != "script" or strategy.get("command") not in _PLAIN_COMMANDS:
        yield f"{path} with a strategy other than the script {TEST_SCRIPT}"


def _unused(own: Own, document: Document, tree: Tree) -> Iterator[str]:
    """Keys and prompts that are read and have no effect."""
    keys = list(own.without_effect())
    if keys:
        yield f"these keys are read, and nothing is done with them: {', '.join(keys)}"
    files = [entry.text for entry in tree.below("prompts") if entry.path.endswith(b".md")]
    prompts = sorted(f"## {section}" for section in document.sections) + files
    if prompts and not own.scenes:
        yield f"prompts of roles and scenes that no agent is given: {', '.join(prompts)}"
