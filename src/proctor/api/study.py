"""A study: checked and run by the doors of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import Any

from proctor.admission.admit import Verdict
from proctor.admission.admit import check as look
from proctor.admission.facts import Request
from proctor.admission.finish import Stop
from proctor.admission.spending import AtMost, at_most
from proctor.api.arguments import Agree, Names, confirm_by, names
from proctor.api.refused import Refused, refusing
from proctor.api.run import Run
from proctor.api.running import perform
from proctor.core.canonical import encode
from proctor.core.money import Usd
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.runner.launch import Launch, requests, run_one
from proctor.runner.planning import plan_stage, read_pilot
from proctor.runner.session import Finished, operator_key
from proctor.study import plan, read_study
from proctor.study.load import read_tables


@dataclass(frozen=True)
class Checked:
    """What the gates say of a stage. `refusals` is empty iff it would be admitted; `notices` say what may surprise.

    `at_most` is what it can cost, None where it costs nothing or its money is not known. `trials` is 0, and
    `design_sha256` None, where there is no design.
    """

    stage: str
    refusals: tuple[Refusal, ...]
    notices: tuple[str, ...]
    at_most: AtMost | None
    trials: int
    design_sha256: str | None

    @property
    def ok(self) -> bool:
        """Whether a run would be admitted."""
        return not self.refusals


@dataclass(frozen=True)
class Study:
    """A study file, or tables that no file holds. It is read anew by each call.

    `path` is the file, or the folder that holds `study.toml`, or the folder where the paths of `tables` start.
    """

    path: Path
    tables: Mapping[str, Any] | None = None

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Study:
        """The study of a file, or of the `study.toml` in a folder.

        Raises:
            Refused: it is not there, or is no TOML. What else is wrong with it `check` and `run` say.
        """
        with refusing():
            read_study(Path(path), None)
        return cls(Path(path))

    @classmethod
    def from_tables(cls, tables: Mapping[str, Any], folder: str | PathLike[str] = ".") -> Study:
        """A study from the tables that its file would hold: docs/study.md lists every key.

        Paths and decimals are written as texts, tuples as lists. A run of it keeps the tables in its manifest, so that
        it can be resumed without them.

        Args:
            tables: such as `{"study": {"name": "sums"}, "tasks": {"questions": "units.jsonl"}}`.
            folder: where relative paths start.

        Raises:
            Refused: a value has no form in JSON; there is no such folder.
        """
        with refusing():
            if not Path(folder).is_dir():
                raise Refusal(Reason.STUDY_NOT_FOUND, "there is no folder there", path=str(folder))
            written = _written(tables)
            encode(written)
        return cls(Path(folder), written)

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of its stages in order, none where the study does not fit its schema.

        Raises:
            Refused: the file cannot be read.
        """
        with refusing():
            file = read_study(self.path, self.tables).file
        return () if file is None else tuple(file.stages)

    def plan(
        self,
        expected: Mapping[str, str | Decimal] | None = None,
        *,
        stage: str | None = None,
        pilot: str | PathLike[str] | None = None,
    ) -> Study:
        """The same study with the money of a stage worked out, as `proctor plan` does it.

        Args:
            expected: what all trials of the stage are expected to cost with each model, in dollars, such as
                `{"luna": "36.20"}`; else what the study, or a pilot, says.
            stage: needed where the study has several.
            pilot: the folder of a run of a few trials.

        Raises:
            Refused: an amount is missing, or stands against another; the study or the pilot cannot be read.
            ValueError: the study has several stages, and none is named.
        """
        with refusing():
            assumed = {name: Usd.parse(str(amount), path=name) for name, amount in (expected or {}).items()}
            told = {} if pilot is None else read_pilot(Path(pilot))
            found = plan_stage(
                self._request(Launch(command="plan", study=self.path, tables=self.tables, stage=stage)), assumed, told
            )
            if found.refusals:
                raise Refused(found.refusals)
            tables = read_tables(self.path) if self.tables is None else self.tables
        stages = tables.get("stages", {})
        own = {**stages.get(found.stage, {}), **found.tables()}
        folder = self.path if self.path.is_dir() else self.path.parent
        return Study(folder, {**tables, "stages": {**stages, found.stage: own}})

    def check(
        self,
        stage: str | None = None,
        *,
        out: str | PathLike[str] | None = None,
        limit: int | None = None,
        models: Names = (),
        arms: Names = (),
        waive: Names = (),
        agents: Mapping[str, type] | None = None,
    ) -> Checked:
        """Say whether a stage would be admitted: every gate, nothing written, nothing started.

        The arguments are those of `run`.

        Raises:
            ValueError: the study has several stages, and none is named.
        """
        how = self._launch("check", stage, out, limit, models, arms, None, waive, False, agents)
        return _checked(look(self._request(how)))

    def run(
        self,
        stage: str | None = None,
        *,
        out: str | PathLike[str] | None = None,
        agree: Agree = False,
        limit: int | None = None,
        models: Names = (),
        arms: Names = (),
        jobs: int | None = None,
        waive: Names = (),
        prepare_only: bool = False,
        agents: Mapping[str, type] | None = None,
        quiet: bool = True,
    ) -> Run:
        """Run a stage to its end, whatever that is: `Run.exit` says.

        Works from anywhere, also within a running event loop (it waits). Ctrl-C drains, twice aborts.

        Args:
            stage: needed where the study has several.
            out: the run folder; `runs/<study>/<stage>` beside the study otherwise.
            agree: to what the run can cost at most, where that is real money; or a function that is asked.
            limit: only the first so many tasks, by name.
            models, arms: only these of the stage.
            jobs: attempts at once; the stage's `lanes` otherwise.
            waive: reasons that may be waived, such as `git_dirty`; recorded.
            prepare_only: admit and freeze, run nothing; `Run.resume` starts it.
            agents: classes of agents that no package brings, by the name that the study says (docs/api.md).
            quiet: no progress on standard error.

        Raises:
            Refused: it was not admitted; the record is in its `run`.
            ValueError: the study has several stages, and none is named.
        """
        how = self._launch("run", stage, out, limit, models, arms, jobs, waive, prepare_only, agents)
        request = self._request(how)
        with refusing():
            key, made = operator_key()

            def work(stop: Stop) -> Finished:
                return run_one(request, key, quiet, confirm_by(agree), stop)

            finished = perform(work)
        assert finished is not None
        said = [f"made a signing key for you: {key.fingerprint} (see `proctor keys`)"] if made else []
        return Run.ended(finished, said)

    def _launch(
        self,
        command: str,
        stage: str | None,
        out: str | PathLike[str] | None,
        limit: int | None,
        models: Names,
        arms: Names,
        jobs: int | None,
        waive: Names,
        prepare_only: bool,
        agents: Mapping[str, type] | None,
    ) -> Launch:
        return Launch(
            command=command,
            study=self.path,
            tables=self.tables,
            stage=stage,
            out=None if out is None else Path(out),
            limit=limit,
            models=names(models),
            arms=names(arms),
            jobs=jobs,
            waive=names(waive),
            prepare_only=prepare_only,
            agents=dict(agents or {}),
        )

    def _request(self, how: Launch) -> Request:
        found = list(requests(how))
        if len(found) > 1:
            stages = ", ".join(str(request.stage) for request in found)
            raise ValueError(f"the study has several stages: name one of {stages}")
        return found[0]


def _written(value: Any) -> Any:
    """As a file would hold it."""
    if isinstance(value, Mapping):
        return {key: _written(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_written(each) for each in value]
    return str(value) if isinstance(value, Path | Decimal) else value


def _checked(verdict: Verdict) -> Checked:
    gathered, manifest = verdict.gathered, verdict.manifest
    design = None if gathered is None else gathered.design
    return Checked(
        stage=str(manifest["requested"]["stage"]),
        refusals=verdict.refusals,
        notices=tuple(manifest["probes"].get("notices", ())),
        at_most=None if gathered is None or design is None else at_most(gathered.facts, design),
        trials=0 if design is None else plan(design).planned["trials"],
        design_sha256=None if design is None else design.sha256,
    )
