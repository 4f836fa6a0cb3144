"""Gathers the facts of an invocation: what it means, and the machine. Read-only; everything is read once.

Nothing here decides. A problem that is met is a fact for a guard, and what depends on it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from proctor.admission.agents import make_agents, with_programs
from proctor.admission.anchors import anchor_notices, look_at
from proctor.admission.calling import calling_facts, named_variables
from proctor.admission.facts import Component, Facts, FolderFacts, Request
from proctor.admission.money import money_facts
from proctor.admission.notices import notices
from proctor.admission.plans import plan_tasks
from proctor.admission.provenance import git_facts, versions
from proctor.admission.ready import Ready
from proctor.admission.selecting import Meant, Problems, freeze_meant, load, meant_by
from proctor.admission.worlds import Weigh, World, choose, dressed, find_images, sandbox_record
from proctor.agents.base import Agent
from proctor.budget.table import table_record
from proctor.core.tokens import Probe
from proctor.evidence.anchors.places import places
from proctor.sandbox.base import Availability, Image, SandboxKind
from proctor.study import Design, LoadedStudy, ModelDesign, diff_designs
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


def gather(request: Request, folder: FolderFacts, frozen: Design | None, probe: Probe) -> Gathered:
    """Look at everything that the guards want to know. `frozen` is the run's design, for a resume."""
    problems = Problems()
    facts = Facts(request, folder)
    probes: dict[str, Any] = {"versions": versions()}
    loaded = load(request, problems)
    if loaded is not None:
        git = git_facts(loaded.folder.resolve(), _runs(request, loaded), probe)
        facts, probes["git"] = replace(facts, git=git), git.as_record()
    if loaded is None or loaded.file is None or loaded.refusals:
        return Gathered(problems.among(facts), probes)
    meant = meant_by(request, loaded, loaded.file, problems)
    design = freeze_meant(meant, frozen, problems)
    world = choose(meant.file.sandbox.kind, frozen, _weigh(meant, design), probe)
    images, missing = find_images(world, frozen, meant.file.tasks.pull, probe)
    problems.obstacles = [*world.obstacles, *missing]
    facts = _with_machine(_with_what_is_meant(facts, meant), meant, world.available, probe)
    probes |= _probes(meant, world, images, facts)
    if design is None:
        return Gathered(problems.among(facts), probes, kind=world.kind)
    ready = _ready(design, frozen, meant, world, images, problems)
    facts = replace(facts, **_changes(frozen, ready.design))
    if len(world.plans) == len(ready.tasks) * len(design.arms):
        probes["tasks"] = ready.tasks_record()
        probes["notices"] = [*notices(ready, world.available), *anchor_notices(facts.anchors)]
    return Gathered(problems.among(facts), probes, ready.design, ready, world.kind)


def _with_what_is_meant(facts: Facts, meant: Meant) -> Facts:
    """What is selected, and what reading it found."""
    calling, units = meant.calling, len(meant.tasks) + len(meant.rows)
    facts = replace(
        facts,
        selected=units,
        models=calling.model_refusals,
        questions=calling.row_refusals,
        functions=calling.function_refusals,
        keys=calling.key_facts,
    )
    if meant.table is None:
        return facts
    if (able := meant.able) is not None:
        asked = calling_facts(meant.file, meant.table, len(meant.rows), calling.models, able)
        facts = replace(facts, calling=asked)
    return replace(facts, money=money_facts(meant.file, meant.stage, list(calling.models.values()), units))


def _with_machine(facts: Facts, meant: Meant, available: Availability, probe: Probe) -> Facts:
    """What there is of what the study asks for."""
    own = meant.file.anchor
    if own is not None:
        facts = replace(facts, anchors=look_at(places(own.git, own.drop, meant.base), own.required, probe))
    if not meant.tasks:
        return facts
    network, components = meant.file.sandbox.network.value, _components(available)
    return replace(facts, sandbox=available, network=network, components=components)


def _probes(meant: Meant, world: World, images: Mapping[str, Image], facts: Facts) -> dict[str, Any]:
    """For the manifest."""
    models = meant.calling.models
    probes: dict[str, Any] = {
        "sandbox": sandbox_record(world.available),
        "images": {name: image.id or image.pull for name, image in images.items()},
    }
    if meant.table is not None:
        probes["models"] = {name: _model_record(model) for name, model in models.items()}
    if models:
        probes["prices"] = table_record()
    if meant.file.anchor is not None:
        probes["anchors"] = [asdict(each) for each in facts.anchors]
    return probes


def _ready(
    design: Design, frozen: Design | None, meant: Meant, world: World, images: Mapping[str, Image], problems: Problems
) -> Ready:
    """The design with the programs and images that were found, and all that it names."""
    agents: dict[str, Agent] = {}
    if not problems.agents:
        agents, problems.agents, problems.skews = make_agents(design, frozen, meant.loaded.folder, meant.handed)
    return Ready(
        design=with_programs(dressed(design, world, images), agents),
        base=meant.base,
        tasks=_selected(meant, design),
        plans=world.plans,
        images=images,
        agents=agents,
        hidden=_hidden(meant.request, meant.loaded),
        rows=meant.calling.rows,
        functions=meant.calling.functions,
        keys=meant.calling.keys,
        keep=meant.request.keep,
        handed=meant.handed,
    )


def _weigh(meant: Meant, design: Design | None) -> Weigh:
    """How the selected tasks would run in a kind of sandbox."""
    if design is None:
        return lambda available: ({}, [])
    tasks, able = _selected(meant, design), meant.able
    withheld = named_variables(meant.calling.models.values())
    return lambda available: plan_tasks(design, tasks, meant.loaded.folder, available, withheld, able)


def _selected(meant: Meant, design: Design) -> dict[str, Task]:
    """The task folders of the design, which the command line may have narrowed."""
    return {task.name: meant.tasks[task.name] for task in design.tasks if task.name in meant.tasks}


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
