"""A task's self-check: its own solution must pass, and doing nothing must fail. Each is an ordinary admitted run."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proctor.core.exits import Exit
from proctor.core.outcomes import GradeState
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.runfolder import RunFolder
from proctor.report.reading import Row, read_run
from proctor.report.tailing import VERIFIER_OUTPUT, last_line
from proctor.report.text import short_path
from proctor.report.trial import short_id
from proctor.runner.launch import Launch, free_folder, launch, runs_folder
from proctor.tasks.discover import Candidate, Found, discover
from proctor.tasks.reading import read_task
from proctor.tasks.task import Task

_WANTED = {"oracle": "pass", "nop": "fail"}
_WHO = {"oracle": "its own solution", "nop": "doing nothing"}
_WRONG = {"oracle": Reason.TASK_SOLUTION_FAILS, "nop": Reason.TASK_NOP_PASSES}


@dataclass(frozen=True)
class TaskVerdict:
    """What a path is, and whether it is a task that can be trusted.

    `grades` are of the runs that took place, by agent; `stopped` is the exit status of a run that did not end by
    itself. `remarks` are what the runs gave notice of, and how an agent ended other than by itself. `assurance` is the
    one at which the runs took place: `live` where its solution passes so and not in a fork of its files.
    """

    path: Path
    found: Found
    format: str | None
    task: Task | None = None
    refusals: tuple[Refusal, ...] = ()
    grades: dict[str, str] = field(default_factory=dict)
    runs: tuple[Path, ...] = ()
    stopped: Exit | None = None
    remarks: tuple[str, ...] = ()
    assurance: str | None = None

    @property
    def word(self) -> str:
        """The verdict in a word."""
        if self.stopped is not None:
            return "stopped"
        if self.found is Found.PASSED_OVER:
            return "passed over"
        return "refused" if self.refusals else "ok"

    def as_record(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "path": str(self.path),
            "verdict": self.word,
            "found": self.found.value,
            "format": self.format,
            "name": self.task.name if self.task else None,
            "sha256": self.task.digest if self.task else None,
            "unknown_keys": [
                {"key": key.name, "closest": key.closest} for key in (self.task.unknown_keys if self.task else ())
            ],
            "notes": [*self.task.notes, *self.task.migrated] if self.task else [],
            "refusals": [refusal.as_record() for refusal in self.refusals],
            "grades": dict(self.grades),
            "remarks": list(self.remarks),
            "assurance": self.assurance,
            "runs": [str(run) for run in self.runs],
        }


def check_tasks(
    paths: Sequence[Path], how: Launch, *, out: Path | None, say: Callable[[str], None], quiet: bool = False
) -> Iterator[TaskVerdict]:
    """One verdict for each thing found at the paths; stops after one that was interrupted.

    `how` says what the runs have in common. What is checked, and what takes its time, is told unless it is `quiet`.
    """
    base = out or runs_folder(Path.cwd()) / "checks"
    for candidate in discover(paths):
        verdict = _check(candidate, base, how, _Telling(say, quiet))
        yield verdict
        if verdict.stopped is not None:
            return


@dataclass(frozen=True)
class _Telling:
    """Where to tell what a person must know, and whether to tell nothing else."""

    say: Callable[[str], None]
    quiet: bool


def _check(candidate: Candidate, base: Path, how: Launch, tell: _Telling) -> TaskVerdict:
    plain = TaskVerdict(candidate.path, candidate.found, candidate.format)
    if candidate.refusal is not None or candidate.found is not Found.TASK:
        return replace(plain, refusals=() if candidate.refusal is None else (candidate.refusal,))
    try:
        task = read_task(candidate.path)
    except Refusal as refusal:
        return replace(plain, refusals=(refusal,))
    if not tell.quiet:
        tell.say(f"checking {candidate.path}")
    folder = free_folder(base / candidate.path.resolve().name)
    # what is checked is the content by its digest, committed or not: that is on the record as a waiver
    own = replace(how, task=candidate.path, waive=("git_dirty",))
    first = _at(replace(plain, task=task, assurance="isolated"), own, folder, tell)
    if first.stopped is not None or first.grades.get("oracle") not in ("fail", "ungraded"):
        return first
    # what the solution made may live in processes only, which no fork of its files has
    second = _at(replace(plain, task=task, assurance="live"), replace(own, assurance="live"), folder / "live", tell)
    both = (*first.runs, *second.runs)
    return replace(second, runs=both) if second.word != "refused" else replace(first, runs=both)


def _at(verdict: TaskVerdict, how: Launch, folder: Path, tell: _Telling) -> TaskVerdict:
    """The verdict at one assurance: the runs of both agents, and what they came to."""
    refusals: list[Refusal] = []
    grades: dict[str, str] = {}
    runs: list[Path] = []
    remarks: list[str] = []
    for agent in _WANTED:
        own = replace(how, agent=agent, out=folder / agent)
        (finished,) = launch(own, quiet=True, say=tell.say, waits=not tell.quiet)
        runs.append(finished.run)
        remarks += [notice for notice in finished.notices if notice not in remarks]
        if finished.refusals:
            known = {(refusal.reason, refusal.message) for refusal in refusals}
            refusals += [each for each in finished.refusals if (each.reason, each.message) not in known]
            continue
        if finished.exit not in (Exit.DONE, Exit.DOES_NOT_HOLD):
            return replace(verdict, stopped=finished.exit)
        (row,) = read_run(RunFolder(finished.run), validate=False).rows
        grades[agent] = row.grade
        if row.tries.exception is not None:
            remarks.append(f"{_WHO[agent]} ended by {row.tries.exception}")
        if row.grade != _WANTED[agent]:
            refusals.append(_wrong(agent, row, finished.run))
    return replace(verdict, refusals=tuple(refusals), grades=grades, runs=tuple(runs), remarks=tuple(remarks))


def _wrong(agent: str, row: Row, run: Path) -> Refusal:
    reason = Reason.TASK_CHECK_UNGRADED if row.grade == GradeState.UNGRADED else _WRONG[agent]
    said = f"{_WHO[agent]} ends {row.grade}" + (f" ({row.reason})" if row.reason else "")
    printed = None if row.tries.folder is None else last_line(RunFolder(run), row.tries.folder, (VERIFIER_OUTPUT,))
    if printed is not None:
        said += f"; the last line that its tests printed: {printed[1]}"
    why = None if row.tries.message is None or row.reason is None else Reason.by_id(row.reason)
    look = shlex.join(["proctor", "logs" if why is None else "show", short_path(run), short_id([row], row)])
    tells = "prints what it wrote" if why is None else "tells the rest"
    return Refusal(
        reason,
        said,
        path=str(run),
        observed={"grade": row.grade, "reason": row.reason, "reward": row.reward},
        required=f"{_WHO[agent]} ends {_WANTED[agent]}",
        remedy=f"{(why or reason).remedy} `{look}` {tells}.",
    )
