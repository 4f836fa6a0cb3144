"""What an invocation means: its study, the stage, the selected tasks and rows, and who works on them, read once.

Nothing here decides. A problem that is met is a fact for a guard, and what depends on it is left out.
"""

from __future__ import annotations

import fnmatch
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from proctor.admission.agents import code_of, handed_over
from proctor.admission.calling import Calling, gather_calling
from proctor.admission.facts import Facts, Request
from proctor.agents.base import Abilities, agent_abilities
from proctor.agents.handed import HandedOver
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.study import Design, FrozenTask, LoadedStudy, Parts, Selection, freeze, read_study, single_task_study
from proctor.study.design import QUESTION
from proctor.study.schema import Stage, StudyFile, TasksTable
from proctor.tasks.discover import discover
from proctor.tasks.questions import QuestionSet
from proctor.tasks.reading import read_task
from proctor.tasks.selection import duplicates, select
from proctor.tasks.task import Task


@dataclass
class Problems:
    """What was met so far; each is a fact of that name."""

    study: list[Refusal] = field(default_factory=list)
    tasks: list[Refusal] = field(default_factory=list)
    agents: list[Refusal] = field(default_factory=list)
    skews: list[Refusal] = field(default_factory=list)
    obstacles: list[Refusal] = field(default_factory=list)

    def among(self, facts: Facts) -> Facts:
        """The facts with them."""
        return replace(
            facts,
            study=tuple(self.study),
            tasks=tuple(self.tasks),
            agents=tuple(self.agents),
            skews=tuple(self.skews),
            obstacles=tuple(self.obstacles),
        )


@dataclass(frozen=True)
class Meant:
    """What is selected of a study that could be read: `table` is that of the stage, None where it has none.

    `base` is the study's folder as the paths of tasks are, so that a link to the study changes no design; `tasks` are
    the folders by name, `rows` the ids of question rows, `handed` the agent where it was handed over in Python.
    """

    request: Request
    loaded: LoadedStudy
    file: StudyFile
    base: Path
    stage: str
    table: Stage | None
    calling: Calling
    tasks: dict[str, Task]
    rows: tuple[str, ...]
    handed: HandedOver | None

    @property
    def able(self) -> Abilities | None:
        """What its agent can do; None where no agent of that name is installed, which another guard says."""
        return agent_abilities(self.file.agent.name, None if self.handed is None else self.handed.agent_class)


def load(request: Request, problems: Problems) -> LoadedStudy | None:
    """The study that is asked for."""
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
        problems.study.append(_where_now(refusal) if request.command == "resume" else refusal)
        return None
    problems.study.extend(loaded.refusals)
    return loaded


def _where_now(refusal: Refusal) -> Refusal:
    """Of a run whose study is not where it was: how to say where it is."""
    if refusal.reason is not Reason.STUDY_NOT_FOUND:
        return refusal
    return Refusal(
        refusal.reason,
        f"{refusal.message}, where the run says that its study was",
        path=refusal.path,
        remedy="Name the study that the run is of with --study, if it or the run folder was moved.",
    )


def meant_by(request: Request, loaded: LoadedStudy, file: StudyFile, problems: Problems) -> Meant:
    """What the request selects of the study."""
    stage = request.stage or next(iter(file.stages))
    table = file.stages.get(stage)
    calling = Calling() if table is None else gather_calling(loaded, file, table, request)
    tasks, rows = _tasks(loaded.folder, file, table, calling.rows, problems)
    handed, problems.agents = handed_over(file.agent.name, request, len(tasks))
    return Meant(request, loaded, file, loaded.folder.resolve(), stage, table, calling, tasks, rows, handed)


def freeze_meant(meant: Meant, began: Design | None, problems: Problems) -> Design | None:
    """The design of what is meant, None where nothing is; `began` is the run's own, for a resume."""
    calling = meant.calling
    frozen = [
        FrozenTask(task.name, task.digest, task.format, Path(os.path.relpath(task.path, meant.base)).as_posix())
        for task in meant.tasks.values()
    ]
    if calling.rows is not None and calling.questions is not None:
        path = calling.questions.path
        frozen += [
            FrozenTask(row, calling.rows.digest(row), QUESTION, path, calling.rows.cluster(row)) for row in meant.rows
        ]
    if not frozen:
        return None
    tools, questions = (calling.tools, calling.questions) if meant.rows else ((), None)
    parts = Parts(frozen, calling.models, tools, questions, code_of(meant.handed, began))
    request = meant.request
    design, refusals = freeze(meant.loaded, meant.stage, parts, Selection(request.limit, request.arms, request.models))
    for refusal in refusals:
        (problems.tasks if refusal.reason is Reason.TASK_DUPLICATE else problems.study).append(refusal)
    return design


def _tasks(
    folder: Path, file: StudyFile, own: Stage | None, rows: QuestionSet | None, problems: Problems
) -> tuple[dict[str, Task], tuple[str, ...]]:
    """The selected task folders by name, and the ids of the selected question rows."""
    table = file.tasks
    tasks: list[Task] = []
    for candidate in discover([folder / table.path]) if table.path is not None else ():
        try:
            if candidate.refusal is not None:
                raise candidate.refusal
            tasks.append(read_task(candidate.path))
        except Refusal as refusal:
            if _may_be_meant(candidate.path.name, table):
                problems.tasks.append(refusal)
    try:
        everything = [*tasks, *(rows or ())]
        chosen = select(everything, include=table.include, ids=table.ids, where=table.where, slice_=table.slice)
    except Refusal as refusal:
        problems.tasks.append(refusal)
        return {}, ()
    if own is not None:
        chosen = select(chosen, include=own.include or ("*",), where=own.where)
    problems.tasks.extend(duplicates(chosen))
    folders = {each.name: each for each in chosen if isinstance(each, Task)}
    return folders, tuple(each.name for each in chosen if not isinstance(each, Task))


def _may_be_meant(name: str, table: TasksTable) -> bool:
    """Whether the selection means a folder that could not be read, which has no other name than the folder's."""
    if table.ids is not None and name not in table.ids:
        return False
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in table.include)
