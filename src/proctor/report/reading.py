"""A run as its evidence tells it: the design, the plan, the fold over the journal, and one row for each trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from sys import intern
from typing import Any, overload

from proctor.core.ids import attempt_id, trial_folder, trial_label
from proctor.core.outcomes import SUPERSEDED, GradeState
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.usage import Bucket
from proctor.evidence.entries import JOURNAL, Entry, damaged
from proctor.evidence.fold import Final, RunState
from proctor.evidence.kinds import FORMAT, Kind
from proctor.evidence.reader import read_entries
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.spent import Spent
from proctor.grading.summary import Counted, summarize
from proctor.report.shapes import check_shape
from proctor.study import Design, Trial, plan
from proctor.study.design import QUESTION, read_design


@dataclass(slots=True)
class Tries:
    """What a trial's attempts came to so far; what describes one attempt is of the last one.

    `duration_ns` sums the phases of an attempt, None while it runs or where it ended without a word. `spent` is of all
    attempts together. `rewards` are those that a hypothesis names, `refused` how many of its requests the gateway did
    not pass on, and `refusal` why not the first of them.
    """

    attempts: int = 0
    superseded: int = 0
    replaced: int = 0
    folder: str | None = None
    outcome: str | None = None
    exception: str | None = None
    message: str | None = None
    duration_ns: int | None = None
    tests: Mapping[str, int] | None = None
    disclosures: int = 0
    assurance: str | None = None
    rewards: Mapping[str, float] | None = None
    refused: int = 0
    refusal: str | None = None
    spent: Spent | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One planned trial. Without a final its grade is `ungraded` with reason `not_run`, as in grade_summary.json.

    `question` says that its task is a row of a question set, `synthetic` that its model is made up.
    """

    trial: Trial
    grade: str
    reason: str | None
    reward: float | None
    final: bool
    tries: Tries
    question: bool = False
    synthetic: bool = False
    cluster: str | None = None

    @property
    def last_attempt(self) -> str | None:
        """Id of the last attempt, None where there is none."""
        return attempt_id(self.trial.id, self.tries.attempts - 1) if self.tries.attempts else None

    def as_record(self) -> dict[str, Any]:
        """Flat, for csv, jsonl and JSON; times in seconds, money and tokens of all attempts, absence is None."""
        trial, tries, tests = self.trial, self.tries, self.tries.tests
        record = {
            "trial": trial.id,
            "task": trial.task,
            "cluster": self.cluster,
            "model": trial.model,
            "synthetic": self.synthetic,
            "arm": trial.arm,
            "epoch": trial.epoch,
            "grade": self.grade,
            "reason": self.reason,
            "reward": self.reward,
            "final": self.final,
            "assurance": tries.assurance,
            "attempt": self.last_attempt,
            "attempts": tries.attempts,
            "superseded": tries.superseded,
            "replaced": tries.replaced,
            "exception": tries.exception,
            "duration_sec": None if tries.duration_ns is None else round(tries.duration_ns / 1e9, 6),
            "disclosures": tries.disclosures,
            "tests_passed": None if tests is None else tests["all_pass"],
            "tests_failed": None if tests is None else tests["last_row_fails"],
            "folder": tries.folder,
        }
        spent = None if trial.model is None else tries.spent or Spent()
        record["cost"] = None if spent is None else str(spent.cost)
        for name in ("exchanges", "estimated", "overruns"):
            record[name] = None if spent is None else getattr(spent, name)
        for bucket in Bucket:
            record[f"tokens_{bucket.value}"] = None if spent is None else spent.tokens.get(bucket.value, 0)
        return record


class Rows(Sequence[Row]):
    """Rows that are made when the first is asked for: of a design of millions of trials that takes its time.

    Whoever only counts them, as `proctor status` does of a folder that somebody sent, does not wait for it.
    """

    def __init__(self, count: int, make: Callable[[], Iterable[Row]]) -> None:
        self._count = count
        self._make: Callable[[], Iterable[Row]] | None = make
        self._made: tuple[Row, ...] = ()

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        return self._all()[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._all())

    def _all(self) -> tuple[Row, ...]:
        if self._make is not None:
            self._made, self._make = tuple(self._make()), None
        return self._made


@dataclass(frozen=True)
class Reading:
    """A run that was read. `rows` are in the order of the plan; `in_flight` has the labels of attempts without end."""

    run: RunFolder
    design: Design
    state: RunState
    rows: Sequence[Row]
    in_flight: Mapping[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every planned trial has its final."""
        return self.state.finals == len(self.rows)

    def grades(self) -> dict[str, Any]:
        """What `grade_summary.json` holds, made anew."""
        return grade_summary((row.trial for row in self.rows), self.state)

    def groups(self) -> list[dict[str, Any]]:
        """The groups of `grades`, models and arms in the order of the design, as everything shows them."""
        found = {(group["model"], group["arm"]): group for group in self.grades()["groups"]}
        return [found[model, arm.name] for model in self.design.model_names for arm in self.design.arms]


def read_run(run: RunFolder, *, validate: bool = True, watch: Callable[[Entry], None] | None = None) -> Reading:
    """Read a run, live or over; a last line that is not finished is left out.

    Args:
        validate: check the journal's chain too.
        watch: is shown each entry, in order, in the same pass.

    Raises:
        Refusal: `run_not_found`, `evidence_unreadable`, `evidence_damaged`, `format_unknown`.
    """
    design = read_design(run.design_path)
    state = RunState()
    folders = frozenset(task.name for task in design.tasks if task.format != QUESTION)
    tries: dict[int, Tries] = {}
    in_flight: dict[str, str] = {}
    wanted = {claim.endpoint.partition(":")[2] for claim in design.hypotheses if claim.endpoint.startswith("reward:")}
    for entry in read_entries(run.journal_path, validate=validate):
        kind = _known(entry)
        with understood(f"{JOURNAL}:{entry.seq + 1}"):
            check_shape(kind, entry.body)
        state.apply(kind, entry.body)
        with understood(f"{JOURNAL}:{entry.seq + 1}"):
            _follow(tries, kind, entry.body, wanted, folders)
            if kind is Kind.ATTEMPT_ADMITTED:
                in_flight[entry.body["attempt"]] = _label(entry.body)
            elif kind is Kind.ATTEMPT_ENDED:
                in_flight.pop(entry.body["attempt"], None)
            if watch is not None:
                watch(entry)
    said = (state.admitted or {}).get("design_sha256")
    if said != design.sha256:
        raise damaged("the design is not the one that was admitted", "design.json", design.sha256, said)
    clusters = {task.name: task.cluster for task in design.tasks if task.cluster is not None}
    made_up = frozenset(design.synthetic)
    counts: dict[tuple[tuple[str, int], ...], dict[str, int]] = {}
    for own in tries.values():
        if own.spent is not None:
            # many trials use as many tokens as others, and from here on nothing is added
            own.spent.tokens = counts.setdefault(tuple(own.spent.tokens.items()), own.spent.tokens)

    def rows() -> Iterator[Row]:
        for trial in plan(design).trials():
            yield _row(trial, state, tries, trial.task not in folders, trial.model in made_up, clusters.get(trial.task))

    return Reading(run, design, state, Rows(design.trials, rows), in_flight)


def grade_summary(planned: Iterable[Trial], state: RunState) -> dict[str, Any]:
    """The content of grade_summary.json."""
    return summarize((trial.model, trial.arm, _counted(state.final(trial.id))) for trial in planned)


def _counted(final: Final | None) -> Counted | None:
    return None if final is None else Counted(GradeState(final.grade), final.reason, final.reward)


@contextmanager
def understood(where: str) -> Iterator[None]:
    """For code that takes bodies of entries apart: a body that is not as its kind's is damaged evidence.

    Raises:
        Refusal: `evidence_damaged`, in place of what Python says of a value of another type.
    """
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as fault:
        raise damaged(f"an entry's body cannot be understood: {fault!r}", where) from fault


def _known(entry: Entry) -> Kind:
    newer = entry.kind is Kind.RUN_ADMITTED and entry.body["format"] != FORMAT
    if newer or not isinstance(entry.kind, Kind):
        raise Refusal(
            Reason.FORMAT_UNKNOWN,
            "the journal is in a format, or has a kind of entry, that this version does not know",
            path=f"{JOURNAL}:{entry.seq + 1}",
            observed=entry.body["format"] if newer else entry.kind,
            required=FORMAT if newer else None,
        )
    return entry.kind


def _follow(tries: dict[int, Tries], kind: Kind, body: Mapping[str, Any], wanted: Set[str], folders: Set[str]) -> None:
    if kind is Kind.ATTEMPT_ADMITTED:
        own_folder = trial_folder(body["task"], body["model"], body["arm"], body["epoch"])
        if body["folder"] != f"trials/{own_folder}/{body['number']}":
            raise ValueError(f"the folder is not that of the attempt: {body['folder']!r}")
        trial = int(body["trial"], 16)
        before = tries.get(trial, Tries())
        tries[trial] = Tries(
            attempts=before.attempts + 1,
            superseded=before.superseded,
            replaced=before.replaced + (body["replaces"] is not None),
            # a row makes no folder, and names of 100,000 would be kept for nothing
            folder=str(body["folder"]) if body["task"] in folders else None,
            spent=before.spent,
        )
    elif kind is Kind.EXCHANGE_ENDED:
        own = tries[_trial_of(body)]
        own.spent = own.spent or Spent()
        own.spent.take(body)
    elif kind is Kind.EXCHANGE_REFUSED:
        own = tries[_trial_of(body)]
        own.refused += 1
        own.refusal = own.refusal or f"{body['reason']}: {body['message']}"
    elif kind is Kind.ATTEMPT_GRADED:
        tests = body["tests"]
        own = tries[_trial_of(body)]
        own.disclosures, own.assurance = len(body["disclosures"]), body["assurance"]
        own.rewards = {name: body["rewards"][name] for name in wanted & body["rewards"].keys()} or None
        own.tests = None if tests is None else {name: int(tests[name]) for name in ("all_pass", "last_row_fails")}
    elif kind is Kind.ATTEMPT_ENDED:
        own = tries[_trial_of(body)]
        own.outcome, own.exception, own.message = intern(body["outcome"]), body["exception"], body["message"]
        own.superseded += own.outcome in SUPERSEDED
        timing = body["timing"]
        own.duration_ns = sum(int(ns) for ns in timing.values()) if timing else None


def _label(body: Mapping[str, Any]) -> str:
    return trial_label(str(body["task"]), body["model"], str(body["arm"]), body["epoch"])


def _trial_of(body: Mapping[str, Any]) -> int:
    return int(str(body["attempt"]).partition("/")[0], 16)


def _row(
    trial: Trial,
    state: RunState,
    tries: dict[int, Tries],
    question: bool,
    synthetic: bool,
    cluster: str | None,
) -> Row:
    final = state.final(trial.id)
    own = tries.pop(int(trial.id, 16), None) or Tries()
    if final is None:
        return Row(trial, GradeState.UNGRADED.value, Reason.NOT_RUN.id, None, False, own, question, synthetic, cluster)
    return Row(trial, final.grade, final.reason, final.reward, True, own, question, synthetic, cluster)
