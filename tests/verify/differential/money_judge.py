"""The journal's money, decision for decision, asked of the runner's ceiling: what it would have said otherwise."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from proctor.admission.limits import limits_of
from proctor.budget.authority import FOR_MONEY
from proctor.budget.ceiling import Ceiling, Denial, Scope
from proctor.core.money import ZERO, Usd
from proctor.core.outcomes import Outcome
from proctor.evidence.entries import Entry
from proctor.evidence.fold import RunState
from proctor.evidence.kinds import Kind
from proctor.study import Design, Plan

Body = dict[str, Any]
_REASON = dict.fromkeys((Scope.CAP, Scope.MODEL_CAP), "cap_reached") | {
    Scope.CEILING: "ceiling_reached",
    Scope.OVERRUN: "overrun",
}


class _Stop(Exception):
    """What follows depends on what the ceiling would never have done."""


def broken_by_money(design: Design, plan: Plan, entries: Sequence[Entry]) -> set[str]:
    """The checks whose rule some entry breaks."""
    replay = _Replay(design, plan)
    for number, entry in enumerate(entries):
        try:
            replay.take(entry, entries[number + 1 :])
        except _Stop:
            break
        replay.state.apply(entry.kind, entry.body)
    return replay.broken


class _Replay:
    """One ceiling for each opening, fed what is recorded."""

    def __init__(self, design: Design, plan: Plan) -> None:
        self.broken: set[str] = set()
        self.state: RunState = RunState()
        self._design, self._plan = design, plan
        self._limits = limits_of(design)
        self._ceiling = Ceiling(self._limits)
        self._blocks: dict[str, int] = {}
        self._held: dict[str, Usd] = {}
        self._overran = False
        self._said: set[str] = set()

    def take(self, entry: Entry, rest: Sequence[Entry]) -> None:
        body = entry.body
        match entry.kind:
            case Kind.RUN_RESUMED:
                # what is in flight is charged by the entries that follow, before anything is decided
                self._held.clear()
                self._said.clear()
                self._ceiling = self._again(rest)
            case Kind.BLOCK_ADMITTED:
                self._block(body)
            case Kind.BLOCK_ENDED:
                self._ceiling.end_block(body["block"])
            case Kind.ATTEMPT_ADMITTED:
                trial = next(each for each in self._plan.trials() if each.id == body["trial"])
                self._blocks[body["attempt"]] = trial.block
            case Kind.EXCHANGE_ADMITTED:
                self._held[body["exchange"]] = Usd.parse(body["held"])
                denial = self._ceiling.hold(body["exchange"], self._blocks[body["attempt"]], Usd.parse(body["held"]))
                self._refuse("budget.ceiling", denial is not None)
            case Kind.EXCHANGE_ENDED if body["exchange"] in self._held:
                self._ended(body)
            case Kind.EXCHANGE_ENDED if body["overrun"]:
                # of a process that died: charged what was held
                self.broken.add("exchanges.ended")
            case Kind.EXCHANGE_REFUSED if body["reason"] in {reason.id for reason in FOR_MONEY}:
                self._refused(body)
            case Kind.CEILING_REACHED:
                if body not in [_numbers(denial) for denial in self._denials(body, rest)]:
                    self.broken.add("ceiling.disclosed")
                self._said.add(_REASON[Scope(body["scope"])])
            case Kind.RUN_ENDED if body["reason"] in _REASON.values() and body["reason"] not in self._said:
                self.broken.add("ceiling.disclosed")

    def _refuse(self, check: str, broken: bool) -> None:
        if broken:
            self.broken.add(check)
            raise _Stop

    def _again(self, rest: Sequence[Entry]) -> Ceiling:
        """As the authority begins: on what all openings before charged, and said."""
        charged, reached = Counter(self.state.charged), self.state.reached
        models = {attempt.trial: self.state.trial(attempt.trial).cell for attempt in self.state.open.values()}
        for entry in rest:
            if entry.kind is not Kind.EXCHANGE_ENDED or entry.body["outcome"] != "unknown":
                if entry.kind in (Kind.BLOCK_ADMITTED, Kind.ATTEMPT_ADMITTED, Kind.RUN_RESUMED):
                    break
                continue
            cell = models[entry.body["attempt"].partition("/")[0]]
            assert cell is not None and cell.model is not None
            charged[cell.model] += Usd.parse(entry.body["charged"]).pico
        wanted = [Usd.parse(body["wanted"]) for body in reached if body["scope"] == Scope.CEILING]
        refused = next((amount for amount in reversed(wanted) if amount > ZERO), None)
        return Ceiling(self._limits, charged, overran=self._overran, crossed=ZERO in wanted, refused=refused)

    def _block(self, body: Body) -> None:
        drawn = next(
            block
            for block in self._plan.blocks
            if (block.task, block.model, block.epoch) == (body["task"], body["model"], body["epoch"])
        )
        empty = all(self._is_over(trial.id) for trial in drawn.trials())
        denial = self._ceiling.admit_block(drawn.index, drawn.model, empty=empty)
        reserve = ZERO if empty else self._ceiling.reserve_of(drawn.model)
        recorded = str(reserve) if self._limits is not None else None
        self._refuse("budget.blocks", denial is not None or body["reserve"] != recorded)

    def _is_over(self, trial: str) -> bool:
        state = self.state.trial(trial)
        spent = state.outcome is Outcome.INFRASTRUCTURE and state.replaced >= self._design.stage.replacements
        return state.final is not None or trial in self.state.due or spent

    def _ended(self, body: Body) -> None:
        held, charged = self._held.pop(body["exchange"]), Usd.parse(body["charged"])
        overrun = self._ceiling.settle(body["exchange"], charged)
        self._overran = self._overran or overrun
        # a lease that settles for nothing owes nothing, and says of an overrun what the ceiling says
        if (body["outcome"] == "released" and charged > ZERO) or body["overrun"] != overrun:
            self.broken.add("exchanges.ended")
        assert overrun == (charged > held)

    def _refused(self, body: Body) -> None:
        if body["reason"] not in self._said:
            # whoever refuses says it first: the ceiling was never asked
            self.broken.add("ceiling.disclosed")
            return
        exchange = f"{body['attempt']}/refused"
        denial = self._ceiling.hold(exchange, self._blocks[body["attempt"]], Usd.parse(body["held"]))
        if denial is None:
            self._ceiling.settle(exchange, ZERO)
        if denial is None or _REASON[denial.scope] != body["reason"]:
            self.broken.add("ceiling.disclosed")

    def _denials(self, body: Body, rest: Sequence[Entry]) -> Iterator[Denial]:
        """All that the ceiling could say at this moment: of itself, of the next block, of the request that follows."""
        yield from (found for found in (self._ceiling.closed(), self._ceiling.overrun()) if found is not None)
        held = next((e.body for e in rest if e.kind in (Kind.EXCHANGE_REFUSED, Kind.EXCHANGE_ADMITTED)), None)
        if held is not None and held["attempt"] in self._blocks:
            asked = copy.deepcopy(self._ceiling)
            with suppress(ValueError):  # of an opening to come, whose blocks are not open yet
                if (denial := asked.hold("asked", self._blocks[held["attempt"]], Usd.parse(held["held"]))) is not None:
                    yield denial
        blocks = len(self._plan.blocks)
        could = {
            model: denial
            for model in self._design.model_names
            if (denial := copy.deepcopy(self._ceiling).admit_block(blocks, model)) is not None
        }
        yield from could.values()
        # what is said of a rule holds from then on, whatever the numbers are
        alike = [
            model for model, denial in could.items() if (denial.scope, denial.model) == (body["scope"], body["model"])
        ]
        if alike:
            self._ceiling.admit_block(blocks, min(alike, key=lambda model: _numbers(could[model]) != body))


def _numbers(denial: Denial) -> Body:
    amounts = {name: str(getattr(denial, name)) for name in ("spent", "wanted", "limit")}
    return {"scope": denial.scope.value, "model": denial.model, **amounts}
