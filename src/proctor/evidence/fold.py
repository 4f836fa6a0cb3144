"""The state of a run as a fold over its journal: what resume, status and the runner go by.

Trials in the same state share one object, so a trial costs about 100 bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from proctor.core.ids import attempt_id
from proctor.core.money import Usd
from proctor.core.outcomes import SUPERSEDED, GradeState, Outcome
from proctor.core.refusal import Refusal
from proctor.evidence.entries import Entry, damaged
from proctor.evidence.kinds import Kind
from proctor.evidence.spent import Spent

_TRIAL = re.compile(r"[0-9a-f]{16}", re.ASCII)


class Cell(NamedTuple):
    """What grades are counted by."""

    model: str | None
    arm: str


class Final(NamedTuple):
    """The one attempt that counts, by its number, and its grade."""

    number: int
    grade: str
    reason: str | None
    reward: float | None


class NextAttempt(NamedTuple):
    """How the next attempt of a trial is to be admitted: its number, and the attempt before it by what it is to it."""

    number: int
    supersedes: str | None
    replaces: str | None


class TrialState(NamedTuple):
    """What has happened to a trial: attempts begun, those among them that replaced one, and how the last one ended.

    `outcome` is None before the first attempt and while one is in flight.
    """

    cell: Cell | None = None
    attempts: int = 0
    replaced: int = 0
    outcome: Outcome | None = None
    final: Final | None = None

    @property
    def in_flight(self) -> bool:
        """Whether an attempt is open."""
        return self.attempts > 0 and self.outcome is None

    def next_attempt(self, trial: str) -> NextAttempt:
        """How the next attempt of the trial, whose id this is, is to be admitted.

        Raises:
            ValueError: one is in flight, or it has its final.
        """
        if self.in_flight or self.final is not None:
            raise ValueError(f"trial {trial} is in flight, or final")
        last = attempt_id(trial, self.attempts - 1) if self.attempts else None
        return NextAttempt(
            self.attempts,
            last if self.outcome in SUPERSEDED else None,
            last if self.outcome is Outcome.INFRASTRUCTURE else None,
        )

    def after(self, coming: NextAttempt, outcome: Outcome) -> TrialState:
        """The state once that attempt has ended."""
        replaced = self.replaced + (coming.replaces is not None)
        return self._replace(attempts=coming.number + 1, replaced=replaced, outcome=outcome)


@dataclass(slots=True)
class OpenAttempt:
    """An attempt in flight, and its grade if it has one already."""

    trial: str
    number: int
    block: int
    folder: str
    graded: bool = False
    grade: Final | None = None
    exchanges: dict[str, tuple[str, int]] = field(default_factory=dict)


@dataclass(slots=True)
class CellCounts:
    """What a (model, arm) has so far. `exceptions` counts ends of attempts by reason id, `reasons` those of finals.

    `spent` is of all attempts, superseded and replaced ones too.
    """

    grades: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    exceptions: Counter[str] = field(default_factory=Counter)
    superseded: int = 0
    replaced: int = 0
    spent: Spent = field(default_factory=Spent)


_NOTHING_YET = TrialState()


class Numbers:
    """A set of numbers from 0 that grows: a byte each, where a set takes a hundred; far ones stand in a set."""

    def __init__(self) -> None:
        self._near = bytearray()
        self._far: set[int] = set()

    def add(self, number: int) -> None:
        """Take a number in."""
        if number >= 2 * len(self._near) + 4096:
            self._far.add(number)
            return
        if number >= len(self._near):
            self._near.extend(bytes(number + 1 - len(self._near)))
        self._near[number] = 1

    def __contains__(self, number: int) -> bool:
        return (number < len(self._near) and self._near[number] == 1) or number in self._far


class RunState:
    """The fold. Feed it every entry in order, with `apply` or `of`.

    `charged` is what the exchanges of each model came to, in picodollars; `reached` are the bodies of what said that
    money ran out. `due` are finals that no entry gives yet: of attempts that completed, by trial.
    """

    def __init__(self) -> None:
        self.admitted: dict[str, Any] | None = None
        self.openings: list[dict[str, Any]] = []
        self.bound: dict[str, str] = {}
        self.open: dict[str, OpenAttempt] = {}
        self.due: dict[str, Final] = {}
        self.blocks_open: set[int] = set()
        self.blocks_ended = Numbers()
        self.paused = False
        self.draining: str | None = None
        self.ended: dict[str, Any] | None = None
        self.counts: dict[Cell | None, CellCounts] = {}
        self.grades: Counter[str] = Counter()
        self.charged: Counter[str] = Counter()
        self.overruns = 0
        self.reached: list[dict[str, Any]] = []
        self.entries = 0
        self._trials: dict[int, TrialState] = {}
        self._shared: dict[TrialState, TrialState] = {}

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> RunState:
        """The state after all of them.

        Raises:
            Refusal: `evidence_damaged` where an entry makes no sense after those before it.
        """
        state = cls()
        for entry in entries:
            state.apply(entry.kind, entry.body)
        return state

    def apply(self, kind: Kind | str, body: Mapping[str, Any]) -> None:
        """Take the next entry.

        Raises:
            Refusal: `evidence_damaged` where it makes no sense after those before it.
        """
        try:
            self._apply(kind, body)
        except (KeyError, TypeError, ValueError, Refusal) as error:
            name = kind.id if isinstance(kind, Kind) else kind
            message = f"a {name} entry makes no sense there: {error!r}"
            raise damaged(message, f"journal.jsonl:{self.entries + 1}") from error
        self.entries += 1

    def trial(self, trial: str) -> TrialState:
        """What has happened to a trial so far, by its id."""
        return self._trials.get(_trial(trial), _NOTHING_YET)

    def final(self, trial: str) -> Final | None:
        """The trial's final, if it has one."""
        return self.trial(trial).final

    @property
    def finals(self) -> int:
        """How many trials have their final."""
        return self.grades.total()

    def totals(self, planned: int) -> dict[str, int]:
        """`totals` of `run.ended` for a design of so many trials."""
        grades = {grade.value: self.grades[grade] for grade in GradeState}
        return {"trials": planned, "finals": self.finals, **grades}

    def _apply(self, kind: Kind | str, body: Mapping[str, Any]) -> None:
        match kind:
            case Kind.RUN_ADMITTED | Kind.RUN_RESUMED:
                self._opened(kind, body)
            case Kind.BLOCK_ADMITTED:
                self.blocks_open.add(_count(body["block"]))
            case Kind.BLOCK_ENDED:
                self.blocks_open.discard(_count(body["block"]))
                self.blocks_ended.add(_count(body["block"]))
            case Kind.ATTEMPT_ADMITTED:
                self._attempt_admitted(body)
            case Kind.EXCHANGE_ADMITTED:
                held = Usd.parse(body["held"]).pico
                self.open[body["attempt"]].exchanges[_text(body["exchange"])] = (_text(body["model"]), held)
            case Kind.EXCHANGE_ENDED:
                self._exchange_ended(body)
            case Kind.CEILING_REACHED:
                self.reached.append(dict(body))
            case Kind.ATTEMPT_GRADED:
                attempt = self.open[body["attempt"]]
                attempt.graded = True
                attempt.grade = _final(attempt.number, body)
            case Kind.ATTEMPT_ENDED:
                self._attempt_ended(body)
            case Kind.TRIAL_FINAL:
                self._trial_final(body)
            case Kind.RUN_PAUSED:
                self.paused = True
            case Kind.RUN_UNPAUSED:
                self.paused = False
            case Kind.RUN_DRAINING:
                self.draining = _text(body["cause"])
            case Kind.RUN_ENDED:
                if type(body["complete"]) is not bool:
                    raise ValueError("complete is neither true nor false")
                self.ended = dict(body)

    def _opened(self, kind: Kind, body: Mapping[str, Any]) -> None:
        if (kind is Kind.RUN_ADMITTED) != (self.admitted is None):
            raise ValueError("a run is admitted once, first")
        if self.admitted is None:
            self.admitted = dict(body)
        self.openings.append({**body["opening"]})
        for file in [body["manifest"], *body["abandoned"]]:
            self.bound[_text(file["path"])] = _text(file["sha256"])
        # Another process runs it now: what the last one was told, and how it ended, is over.
        self.ended, self.draining, self.paused = None, None, False
        self.blocks_open.clear()

    def _attempt_admitted(self, body: Mapping[str, Any]) -> None:
        trial, number = body["trial"], body["number"]
        state = self.trial(trial)
        expected = number == state.attempts and body["attempt"] == attempt_id(trial, number)
        if state.in_flight or state.final is not None or not expected:
            raise ValueError(f"attempt {number} of trial {trial} after {state.attempts}")
        replaces = body["replaces"] is not None
        cell = state.cell if state.cell is not None else Cell(_text_or_none(body["model"]), _text(body["arm"]))
        self._set(trial, TrialState(cell, number + 1, state.replaced + replaces))
        self.open[body["attempt"]] = OpenAttempt(trial, number, _count(body["block"]), _text(body["folder"]))
        self._cell(cell).replaced += replaces

    def _exchange_ended(self, body: Mapping[str, Any]) -> None:
        attempt = self.open[body["attempt"]]
        model, _ = attempt.exchanges.pop(body["exchange"])
        self.charged[model] += Usd.parse(body["charged"]).pico
        self.overruns += bool(body["overrun"])
        self._cell(self.trial(attempt.trial).cell).spent.take(body)

    def _attempt_ended(self, body: Mapping[str, Any]) -> None:
        outcome = Outcome(body["outcome"])
        attempt = self.open.pop(body["attempt"])
        if attempt.exchanges:
            raise ValueError(f"exchanges of it are open: {sorted(attempt.exchanges)[:3]}")
        state = self.trial(attempt.trial)
        self._set(attempt.trial, state._replace(outcome=outcome))
        if outcome is Outcome.COMPLETED and attempt.grade is not None:
            self.due[attempt.trial] = attempt.grade
        counts = self._cell(state.cell)
        counts.superseded += outcome in SUPERSEDED
        if body["exception"] is not None:
            counts.exceptions[_text(body["exception"])] += 1

    def _trial_final(self, body: Mapping[str, Any]) -> None:
        trial, attempt = body["trial"], body["attempt"]
        state = self.trial(trial)
        if state.in_flight or state.final is not None:
            raise ValueError(f"trial {trial} is in flight, or final already")
        final = _final(state.attempts - 1, body)
        if not state.attempts or attempt != attempt_id(trial, final.number):
            raise ValueError(f"{attempt!r:.80} is not the last attempt of trial {trial}")
        self._set(trial, state._replace(final=final))
        self.due.pop(trial, None)
        self.grades[final.grade] += 1
        counts = self._cell(state.cell)
        counts.grades[final.grade] += 1
        if final.reason is not None:
            counts.reasons[final.reason] += 1

    def _set(self, trial: str, state: TrialState) -> None:
        self._trials[_trial(trial)] = self._shared.setdefault(state, state)

    def _cell(self, cell: Cell | None) -> CellCounts:
        counts = self.counts.get(cell)
        if counts is None:
            counts = self.counts[cell] = CellCounts()
        return counts


def _trial(trial: Any) -> int:
    if not _TRIAL.fullmatch(_text(trial)):
        raise ValueError(f"{trial[:80]!r} is no trial id")
    return int(trial, 16)


def _final(number: int, body: Mapping[str, Any]) -> Final:
    grade, reward = GradeState(body["grade"]).value, body["reward"]
    if reward is not None and type(reward) not in (int, float):
        raise ValueError(f"reward {reward!r} is no number")
    return Final(number, grade, _text_or_none(body["reason"]), reward)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"{value!r} is no text")
    return value


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no count")
    return value
