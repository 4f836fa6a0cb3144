"""One trial's attempts, from their journal entries: for `show` and for finding what a trial left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proctor.core.ids import trial_folder
from proctor.core.outcomes import GradeState
from proctor.core.reasons import Reason
from proctor.evidence.entries import Entry
from proctor.evidence.kinds import Kind
from proctor.evidence.runfolder import RunFolder
from proctor.report.reading import Row, Tries
from proctor.study import Design, plan
from proctor.study.design import read_design


@dataclass
class AttemptTold:
    """One attempt: the bodies of its entries by kind, and the wall clock of its first and last entry."""

    attempt: str
    since: str
    until: str
    said: dict[Kind, list[Mapping[str, Any]]] = field(default_factory=dict)

    def last(self, kind: Kind) -> Mapping[str, Any] | None:
        """The body of its last entry of that kind."""
        bodies = self.said.get(kind)
        return bodies[-1] if bodies else None

    @property
    def folder(self) -> str:
        """Its folder, relative to the run."""
        admitted = self.last(Kind.ATTEMPT_ADMITTED)
        return str(admitted["folder"]) if admitted else ""

    def files(self) -> list[dict[str, Any]]:
        """Its files as the journal names them: later entries win, sorted by path."""
        named = {file["path"]: dict(file) for body in self.said.get(Kind.ATTEMPT_FILES, ()) for file in body["files"]}
        return [named[path] for path in sorted(named)]


@dataclass
class AttemptsOf:
    """Collects the attempts of one trial while a journal is read."""

    trial: str
    found: dict[str, AttemptTold] = field(default_factory=dict)

    def take(self, entry: Entry) -> None:
        """Look at the next entry."""
        attempt = entry.body.get("attempt")
        if not isinstance(entry.kind, Kind) or not isinstance(attempt, str) or entry.kind is Kind.TRIAL_FINAL:
            return
        if attempt.partition("/")[0] != self.trial:
            return
        told = self.found.setdefault(attempt, AttemptTold(attempt, entry.time, entry.time))
        told.until = entry.time
        told.said.setdefault(entry.kind, []).append(entry.body)


def planned_rows(design: Design) -> list[Row]:
    """A row for each trial of a design, as if nothing had run: `matching` finds by the same words in it."""
    folders = (
        (trial, trial_folder(trial.task, trial.model, trial.arm, trial.epoch)) for trial in plan(design).trials()
    )
    return [
        Row(trial, GradeState.UNGRADED.value, Reason.NOT_RUN.id, None, False, Tries(folder=f"trials/{name}/0"))
        for trial, name in folders
    ]


def is_made_up(run: RunFolder, model: str | None) -> bool:
    """Whether the run's design says that a model of it is made up."""
    return model is not None and model in read_design(run.design_path).synthetic


def matching(rows: Sequence[Row], text: str) -> list[Row]:
    """The trials that a person may mean: by id, by folder, by its parts as `task/arm/epoch`, or by a prefix of the id.

    Of a task's name its last parts are enough. The first of these ways that finds any counts; more than one trial in
    the answer is an ambiguity.
    """
    wanted = text.strip().replace(" · ", "/").strip("/")
    parts = wanted.split("/")
    by_id = [row for row in rows if row.trial.id == parts[0]]
    by_folder = [row for row in rows if row.tries.folder and row.tries.folder.split("/")[1] in parts]
    by_parts = [row for row in rows if wanted in _names(row, row.trial.task)]
    by_end = [row for row in rows if any(wanted in _names(row, end) for end in _ends(row.trial.task))]
    by_prefix = [row for row in rows if wanted and row.trial.id.startswith(wanted.lower())]
    return by_id or by_folder or by_parts or by_end or by_prefix


def short_id(rows: Sequence[Row], row: Row) -> str:
    """The shortest beginning of the trial's id, from 8 digits, that no other trial has: `matching` takes it back."""
    own = row.trial.id
    others = [other.trial.id for other in rows if other is not row]
    return next((own[:n] for n in range(8, len(own)) if not any(other.startswith(own[:n]) for other in others)), own)


def _ends(task: str) -> list[str]:
    """`a/b/c` → `b/c`, `c`."""
    parts = task.split("/")
    return ["/".join(parts[at:]) for at in range(1, len(parts))]


def _names(row: Row, task: str) -> set[str]:
    """What the trial may be called where its task is called so."""
    trial = row.trial
    names = {task}
    arms = [f"{task}/{trial.arm}"]
    if trial.model is not None:
        names.add(f"{task}/{trial.model}")
        arms.append(f"{task}/{trial.model}/{trial.arm}")
    return names | set(arms) | {f"{arm}/{trial.epoch}" for arm in arms}
