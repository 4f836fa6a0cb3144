"""Gathers the facts of an invocation: the study, its tasks, the machine. Read-only; everything is read once.

Nothing here decides. A problem that is met is a fact for a guard, and what depends on it is left out.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from proctor.admission.agents import code_of, handed_over, make_agents, with_programs
from proctor.admission.anchors import anchor_notices, look_at
from proctor.admission.calling import Calling, calling_facts, gather_calling, named_variables
from proctor.admission.facts import Component, Facts, FolderFacts, Request
from proctor.admission.money import money_facts
from proctor.admission.notices import notices
from proctor.admission.plans import plan_tasks
from proctor.admission.provenance import git_facts, versions
from proctor.admission.ready import Ready
from proctor.admission.worlds import Weigh, choose, dressed, find_images, sandbox_record
from proctor.agents.base import Agent
from proctor.budget.table import table_record
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import Probe
from proctor.evidence.anchors.places import places
from proctor.sandbox.base import Availability, SandboxKind
from proctor.study import (
    Design,
    FrozenTask,
    LoadedStudy,
    ModelDesign,
    Parts,
    Selection,
    diff_designs,
    freeze,
    read_study,
    single_task_study,
)
from proctor.study.design import QUESTION, FunctionDesign
from proctor.study.schema import TasksTable
from proctor.tasks.discover import discover
from proctor.tasks.questions import QuestionSet
from proctor.tasks.reading import read_task
from proctor.tasks.selection import duplicates, select
from proctor.tasks.task import Task

RUNS = "runs"
_TASK_DIGEST = re.compile(r"tasks\[(.*)\]\.sha256")


@dataclass(frozen=True)
class Gathered:
    """Facts for the guards, the probes for the manifest, and what is ready if the guards agree."""

    facts: Facts
    probes: Mapping[str, Any]
    design: Design | None = None
    ready: Ready | None = None
    kind: SandboxKind | None = None


@dataclass
class _Found:
    """What was found so far."""

    study: list[Refusal] = field(default_factory=list)
    tasks: list[Refusal] = field(default_factory=list)
    agents: list[Refusal] = field(default_factory=list)
    skews: list[Refusal] = field(default_factory=list)
    obstacles: list[Refusal] = field(default_factory=list)


def gather(request: Request, folder: FolderFacts, frozen: Design | None, probe: Probe) -> Gathered:
    """Look at everything that the guards want to know. `frozen` is the run's design, for a resume."""
    found = _Found()
    facts = Facts(request, folder)
    probes: dict[str, Any] = {"versions": versions()}
    loaded = _load(request, found)
    if loaded is None:
        return Gathered(replace(facts, study=tuple(found.study)), probes)
    git = git_facts(loaded.folder.resolve(), _runs(request, loaded), probe)
    probes["git"] = git.as_record()
    facts = replace(facts, git=git)
    if loaded.file is None or loaded.refusals:
        return Gathered(replace(facts, study=tuple(found.study)), probes)
    stage = request.stage or next(iter(loaded.file.stages))
    table = loaded.file.stages.get(stage)
    calling = Calling() if table is None else gather_calling(loaded, loaded.file, table, request)
    tasks, rows = _tasks(loaded, stage, calling.rows, found)
    handed, found.agents = handed_over(loaded.file.agent.name, request, len(tasks))
    design = _freeze(loaded, stage, tasks, rows, calling, code_of(handed, frozen), request, found)
    withheld = named_variables(calling.models.values())
    world = choose(loaded.file.sandbox.kind, frozen, _weigh(loaded.folder, design, tasks, withheld), probe)
    kind, available = world.kind, world.available
    images, missing = find_images(world, frozen, loaded.file.tasks.pull, probe)
    found.obstacles = [*world.obstacles, *missing]
    probes["sandbox"] = sandbox_record(available)
    probes["images"] = {name: image.id or image.pull for name, image in images.items()}
    facts = replace(
        facts,
        selected=len(tasks) + len(rows),
        models=calling.model_refusals,
        questions=calling.row_refusals,
        functions=calling.function_refusals,
        keys=calling.key_facts,
    )
    if tasks:
        facts = replace(
            facts, sandbox=available, network=loaded.file.sandbox.network.value, components=_components(available)
        )
    agent_class = None if handed is None else handed.agent_class
    if table is not None:
        probes["models"] = {name: _model_record(model) for name, model in calling.models.items()}
        if calling.models:
            probes["prices"] = table_record()
        facts = replace(
            facts,
            calling=calling_facts(loaded.file, table, len(rows), calling.models, agent_class),
            money=money_facts(loaded.file, stage, list(calling.models.values()), len(tasks) + len(rows)),
        )
    if loaded.file.anchor is not None:
        own = loaded.file.anchor
        anchors = look_at(places(own.git, own.drop, loaded.folder.resolve()), own.required, probe)
        facts = replace(facts, anchors=anchors)
        probes["anchors"] = [asdict(each) for each in anchors]
    ready = None
    if design is not None:
        agents: dict[str, Agent] = {}
        if not found.agents:
            agents, found.agents, found.skews = make_agents(design, frozen, loaded.folder, handed)
        design = with_programs(dressed(design, world, images), agents)
        facts = replace(facts, **_changes(frozen, design))
        selected = {task.name: tasks[task.name] for task in design.tasks if task.name in tasks}
        ready = Ready(
            design=design,
            base=loaded.folder.resolve(),
            tasks=selected,
            plans=world.plans,
            images=images,
            agents=agents,
            hidden=_hidden(request, loaded),
            rows=calling.rows,
            functions=calling.functions,
            keys=calling.keys,
            keep=request.keep,
            handed=handed,
        )
        if len(world.plans) == len(selected) * len(design.arms):
            probes["tasks"] = ready.tasks_record()
            probes["notices"] = [*notices(ready, available), *anchor_notices(facts.anchors)]
    facts = replace(
        facts,
        study=tuple(found.study),
        tasks=tuple(found.tasks),
        agents=tuple(found.agents),
        skews=tuple(found.skews),
        obstacles=tuple(found.obstacles),
    )
    return Gathered(facts, probes, design, ready, kind)


def _weigh(base: Path, design: Design | None, tasks: Mapping[str, Task], withheld: frozenset[str]) -> Weigh:
    """How the selected tasks would run in a kind of sandbox."""
    if design is None:
        return lambda available: ({}, [])
    selected = {task.name: tasks[task.name] for task in design.tasks if task.name in tasks}
    return lambda available: plan_tasks(design, selected, base, available, withheld)


def _load(request: Request, found: _Found) -> LoadedStudy | None:
    try:
        if request.study is not None:
            loaded = read_study(request.study, request.tables)
        elif request.task is not None:
            loaded = single_task_study(
                request.task, request.agent or "oracle", request.settings, request.sandbox, request.grading
            )
        else:
            raise Refusal(Reason.STUDY_NOT_FOUND, "the run does not say which study it is of")
    except Refusal as refusal:
        found.study.append(refusal)
        return None
    found.study.extend(loaded.refusals)
    return loaded


def _tasks(
    loaded: LoadedStudy, stage: str, rows: QuestionSet | None, found: _Found
) -> tuple[dict[str, Task], tuple[str, ...]]:
    """The selected task folders by name, and the ids of the selected question rows."""
    file = loaded.file
    assert file is not None
    table, own = file.tasks, file.stages.get(stage)
    tasks: list[Task] = []
    for candidate in discover([loaded.folder / table.path]) if table.path is not None else ():
        try:
            if candidate.refusal is not None:
                raise candidate.refusal
            tasks.append(read_task(candidate.path))
        except Refusal as refusal:
            if _may_be_meant(candidate.path.name, table):
                found.tasks.append(refusal)
    try:
        everything = [*tasks, *(rows or ())]
        chosen = select(everything, include=table.include, ids=table.ids, where=table.where, slice_=table.slice)
    except Refusal as refusal:
        found.tasks.append(refusal)
        return {}, ()
    if own is not None:
        chosen = select(chosen, include=own.include or ("*",), where=own.where)
    found.tasks.extend(duplicates(chosen))
    folders = {each.name: each for each in chosen if isinstance(each, Task)}
    return folders, tuple(each.name for each in chosen if not isinstance(each, Task))


def _may_be_meant(name: str, table: TasksTable) -> bool:
    """Whether the selection means a folder that could not be read, which has no other name than the folder's."""
    if table.ids is not None and name not in table.ids:
        return False
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in table.include)


def _freeze(
    loaded: LoadedStudy,
    stage: str,
    tasks: Mapping[str, Task],
    rows: Sequence[str],
    calling: Calling,
    code: FunctionDesign | None,
    request: Request,
    found: _Found,
) -> Design | None:
    base = loaded.folder.resolve()  # as the paths of tasks are: a link to the study changes no design
    frozen = [
        FrozenTask(task.name, task.digest, task.format, Path(os.path.relpath(task.path, base)).as_posix())
        for task in tasks.values()
    ]
    if calling.rows is not None and calling.questions is not None:
        path = calling.questions.path
        frozen += [FrozenTask(row, calling.rows.digest(row), QUESTION, path, calling.rows.cluster(row)) for row in rows]
    if not frozen:
        return None
    parts = Parts(frozen, calling.models, calling.tools if rows else (), calling.questions if rows else None, code)
    design, refusals = freeze(loaded, stage, parts, Selection(request.limit, request.arms, request.models))
    for refusal in refusals:
        (found.tasks if refusal.reason is Reason.TASK_DUPLICATE else found.study).append(refusal)
    return design


def _changes(frozen: Design | None, design: Design) -> dict[str, Any]:
    if frozen is None:
        return {}
    changes = [(each.field, each.was, each.now) for each in diff_designs(frozen, design)]
    matches = [_TASK_DIGEST.fullmatch(name) for name, _, _ in changes]
    return {
        "changed": tuple(change for change, match in zip(changes, matches, strict=True) if match is None),
        "changed_tasks": tuple(match[1] for match in matches if match is not None),
    }


def _hidden(request: Request, loaded: LoadedStudy) -> tuple[Path, ...]:
    home = Path.home()
    paths = (request.out.absolute(), loaded.folder.absolute(), Path(__file__).resolve().parents[1], home)
    return tuple(dict.fromkeys(path.resolve() for path in paths if path.exists()))


def _runs(request: Request, loaded: LoadedStudy) -> list[Path]:
    """Where runs lie: they are outcomes of the repository, and do not make it dirty."""
    out = request.out.resolve()
    above = [parent for parent in out.parents if parent.name == RUNS]
    return [out, loaded.folder.resolve() / RUNS, *above[:1]]


def _components(available: Availability) -> tuple[Component, ...]:
    bwrap = available.facts.get("bwrap_version")
    return (Component("bubblewrap", bwrap, (0, 11), (1,)),) if isinstance(bwrap, str) else ()


def _model_record(model: ModelDesign) -> dict[str, Any]:
    """A model as it was resolved; the rest stands in the design."""
    return {"provider": model.provider, "model": model.model, "api": model.api, "base_url": model.base_url}
