"""Faults of blocks, attempts, finals and totals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from builder import Story
from plants import Plant, Plants
from steps import Step
from stories import full_story

PLANTS = Plants()
plant = PLANTS.before_sealing

# Blocks and attempts.


@plant("blocks.admitted", "never")
def _(s: Story) -> None:
    s.drop(s.find("block.admitted"))


@plant("blocks.admitted", "in an earlier opening alone")
def _(s: Story) -> None:
    s.drop(s.find("block.admitted", -1, block=2))


@plant("blocks.admitted", "twice in one opening")
def _(s: Story) -> None:
    first = s.find("block.admitted")
    s.insert_after(first, Step(first.kind, dict(first.body)))


@plant("blocks.admitted", "after its end")
def _(s: Story) -> None:
    s.insert_after(s.find("run.paused"), Step("block.admitted", dict(s.find("block.admitted").body)))


@plant("blocks.admitted", "one that is not planned")
def _(s: Story) -> None:
    planned = s.find("block.admitted").body
    s.insert_after(s.find("run.paused"), Step("block.admitted", {**planned, "task": "another"}))


@plant("blocks.drawn", "at another place")
def _(s: Story) -> None:
    s.find("block.admitted").body["block"] = 1


@plant("blocks.ended", "no end")
def _(s: Story) -> None:
    s.drop(s.find("block.ended"))


@plant("blocks.ended", "twice")
def _(s: Story) -> None:
    s.insert_after(s.find("run.paused"), Step("block.ended", {"block": 0}))


@plant("blocks.ended", "before its last final")
def _(s: Story) -> None:
    s.move_before(s.find("trial.final", 1), s.find("block.ended"))


@plant("attempts.admitted", "a sandbox before the admission")
def _(s: Story) -> None:
    early = s.find("sandbox.started")
    s.insert_before(s.find("attempt.admitted"), Step(early.kind, dict(early.body)))


@plant("attempts.admitted", "done in the name of nobody")
def _(s: Story) -> None:
    nobody = {"attempt": "0" * 16 + "/0", "boundary": "env-ready"}
    s.insert_after(s.find("run.paused"), Step("attempt.boundary", nobody))


@plant("attempts.joined", "another arm")
def _(s: Story) -> None:
    s.find("attempt.admitted").body["arm"] = "arm-1"


@plant("attempts.joined", "an arm that is not planned")
def _(s: Story) -> None:
    s.find("attempt.admitted").body["arm"] = "arm-9"


@plant("attempts.joined", "another epoch")
def _(s: Story) -> None:
    body = s.find("attempt.admitted").body
    body["epoch"] = 3 - body["epoch"]


@plant("attempts.joined", "a model where there is none")
def _(s: Story) -> None:
    s.find("attempt.admitted").body["model"] = "model-0"


@plant("attempts.joined", "another block")
def _(s: Story) -> None:
    s.find("attempt.admitted").body["block"] = 3


def _elsewhere(what: str, number: int, name: str) -> None:
    """An attempt's folder, and all in it, under another name."""

    def of(story: Story) -> Step:
        return story.find("attempt.admitted", number=number)

    old = of(full_story()).body["folder"]
    new = f"trials/{name.format(old.split('/')[1][-8:])}/{number}"

    def move(folder: Path) -> None:
        (folder / new).parent.mkdir()
        (folder / old).rename(folder / new)
        if not any((folder / old).parent.iterdir()):
            (folder / old).parent.rmdir()

    PLANTS.append(Plant("attempts.joined", what, lambda s: of(s).body.update(folder=new), move))


_elsewhere("a folder of another trial's digits", 0, "task-arm-1-00000000")
_elsewhere("a folder that is no trial's", 0, "task")
_elsewhere("another folder than that of the attempt before", 1, "again-{}")


@plant("attempts.joined", "the final of a trial that is not planned")
def _(s: Story) -> None:
    final = {"trial": "0" * 16, "attempt": "0" * 16 + "/0", "grade": "ungraded", "reason": "not_run", "reward": None}
    s.insert_after(s.find("run.paused"), Step("trial.final", final))


@plant("attempts.numbered", "does not say which lost attempt it supersedes")
def _(s: Story) -> None:
    superseding = next(step for step in s.steps if isinstance(step, Step) and step.body.get("supersedes"))
    superseding.body["supersedes"] = None


@plant("attempts.numbered", "calls a replacement superseding")
def _(s: Story) -> None:
    body = next(step for step in s.steps if isinstance(step, Step) and step.body.get("replaces")).body
    body["supersedes"], body["replaces"] = body["replaces"], None


@plant("attempts.numbered", "a first attempt that replaces another's")
def _(s: Story) -> None:
    s.find("attempt.admitted", 1).body["replaces"] = s.find("attempt.admitted", 0).body["attempt"]


@plant("attempts.numbered", "more replacements than the design allows")
def _(s: Story) -> None:
    s.design["stage"]["replacements"] = 0


@plant("attempts.numbered", "one more after a completed one")
def _(s: Story) -> None:
    first = s.find("trial.final")
    again = _moved(s, first, lambda: _once_more(s, index=0, arm="arm-0", final=False))
    first.body["attempt"] = again


@plant("attempts.numbered", "one more in the opening in which the one before was interrupted")
def _(s: Story) -> None:
    stopped = s.find("attempt.ended", outcome="infrastructure").body
    stopped.update(outcome="interrupted", exception="interrupted")
    s.find("attempt.admitted", replaces=stopped["attempt"]).body.update(replaces=None, supersedes=stopped["attempt"])


@plant("attempts.numbered", "two at a time")
def _(s: Story) -> None:
    first = s.find("attempt.ended", outcome="infrastructure")
    s.move_after(s.find("attempt.admitted", replaces=first.body["attempt"]), first)


def _swap(s: Story, first: Step, second: Step, end: Step) -> None:
    """What goes from the second step up to the end comes before what goes from the first up to the second."""
    a, b, c = s.at(first), s.at(second), s.at(end)
    s.steps[a:c] = [*s.steps[b:c], *s.steps[a:b]]


@plant("trials.ordered", "the arms of a block the other way round")
def _(s: Story) -> None:
    first, second = (s.find("attempt.admitted", block=3, arm=arm) for arm in s.arms(3))
    _swap(s, first, second, s.find("block.ended", block=3))


@plant("trials.ordered", "a block before its turn")
def _(s: Story) -> None:
    _swap(s, s.find("block.admitted", -1, block=2), s.find("block.admitted", block=3), s.find("run.ended", -1))


@plant("trials.ordered", "what was interrupted is taken up after what is new")
def _(s: Story) -> None:
    interrupted = s.find("attempt.ended", outcome="interrupted").body["attempt"]
    first = s.find("attempt.admitted", supersedes=interrupted)
    second = s.find(
        "attempt.admitted", trial=s.find("attempt.ended", exception="sandbox_start_failed").body["attempt"][:16]
    )
    _swap(s, first, second, s.find("block.ended", block=2))


@plant("attempts.phases", "an agent ends that did not start")
def _(s: Story) -> None:
    s.drop(s.find("agent.started", 1))


@plant("attempts.phases", "an agent ends twice")
def _(s: Story) -> None:
    there = s.find("agent.ended")
    s.insert_after(there, Step(there.kind, dict(there.body)))


@plant("attempts.phases", "an agent starts twice")
def _(s: Story) -> None:
    there = s.find("agent.started")
    s.insert_after(there, Step(there.kind, dict(there.body)))


@plant("attempts.graded", "twice")
def _(s: Story) -> None:
    there = s.find("attempt.graded")
    s.insert_after(there, Step(there.kind, {**there.body, "grade": "fail", "reason": "below_threshold", "reward": 0}))


@plant("attempts.graded", "completed without a grade")
def _(s: Story) -> None:
    there = s.find("attempt.graded", grade="ungraded")
    s.drop(there)
    trial = there.body["attempt"][:16]
    s.finals[trial]["reason"] = s.find("trial.final", trial=trial).body["reason"] = "not_graded"


@plant("attempts.graded", "graded, and ended by infrastructure all the same")
def _(s: Story) -> None:
    attempt = s.find("attempt.graded", grade="fail").body["attempt"]
    s.find("attempt.ended", attempt=attempt).body.update(outcome="infrastructure", exception="sandbox_lost")


@plant("attempts.graded", "a pass with a reason")
def _(s: Story) -> None:
    for kind in ("attempt.graded", "trial.final"):
        s.find(kind, grade="pass").body["reason"] = "below_threshold"
    s.finals[s.find("trial.final").body["trial"]] = s.find("trial.final").body


@plant("attempts.ended", "twice")
def _(s: Story) -> None:
    there = s.find("attempt.ended")
    s.insert_after(there, Step(there.kind, dict(there.body)))


@plant("attempts.ended", "something after the end")
def _(s: Story) -> None:
    attempt = s.find("attempt.ended").body["attempt"]
    s.insert_after(s.find("run.paused"), Step("attempt.boundary", {"attempt": attempt, "boundary": "post-verify"}))


@plant("flight.empty", "an attempt in flight when the opening ends")
def _(s: Story) -> None:
    s.move_after(s.find("run.resumed", 1), s.find("attempt.ended", outcome="interrupted"))


# Finals and totals.


def _once_more(s: Story, index: int, arm: str, *, final: bool, **links: Any) -> str:
    attempt = s.start(index, arm, **links)
    s.grade(attempt, "pass", 1)
    s.end(attempt)
    if final:
        s.final(attempt)
    return attempt


def _moved(s: Story, before: Step, make: Callable[[], str]) -> str:
    """Lets a story go on at its end, and moves what that adds to before a step."""
    length = len(s.steps)
    attempt = make()
    added = s.steps[length:]
    del s.steps[length:]
    s.insert_before(before, *added)
    return attempt


@plant("finals.one", "twice")
def _(s: Story) -> None:
    there = s.find("trial.final")
    s.insert_after(there, Step(there.kind, dict(there.body)))


@plant("finals.one", "an attempt after it")
def _(s: Story) -> None:
    third = s.find("attempt.ended", exception="sandbox_start_failed").body["attempt"]
    _moved(
        s,
        s.find("block.ended", block=2),
        lambda: _once_more(s, index=2, arm="arm-1", final=False, replaces=third),
    )


@plant("finals.one", "while its attempt is open")
def _(s: Story) -> None:
    s.move_before(s.find("attempt.ended"), s.find("trial.final"))


@plant("finals.one", "of an attempt that is not the last")
def _(s: Story) -> None:
    replaced = s.find("attempt.ended", outcome="infrastructure").body["attempt"]
    s.find("trial.final", trial=replaced[:16]).body["attempt"] = replaced


@plant("finals.agree", "another reward")
def _(s: Story) -> None:
    final = s.find("trial.final").body
    final["reward"] = 2
    s.finals[final["trial"]] = final


@plant("finals.agree", "another reason")
def _(s: Story) -> None:
    final = s.find("trial.final", grade="fail").body
    final["reason"] = "tests_failed"
    s.finals[final["trial"]] = final


@plant("finals.agree", "a reason that an ungraded attempt does not have")
def _(s: Story) -> None:
    final = s.find("trial.final", grade="ungraded", reason="not_graded").body
    final["reason"] = "tests_failed"
    s.finals[final["trial"]] = final


@plant("finals.agree", "of an attempt that was interrupted")
def _(s: Story) -> None:
    third = s.find("attempt.ended", exception="sandbox_start_failed")
    third.body |= {"outcome": "interrupted", "exception": "interrupted"}


@plant("totals.agree", "another count")
def _(s: Story) -> None:
    s.find("run.ended").body["totals"]["pass"] += 1


@plant("totals.agree", "complete before it is")
def _(s: Story) -> None:
    s.find("run.ended").body["complete"] = True


@plant("status.agrees", "0 with an ungraded final")
def _(s: Story) -> None:
    s.find("run.ended", -1).body["exit_status"] = 0


@plant("status.agrees", "1 before it is complete")
def _(s: Story) -> None:
    s.find("run.ended", 0).body["exit_status"] = 1
