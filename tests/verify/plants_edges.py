"""Faults at the edges of rules: what belongs to nobody, comes before or after its time, or is off by one."""

from __future__ import annotations

from typing import Any

from builder import Story
from money_stories import money_story
from plants import Alter, Plant, Plants
from primitives import Body
from steps import Step

PLANTS = Plants()
plant = PLANTS.before_sealing
MONEY = Plants(money_story)
of_money = MONEY.before_sealing

NOBODY = "0" * 16 + "/0"


def kinds_of_attempts(s: Story) -> dict[str, Step]:
    """A step of each kind that says what was done in an attempt's name."""
    steps = [step for step in s.entries() if "attempt" in step.body]
    return {step.kind: step for step in steps if step.kind not in ("attempt.admitted", "trial.final")}


def _in_the_name(kind: str, find: Any) -> Alter:
    """The same once more, where nothing is under way, in another attempt's name."""

    def alter(s: Story) -> None:
        there = kinds_of_attempts(s)[kind]
        attempt = find(s)
        body = {**there.body, "attempt": attempt}
        if "exchange" in body:
            body["exchange"] = f"{attempt}/0"
        if kind == "attempt.files":
            body["files"] = []
        s.insert_after(s.find("block.ended"), Step(kind, body))
        s.repack()

    return alter


def _last_ended(s: Story) -> str:
    first = s.at(s.find("block.ended"))
    return [each for each in s.entries()[:first] if each.kind == "attempt.ended"][-1].body["attempt"]


for _plants in (PLANTS, MONEY):
    for _kind in kinds_of_attempts(_plants.story()):
        _nobody = _in_the_name(_kind, lambda s: NOBODY)
        _plants.append(Plant("attempts.admitted", f"{_kind} in the name of nobody", _nobody, story=_plants.story))
        _late = _in_the_name(_kind, _last_ended)
        _plants.append(Plant("attempts.ended", f"{_kind} after the end", _late, story=_plants.story))


# Blocks.


@plant("blocks.admitted", "one that is not planned, before all others")
def _(s: Story) -> None:
    first = s.find("block.admitted")
    s.insert_before(first, Step(first.kind, {**first.body, "task": "another"}))


@of_money("blocks.admitted", "one that is not planned, with a reserve of its own")
def _(s: Story) -> None:
    first = s.find("block.admitted")
    s.insert_before(first, Step(first.kind, {**first.body, "task": "another", "reserve": "0.500000000000"}))


@plant("blocks.ended", "one that is not planned")
def _(s: Story) -> None:
    s.insert_after(s.find("run.paused"), Step("block.ended", {"block": 99}))


@plant("blocks.ended", "one that is as many as are planned")
def _(s: Story) -> None:
    s.insert_after(s.find("run.paused"), Step("block.ended", {"block": 4}))


# Attempts.


def _unplanned(s: Story, number: int) -> None:
    """An attempt at a trial that the design does not plan comes and goes, before anything else begins."""
    attempt = f"{'0' * 16}/{number}"
    like = s.find("attempt.admitted").body
    folder = f"trials/task-00000000/{number}"
    begin = {**like, "attempt": attempt, "trial": "0" * 16, "number": number, "folder": folder}
    end = {"attempt": attempt, "outcome": "infrastructure", "exception": "sandbox_lost", "message": None, "timing": {}}
    s.insert_before(s.find("block.admitted"), Step("attempt.admitted", begin), Step("attempt.ended", end))


for _number in (0, 3):

    @plant("attempts.joined", f"number {_number} of a trial that is not planned")
    def _(s: Story, number: int = _number) -> None:
        _unplanned(s, number)

    @of_money("attempts.joined", f"number {_number} of a trial that is not planned, where money is spent")
    def _(s: Story, number: int = _number) -> None:
        _unplanned(s, number)


@of_money("attempts.joined", "an exchange in the name of a trial that is not planned")
def _(s: Story) -> None:
    _unplanned(s, 0)
    asked, ended = s.find("exchange.admitted").body, s.find("exchange.ended").body
    own = {"attempt": NOBODY, "exchange": f"{NOBODY}/0"}
    refused = s.find("exchange.refused").body
    s.insert_before(
        s.find("attempt.ended"),
        Step("agent.started", {**s.find("agent.started").body, "attempt": NOBODY}),
        Step("exchange.admitted", {**asked, **own, "held": "9.000000000000"}),
        Step("exchange.ended", {**ended, **own, "charged": "9.000000000000"}),
        Step("exchange.refused", {**refused, "attempt": NOBODY}),
    )
    s.repack()


@of_money("attempts.joined", "all that an attempt may be, in the name of a trial that is not planned")
def _(s: Story) -> None:
    _unplanned(s, 0)
    end = s.find("attempt.ended")
    end.body.update(outcome="completed", exception=None)
    s.files["trials/task-00000000/0/attempt.json"] = b"{}"
    derived = s.fact("trials/task-00000000/0/", "attempt.json", role="derived")
    kinds = ("agent.started", "answer.scored", "attempt.graded")
    said = [Step(kind, {**s.find(kind).body, "attempt": NOBODY}) for kind in kinds]
    s.insert_before(end, *said, Step("attempt.files", {"attempt": NOBODY, "files": [derived]}))
    s.repack()


@of_money("journal.recovered", "an opening that begins within an attempt, before its agent does")
def _(s: Story) -> None:
    resumed = s.find("run.resumed")
    lost = s.find("attempt.ended", outcome="lost").body["attempt"]
    s.move_before(s.find("agent.started", attempt=lost), resumed)


@plant("attempts.joined", "an attempt in the folder of another trial's, whose files it does not name")
def _(s: Story) -> None:
    lost = s.find("attempt.ended", outcome="lost").body["attempt"]
    admitted = s.find("attempt.admitted", attempt=lost).body
    del s.files[f"{admitted['folder']}/agent/stdout.log"]
    s.drop(s.find("attempt.files", attempt=lost))
    admitted["folder"] = s.find("attempt.admitted").body["folder"]


def _renamed(s: Story, attempt: str, new: str) -> None:
    """An attempt at a question row by another id, wherever it is named."""

    def other(value: Any) -> Any:
        if isinstance(value, str) and (value == attempt or value.startswith(f"{attempt}/")):
            return new + value[len(attempt) :]
        return value

    for step in s.entries():
        for name, value in step.body.items():
            step.body[name] = other(value)
    for body in s.finals.values():
        for name, value in body.items():
            body[name] = other(value)


def _row_attempt(s: Story) -> Body:
    rows = {task["name"] for task in s.design["tasks"] if task["format"] == "question"}
    return next(step.body for step in s.entries() if step.kind == "attempt.admitted" and step.body["task"] in rows)


@of_money("attempts.joined", "an id that has another number")
def _(s: Story) -> None:
    admitted = _row_attempt(s)
    _renamed(s, admitted["attempt"], f"{admitted['trial']}/1")


@of_money("attempts.numbered", "a number that is left out")
def _(s: Story) -> None:
    admitted = _row_attempt(s)
    _renamed(s, admitted["attempt"], f"{admitted['trial']}/1")
    admitted["number"] = 1
    admitted["folder"] = admitted["folder"][:-1] + "1"


@plant("attempts.numbered", "one more after a completed one, which it says that it supersedes")
def _(s: Story) -> None:
    completed = s.find("trial.final").body
    length = len(s.steps)
    again = s.start(0, "arm-0", supersedes=completed["attempt"])
    s.grade(again, "pass", 1)
    s.end(again)
    added = s.steps[length:]
    del s.steps[length:]
    first = s.find("trial.final")
    s.insert_before(first, *added)
    first.body["attempt"] = again


@plant("attempts.numbered", "two at a time, of which none takes the other's place")
def _(s: Story) -> None:
    first = s.find("attempt.ended", outcome="infrastructure")
    s.drop(first)
    second = s.find("attempt.admitted", replaces=first.body["attempt"])
    second.body["replaces"] = None
    s.insert_after(second, first)


@plant("blocks.ended", "one that is not planned, when the last that is planned is about to end")
def _(s: Story) -> None:
    last = s.drawn().index(max(s.drawn(), key=lambda place: (place[0], place[2])))
    s.insert_before(s.find("block.ended", block=last), Step("block.ended", {"block": 99}))


PLANTS += MONEY
