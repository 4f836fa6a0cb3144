"""Arms: each arm's differences resolved against the study, so that what really runs is written down."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import ValidationError

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.sandboxes import SandboxChoice
from proctor.study.actors import AgentDesign, ArmDesign, ArmModel, PromptDesign, SandboxDesign
from proctor.study.folders import Folders
from proctor.study.later import later_refusals
from proctor.study.problems import Loc, dotted, schema_refusals
from proctor.study.schema import AgentTable, Arm, SandboxTable, StudyFile
from proctor.study.schema.values import Table

TableT = TypeVar("TableT", bound=Table)


@dataclass(frozen=True)
class Resolved:
    """The study's own agent and world, and every arm by name."""

    agent: AgentDesign
    sandbox: SandboxDesign
    arms: Mapping[str, ArmDesign]


def resolve(file: StudyFile, raw: Mapping[str, Any], folders: Folders) -> tuple[Resolved, list[Refusal]]:
    """All arms of a study, with what they put into the sandbox read and digested.

    Args:
        file: the validated study.
        raw: the tables it was made from; an arm's `config` is merged into these and validated again.
        folders: where the named files are read.
    """
    agent, found = agent_design(file.agent, folders, ("agent",))
    sandbox, problems = sandbox_design(file.sandbox, folders, ("sandbox",))
    found += problems
    said = {
        refusal.path
        for refusal in [
            *found,
            *later_refusals(file.agent, ("agent",)),
            *later_refusals(file.sandbox, ("sandbox",)),
        ]
    }
    arms: dict[str, ArmDesign] = {}
    for name, arm in file.arms.items():
        changed, problems = _arm(name, arm, raw, folders)
        # An arm that changes a table has the table's own faults too: they are said once.
        config = f"{dotted(('arms', name, 'config'))}."
        found += [each for each in problems if (each.path or "").removeprefix(config) not in said]
        # What an arm only repeats is no difference.
        own_agent = changed.agent if changed.agent != agent else None
        arms[name] = replace(changed, agent=own_agent, sandbox=changed.sandbox if changed.sandbox != sandbox else None)
    return Resolved(agent, sandbox, arms), found


def agent_design(table: AgentTable, folders: Folders, within: Loc) -> tuple[AgentDesign, list[Refusal]]:
    """The agent with all its settings; only what the study sets is among them."""
    found: list[Refusal] = []
    settings = dict(table.settings)
    if table.name == "command" and table.command is None:
        path = dotted((*within, "command"))
        found.append(Refusal(Reason.MISSING_KEY, f"the agent `command` needs a program: `{path}`", path=path))
    files = None
    if table.files is not None:
        files, found_files = folders.folder(table.files, dotted((*within, "files")))
        found += found_files
    own: dict[str, Any] = {
        "command": list(table.command) if isinstance(table.command, tuple) else table.command,
        "files": table.files,
        "env": dict(table.env) or None,
        "version": table.version,
    }
    for key, value in own.items():
        if value is None:
            continue
        if key in settings:
            path = dotted((*within, "settings", key))
            found.append(Refusal(Reason.DUPLICATE_NAME, f"`{path}` stands beside a key of the same name", path=path))
        settings[key] = value
    design = AgentDesign(
        table.name,
        settings,
        table.timeout,
        files,
        expect_version=table.expect_version,
        idle_timeout_sec=table.idle_timeout,
    )
    return design, found


def sandbox_design(table: SandboxTable, folders: Folders, within: Loc) -> tuple[SandboxDesign, list[Refusal]]:
    """The world; root folders must be there."""
    found: list[Refusal] = []
    if table.rootfs is not None:
        found += folders.require_folder(table.rootfs, dotted((*within, "rootfs")))
    for image, root in table.substitute.items() if table.kind is not SandboxChoice.DOCKER else ():
        found += folders.require_folder(root, dotted((*within, "substitute", image)))
    cpus = table.cpus
    return (
        SandboxDesign(
            kind=table.kind.value,
            network=table.network.value,
            cpus=int(cpus) if cpus is not None and cpus.is_integer() else cpus,
            memory_bytes=table.memory,
            storage_bytes=table.storage,
            pids=table.pids,
            rootfs=table.rootfs,
            substitute=dict(table.substitute),
        ),
        found,
    )


def _arm(name: str, arm: Arm, raw: Mapping[str, Any], folders: Folders) -> tuple[ArmDesign, list[Refusal]]:
    within: Loc = ("arms", name)
    prompt, found = _prompt(arm, folders, within)
    skills, problems = folders.skills(arm.skills, dotted((*within, "skills"))) if arm.skills is not None else ((), [])
    found += problems
    agent, sandbox = None, None
    config = {key: value for key in ("agent", "sandbox", "metadata") if (value := getattr(arm.config, key))}
    if "name" in arm.config.agent:
        path = dotted((*within, "config", "agent", "name"))
        what = "an arm cannot be another agent: that is no difference in one thing"
        found.append(Refusal(Reason.INVALID_VALUE, what, path=path, observed=repr(arm.config.agent["name"])[:80]))
    elif arm.config.agent:
        place: Loc = (*within, "config", "agent")
        table, problems = _changed(AgentTable, raw.get("agent", {}), arm.config.agent, place)
        found += problems
        if table is not None:
            agent, problems = agent_design(table, folders, place)
            found += problems
    if arm.config.sandbox:
        place = (*within, "config", "sandbox")
        world, problems = _changed(SandboxTable, raw.get("sandbox", {}), arm.config.sandbox, place)
        found += problems
        if world is not None and world.kind != raw.get("sandbox", {}).get("kind", SandboxChoice.AUTO):
            path = dotted((*place, "kind"))
            what = "an arm cannot have another kind of sandbox: its worlds are compared with those of the other arms"
            found.append(Refusal(Reason.INVALID_VALUE, what, path=path, observed=world.kind.value))
        elif world is not None:
            sandbox, problems = sandbox_design(world, folders, place)
            found += problems
    model = None
    if arm.model is not None and (arm.model.effort or arm.model.max_output_tokens):
        model = ArmModel(arm.model.effort, arm.model.max_output_tokens)
    return ArmDesign(name, prompt, skills, config, agent, sandbox, arm.tools, model), found


def _prompt(arm: Arm, folders: Folders, within: Loc) -> tuple[PromptDesign | None, list[Refusal]]:
    if arm.prompt is None:
        return None, []
    path = dotted((*within, "prompt"))
    if (arm.prompt.text is None) == (arm.prompt.file is None):
        return None, [Refusal(Reason.INVALID_VALUE, f"`{path}` needs one of `text` and `file`", path=path)]
    if arm.prompt.text is not None:
        return PromptDesign(arm.prompt.text), []
    text, found = folders.text(str(arm.prompt.file), f"{path}.file")
    return (None if text is None else PromptDesign(text, arm.prompt.file)), found


def _changed(
    kind: type[TableT], raw: Mapping[str, Any], config: Mapping[str, Any], within: Loc
) -> tuple[TableT | None, list[Refusal]]:
    """The study's table with an arm's changes, validated as a whole."""
    try:
        table = kind.model_validate(merged(raw, config))
    except ValidationError as error:
        return None, schema_refusals(error, kind, within)
    return table, later_refusals(table, within)


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` on `base`: tables are merged key by key, everything else is replaced."""
    result = copy.deepcopy(dict(base))
    for key, value in over.items():
        below = result.get(key)
        both_tables = isinstance(below, dict) and isinstance(value, Mapping)
        result[key] = merged(below, value) if both_tables and below is not None else copy.deepcopy(value)
    return result
