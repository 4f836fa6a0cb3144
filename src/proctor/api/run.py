"""A run that was admitted: read from its evidence, gone on with, re-checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from proctor.admission.finish import Stop
from proctor.api.arguments import Agree, Names, confirm_by, names
from proctor.api.group import Group, decimal, groups_of
from proctor.api.refused import Refused, refusing
from proctor.api.running import perform
from proctor.api.trial import Attempt, Trial, attempts_in, trial_of
from proctor.api.verifying import Verification, verify
from proctor.core.exits import Exit
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.reader import read_entries
from proctor.evidence.runfolder import RunFolder
from proctor.report.comparing import Comparison, comparisons
from proctor.report.reading import Reading, read_run, understood
from proctor.report.rows import records
from proctor.report.spending import spend_of
from proctor.report.summary import results_lines
from proctor.report.trial import matching
from proctor.runner.launch import resume
from proctor.runner.session import Finished


class Run:
    """A run as its evidence tells it. It is read when something of it is first asked for, and not again.

    `path` is its folder. `notices` are what holds and may surprise, of a run that was started here. Everything that is
    read raises `Refused` where the evidence cannot be read, or is damaged.
    """

    def __init__(self, path: Path, notices: Sequence[str] = ()) -> None:
        self.path = path
        self.notices = tuple(notices)

    @classmethod
    def open(cls, path: str | PathLike[str]) -> Run:
        """The run in a folder, live or over. For what was written since, open it again.

        Raises:
            Refused: no run was admitted there.
        """
        folder = Path(path)
        with refusing():
            if not RunFolder(folder).is_admitted():
                raise Refusal(Reason.RUN_NOT_FOUND, "no admitted run is in this folder", path=str(folder))
        return cls(folder)

    @classmethod
    def ended(cls, finished: Finished, notices: Sequence[str] = ()) -> Run:
        """The run that an invocation made or went on with.

        Raises:
            Refused: it was not admitted.
        """
        if finished.refusals:
            raise Refused(finished.refusals, finished.run)
        if not RunFolder(finished.run).is_admitted():
            reason = finished.reason or Reason.INTERNAL_ERROR
            raise Refused([Refusal(reason, f"the admission ended: {finished.message}")], finished.run)
        return cls(finished.run, [*notices, *finished.notices])

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @cached_property
    def _reading(self) -> Reading:
        with refusing():
            return read_run(RunFolder(self.path))

    @property
    def id(self) -> str:
        """The run's id."""
        return str((self._reading.state.admitted or {})["run_id"])

    @property
    def study(self) -> str:
        """The name of its study."""
        return self._reading.design.study.name

    @property
    def stage(self) -> str:
        """The name of its stage."""
        return self._reading.design.stage.name

    @property
    def design_sha256(self) -> str:
        """The identity of its frozen design."""
        return self._reading.design.sha256

    @property
    def synthetic(self) -> tuple[str, ...]:
        """The models that are made up: nothing that the run says of them is a result."""
        return self._reading.design.synthetic

    @property
    def exit(self) -> Exit | None:
        """The exit status of the last process that ran it; None where that wrote no end: it is live, or was killed."""
        ended = self._reading.state.ended
        return None if ended is None else Exit(ended["exit_status"])

    @property
    def reason(self) -> str | None:
        """The id of the reason for which the run ended before it was done; None where it just ended, or did not."""
        ended = self._reading.state.ended
        return None if ended is None else ended["reason"]

    @property
    def complete(self) -> bool:
        """Whether every planned trial has its final."""
        return self._reading.complete

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """All planned trials, in the order of the plan."""
        return tuple(trial_of(row, self.tries) for row in self._reading.rows)

    def trial(self, text: str) -> Trial:
        """The trial of an id, of the beginning of one, or of a name as `task/arm/epoch`, as `proctor show` finds it.

        Raises:
            LookupError: there is none, or there are several.
        """
        found = matching(self._reading.rows, text)
        if len(found) == 1:
            return trial_of(found[0], self.tries)
        several = ": " + ", ".join(f"{row.trial.id} ({row.trial.label})" for row in found[:5]) if found else ""
        raise LookupError(f"{text!r} means {len(found)} of {len(self._reading.rows)} trials{several}")

    def tries(self, trial: str | None = None) -> Iterator[Attempt]:
        """All attempts, in the order in which they ended, in one pass over the journal; or those of one trial's id."""
        entries = read_entries(RunFolder(self.path).journal_path, validate=False)
        with refusing(), understood("journal.jsonl"):
            yield from attempts_in(self._reading, entries, trial)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The trials of each arm with each model, counted."""
        return groups_of(self._reading)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Arms compared over their tasks: each hypothesis, with its decision, then what else can be compared."""
        with refusing():
            return tuple(comparisons(self._reading))

    @property
    def cost(self) -> Decimal | None:
        """What all exchanges were charged, in dollars; None where no model is used."""
        money = spend_of(self._reading.design, self._reading.state)
        return None if money is None else decimal(money.charged)

    def to_rows(self) -> list[dict[str, Any]]:
        """One flat record a planned trial, as `proctor results --jsonl` prints: for a data frame."""
        return list(records(self._reading))

    def summary(self) -> str:
        """What `proctor results` prints."""
        with refusing():
            return "\n".join(results_lines(self._reading)[1:])

    def resume(
        self,
        *,
        agree: Agree = False,
        study: str | PathLike[str] | None = None,
        jobs: int | None = None,
        waive: Names = (),
        agents: Mapping[str, type] | None = None,
        quiet: bool = True,
    ) -> Run:
        """Go on: what has its final stays, what was cut short is tried anew. Returns the run as it is then.

        Args:
            study: where the study is now, if the run's folder was moved.
            agents: the classes with which the run was started, if it was with any.
            agree, jobs, waive, quiet: as for `Study.run`.

        Raises:
            Refused: `run_complete`, `run_locked`, `design_changed`, `unknown_agent`, and whatever else admission finds.
        """
        place = None if study is None else Path(study)
        said: list[str] = []

        def work(stop: Stop) -> Finished | None:
            return resume(
                self.path,
                study=place,
                jobs=jobs,
                waive=names(waive),
                quiet=quiet,
                say=said.append,
                confirm=confirm_by(agree),
                agents=agents,
                stop=stop,
            )

        with refusing():
            finished = perform(work)
        return Run(self.path, said) if finished is None else Run.ended(finished)

    def verify(
        self,
        key: str | None = None,
        *,
        anchors: Sequence[str] = (),
        since: str | PathLike[str] | None = None,
        witnesses: Sequence[str] = (),
        deadline_sec: float = 3600.0,
    ) -> Verification:
        """Have the evidence re-checked by the second program, which shares no code with this one.

        Args:
            key: whose signature counts: a vkey, a file that holds one, or `sha256:HEX` (`proctor keys`).
            anchors: where its checkpoints stand too: addresses or folders of git repositories, folders, note files.
            since: the file of a checkpoint that was kept: what is new must extend it.
            witnesses: who else must have signed a checkpoint: vkeys, or files that hold one.
            deadline_sec: how long it may take.

        Raises:
            TimeoutError: it did not end in time.
        """
        kept = fspath(since) if since is not None else None
        return verify(self.path, key, deadline_sec, anchors=anchors, since=kept, witnesses=witnesses)
