"""Everything that the guards look at, frozen: gathered before, judged without touching the world."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proctor.admission.provenance import GitFacts
from proctor.agents.base import Abilities
from proctor.budget.rules import Frame
from proctor.core.money import ZERO, Usd
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Availability
from proctor.study.actors import ModelDesign


@dataclass(frozen=True)
class Request:
    """An invocation as declared. `study` is a study file or folder; `task` is the short form without one.

    `settings`, `sandbox` and `grading` are further keys of their tables for the short form. `out` is the run folder.
    `tables` are those of a study that no file holds, whose folder `study` is then. `agents` are classes handed over in
    Python, by name; what they are stands in the design.
    `priced_on` is the day (`YYYY-MM-DD`) whose prices hold: that on which the run was first asked for.
    """

    command: str
    out: Path
    study: Path | None = None
    task: Path | None = None
    agent: str | None = None
    stage: str | None = None
    limit: int | None = None
    models: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    jobs: int | None = None
    waive: tuple[str, ...] = ()
    keep: bool = False
    prepare_only: bool = False
    priced_on: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    sandbox: Mapping[str, Any] = field(default_factory=dict)
    grading: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Any] | None = None
    agents: Mapping[str, type] = field(default_factory=dict)

    @property
    def source(self) -> Path | None:
        """The study or the task."""
        return self.study or self.task

    def as_record(self) -> dict[str, Any]:
        """For the manifest: the declared selection, with paths relative to the run folder."""
        own = {} if self.tables is None else {"tables": dict(self.tables)}
        return {
            **own,
            "study": self._relative(self.study),
            "task": self._relative(self.task),
            "agent": self.agent,
            "stage": self.stage,
            "limit": self.limit,
            "models": list(self.models),
            "arms": list(self.arms),
            "jobs": self.jobs,
            "waive": list(self.waive),
            "keep": self.keep,
            "prepare_only": self.prepare_only,
            "priced_on": self.priced_on,
            "settings": dict(self.settings),
            "sandbox": dict(self.sandbox),
            "grading": dict(self.grading),
        }

    def _relative(self, path: Path | None) -> str | None:
        if path is None:
            return None
        # the folder's own place and not a link's: whoever comes by another way finds the same; what a last link
        # means is left to it
        whole = path.absolute()
        placed = Path(os.path.realpath(whole.parent), whole.name)
        return Path(os.path.relpath(placed, os.path.realpath(self.out))).as_posix()

    def _placed(self, recorded: Any) -> Path | None:
        """The path that `_relative` recorded."""
        return None if recorded is None else Path(os.path.normpath(Path(os.path.realpath(self.out), str(recorded))))

    def resumed(self, record: Mapping[str, Any]) -> Request:
        """This invocation with the selection that an earlier one of the same run declared."""
        return replace(
            self,
            study=self.study or self._placed(record.get("study")),
            task=None if self.study else self._placed(record.get("task")),
            tables=None if self.study else record.get("tables"),
            agent=record.get("agent"),
            stage=record.get("stage"),
            limit=record.get("limit"),
            models=tuple(record.get("models", ())),
            arms=tuple(record.get("arms", ())),
            settings=dict(record.get("settings", {})),
            sandbox=dict(record.get("sandbox", {})),
            grading=dict(record.get("grading", {})),
            keep=bool(record.get("keep")),
            priced_on=record.get("priced_on"),
        )


@dataclass(frozen=True)
class FolderFacts:
    """The run folder before this invocation. `complete` is None where the journal was not read.

    `charged` is what all exchanges of the run came to; `ended` says that its last process wrote its end.
    """

    admitted: bool = False
    locked: Refusal | None = None
    evidence: Refusal | None = None
    complete: bool | None = None
    charged: Usd = ZERO
    ended: bool = False


@dataclass(frozen=True)
class Component:
    """Something that the design depends on: its version here, and the range that this proctor was made for."""

    name: str
    version: str | None
    at_least: tuple[int, ...]
    below: tuple[int, ...]


@dataclass(frozen=True)
class KeyFacts:
    """The key of one selected model: the variable that should hold it, and whether it holds anything.

    A model that needs no key (practice; a server on this machine for which no variable is named) has none of these.
    """

    model: str
    variable: str
    there: bool


@dataclass(frozen=True)
class AnchorFacts:
    """One anchor of the study: its kind, its text, whether the study requires it, and why it cannot be used."""

    anchor: str
    location: str
    required: bool
    why: str | None


@dataclass(frozen=True)
class CallingFacts:
    """What the stage asks of its agent: the models that it names, the rows selected, and what the agent can do.

    Of those models that could be resolved, by name: `apis` are their wire formats, `priced` the kinds of tokens that
    their prices name.
    """

    agent: str
    able: Abilities
    models: tuple[str, ...]
    rows: int
    apis: Mapping[str, str] = field(default_factory=dict)
    priced: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class MoneyFacts:
    """The money of a stage as the study says it, of all its models, whatever a selection leaves out.

    `names` are the stage's models, `models` those of them that could be resolved, as they are called. `blocks` (of
    each model) and `arms` count the whole stage. An amount that the study does not give is absent from its mapping.
    """

    stage: str
    names: tuple[str, ...]
    models: tuple[ModelDesign, ...]
    budget: Frame | None
    expected_costs: Mapping[str, Usd]
    caps: Mapping[str, Usd]
    reserves: Mapping[str, Usd]
    blocks: int
    arms: int
    lanes: int
    prior_spend: Usd | None = None


@dataclass(frozen=True)
class Facts:
    """Facts of one invocation.

    `study`, `tasks`, `agents`, `models`, `questions` and `functions` (tools and scorers in Python) hold the problems
    that reading them found; `skews` says which agents are not of the version that the study expects; `obstacles` what
    stops a selected task on the sandbox that is there; `changed` the frozen fields that differ on a resume: (field,
    was, is). `agreed` is None where nobody had to agree to what it can cost.
    """

    request: Request
    folder: FolderFacts = FolderFacts()
    study: tuple[Refusal, ...] = ()
    tasks: tuple[Refusal, ...] = ()
    agents: tuple[Refusal, ...] = ()
    skews: tuple[Refusal, ...] = ()
    models: tuple[Refusal, ...] = ()
    questions: tuple[Refusal, ...] = ()
    functions: tuple[Refusal, ...] = ()
    obstacles: tuple[Refusal, ...] = ()
    keys: tuple[KeyFacts, ...] = ()
    anchors: tuple[AnchorFacts, ...] = ()
    calling: CallingFacts | None = None
    money: MoneyFacts | None = None
    agreed: bool | None = None
    selected: int | None = None
    sandbox: Availability | None = None
    network: str | None = None
    git: GitFacts | None = None
    components: tuple[Component, ...] = ()
    changed: tuple[tuple[str, Any, Any], ...] = ()
    changed_tasks: tuple[str, ...] = field(default=())
