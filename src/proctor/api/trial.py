"""One planned trial of a run, and one attempt at it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from proctor.api.group import decimal
from proctor.api.refused import refusing
from proctor.core.models import Message, Role
from proctor.evidence.entries import Entry
from proctor.evidence.kinds import Kind
from proctor.evidence.spent import Spent
from proctor.evidence.withheld import withheld_refusal
from proctor.report.answer import answer_record
from proctor.report.conversation import Turn, turns
from proctor.report.reading import Reading, Row, understood
from proctor.report.trial import AttemptTold


@dataclass(frozen=True, slots=True)
class Trial:
    """One planned trial; `final` says whether its grade is fixed. What was never run is ungraded (`not_run`).

    `grade` is pass, fail or ungraded, `reason` the id of why, None for a pass. `attempts` counts what was tried;
    `exception` is how the agent ended in the last attempt, other than by itself. `cost` (dollars), `tokens` and `usage`
    (tokens by kind, those that were used) are of all attempts, and None where no model is used. `synthetic` says that
    the model is made up.
    """

    id: str
    task: str
    model: str | None
    arm: str
    epoch: int
    grade: str
    reason: str | None
    reward: float | None
    final: bool
    synthetic: bool
    cluster: str | None
    attempts: int
    exception: str | None
    duration_sec: float | None
    cost: Decimal | None
    tokens: int | None
    usage: Mapping[str, int] | None
    _read: Callable[[str], Iterable[Attempt]] = field(repr=False, compare=False)

    def tries(self) -> tuple[Attempt, ...]:
        """Its attempts, in order. Reads the run's journal once; `Run.tries` reads those of all trials at once.

        Raises:
            Refused: the evidence cannot be read, or is damaged.
        """
        return tuple(self._read(self.id))

    @property
    def conversation(self) -> tuple[Message, ...]:
        """What was said in the last attempt: messages to the model, and its answers; empty without a model.

        Raises:
            Refused: the evidence cannot be read, or is damaged.
        """
        tries = self.tries()
        return tries[-1].conversation if tries else ()


@dataclass(frozen=True)
class Attempt:
    """One attempt at a trial, as the journal tells it.

    `outcome` is completed, interrupted, lost or infrastructure, None while it runs; `exception` how the agent ended
    other than by itself, and `message` what is said of that. `since` and `until` are of its first and last entry (UTC).
    `entries` holds the bodies of its entries by kind.
    """

    id: str
    trial: str
    number: int
    outcome: str | None
    exception: str | None
    message: str | None
    since: str
    until: str
    entries: Mapping[str, tuple[Mapping[str, Any], ...]] = field(repr=False)
    _reading: Reading = field(repr=False, compare=False)
    _told: AttemptTold = field(repr=False, compare=False)
    _row: Row = field(repr=False, compare=False)

    @property
    def folder(self) -> Path | None:
        """The folder of its files; None for a question row, which has none."""
        return None if self._row.question else self._reading.run.path / self._told.folder

    @property
    def files(self) -> tuple[Path, ...]:
        """Its files that are evidence, sorted."""
        folder = self.folder
        return () if folder is None else tuple(folder / str(file["path"]) for file in self._told.files())

    @property
    def instruction(self) -> str | None:
        """What the agent was told; None where it never started.

        Raises:
            Refused: the evidence is damaged, or withheld in a public copy.
        """
        text: str | None = self._said("instruction")["instruction"]
        return text

    @property
    def answer(self) -> str | None:
        """The answer to a question row as it was scored; None for task folders, and where nothing was scored.

        Raises:
            Refused: the evidence is damaged, or withheld in a public copy.
        """
        found = self._said("answer")["answer"]
        return None if found is None else str(found["text"])

    @property
    def conversation(self) -> tuple[Message, ...]:
        """Messages to the model and its whole answers, in order.

        Raises:
            Refused: the evidence is damaged, or withheld in a public copy.
        """
        found = self._turns()
        with refusing():
            if any(turn.withheld for turn in found):
                raise withheld_refusal("a conversation", self.id)
        return tuple(message for turn in found for message in _said(turn))

    @property
    def exchanges(self) -> tuple[Mapping[str, Any], ...]:
        """Its exchanges with the model, each as `proctor show --json` has it: usage, charge, timing, what was said.

        `withheld` of each names the bodies that a public copy leaves out.

        Raises:
            Refused: the evidence is damaged.
        """
        return tuple(turn.as_record() for turn in self._turns())

    def _said(self, wanted: str) -> dict[str, Any]:
        with refusing(), understood(self.id):
            record = answer_record(self._reading.run, self._told)
            if wanted in record["withheld"]:
                raise withheld_refusal(f"an attempt's {wanted}", self.id)
        return record

    def _turns(self) -> list[Turn]:
        with refusing(), understood(self.id):
            return turns(self._reading.run, self._reading.design, self._row.trial.arm, self._told)


def trial_of(row: Row, read: Callable[[str], Iterable[Attempt]]) -> Trial:
    """The trial of a row; `read` finds its attempts by its id."""
    spent = None if row.trial.model is None else row.tries.spent or Spent()
    duration = row.tries.duration_ns
    usage = None if spent is None else spent.tokens
    return Trial(
        id=row.trial.id,
        task=row.trial.task,
        model=row.trial.model,
        arm=row.trial.arm,
        epoch=row.trial.epoch,
        grade=row.grade,
        reason=row.reason,
        reward=row.reward,
        final=row.final,
        synthetic=row.synthetic,
        cluster=row.cluster,
        attempts=row.tries.attempts,
        exception=row.tries.exception,
        duration_sec=None if duration is None else round(duration / 1e9, 6),
        cost=None if spent is None else decimal(spent.cost),
        tokens=None if usage is None else sum(usage.values()),
        usage=usage,
        _read=read,
    )


def attempts_in(reading: Reading, entries: Iterable[Entry], wanted: str | None = None) -> Iterator[Attempt]:
    """Attempts in the order in which they ended, those in flight last; of one trial, or of all."""
    rows = {row.trial.id: row for row in reading.rows}
    opened: dict[str, AttemptTold] = {}
    for entry in entries:
        attempt = entry.body.get("attempt")
        if not isinstance(entry.kind, Kind) or not isinstance(attempt, str) or entry.kind is Kind.TRIAL_FINAL:
            continue
        trial = attempt.partition("/")[0]
        if trial not in rows or wanted not in (None, trial):
            continue
        told = opened.setdefault(attempt, AttemptTold(attempt, entry.time, entry.time))
        told.until = entry.time
        told.said.setdefault(entry.kind, []).append(entry.body)
        if entry.kind is Kind.ATTEMPT_ENDED:
            yield _attempt(reading, rows[trial], opened.pop(attempt))
    for told in opened.values():
        yield _attempt(reading, rows[told.attempt.partition("/")[0]], told)


def _attempt(reading: Reading, row: Row, told: AttemptTold) -> Attempt:
    ended: Mapping[str, Any] = told.last(Kind.ATTEMPT_ENDED) or {}
    trial, _, number = told.attempt.partition("/")
    return Attempt(
        id=told.attempt,
        trial=trial,
        number=int(number),
        outcome=ended.get("outcome"),
        exception=ended.get("exception"),
        message=ended.get("message"),
        since=told.since,
        until=told.until,
        entries={kind.id: tuple(bodies) for kind, bodies in told.said.items()},
        _reading=reading,
        _told=told,
        _row=row,
    )


def _said(turn: Turn) -> Iterator[Message]:
    yield from turn.new
    if turn.reply is not None and turn.reply.whole:
        yield Message(Role.ASSISTANT, turn.reply.text, turn.reply.calls)
