"""Finals and ends at the edges of their rules: one side of each `and` and `or`."""

from __future__ import annotations

from builder import Story
from plants import Plants
from primitives import Body
from steps import Step

PLANTS = Plants()
plant = PLANTS.before_sealing


def _final_of(s: Story, attempt: str) -> Body:
    body = s.find("trial.final", trial=attempt[:16]).body
    s.finals[attempt[:16]] = body
    return body


def _recount(s: Story, was: str, now: str) -> None:
    totals = s.find("run.ended", -1).body["totals"]
    totals[was] -= 1
    totals[now] += 1


@plant("finals.one", "of an attempt that is not the last, and says what no attempt says")
def _(s: Story) -> None:
    replaced = s.find("attempt.ended", outcome="infrastructure").body["attempt"]
    _final_of(s, replaced).update(attempt=replaced, reason="verifier_killed")


@plant("finals.agree", "a fail that is no grade")
def _(s: Story) -> None:
    third = s.find("attempt.ended", exception="sandbox_start_failed").body["attempt"]
    _final_of(s, third).update(grade="fail")
    _recount(s, "ungraded", "fail")


@plant("finals.one", "of a trial that was never tried")
def _(s: Story) -> None:
    """The last of all that begin fails, and what is left of it is a final that excludes it."""
    admitted = s.find("attempt.admitted", -1).body
    for step in s.entries():
        if step.kind != "trial.final" and step.body.get("attempt") == admitted["attempt"]:
            s.drop(step)
    for path in [path for path in s.files if path.startswith(admitted["folder"])]:
        del s.files[path]
    s.repack()
    final = _final_of(s, admitted["attempt"])
    _recount(s, str(final["grade"]), "ungraded")
    final.update(grade="ungraded", reason="not_graded", reward=None)


def _one_more_end(s: Story, exit_status: int, reason: str | None) -> None:
    """An opening more, at the begin, in which nothing was begun."""
    counts = {"trials": len(s.planned()), "finals": 0, "pass": 0, "fail": 0, "ungraded": 0}
    ended = {"exit_status": exit_status, "reason": reason, "complete": False, "totals": counts, "files": []}
    resumed = s.resume(previous_ended=True)
    s.drop(resumed)
    s.insert_before(s.find("block.admitted"), Step("run.ended", ended), resumed)


@plant("status.agrees", "0 before anything was done")
def _(s: Story) -> None:
    _one_more_end(s, 0, None)


@plant("status.agrees", "1 where it only prepared")
def _(s: Story) -> None:
    _one_more_end(s, 1, "prepared_only")


@plant("status.agrees", "only prepared, and all is there already")
def _(s: Story) -> None:
    last = s.find("run.ended", -1).body
    s.resume(previous_ended=True)
    s.add("checkpoint.made")
    s.add("run.ended", **{**last, "exit_status": 0, "reason": "prepared_only"})
    s.checkpoint(named=False)


def broken_within(s: Story) -> None:
    """No fault: an opening ended for a fault of the program, and drained for nothing."""
    _one_more_end(s, 5, "internal_error")


def interrupted_in_a_drain(s: Story) -> None:
    """No fault: while it drained for its deadline it was cancelled, and stopped with the status of a stop."""
    _one_more_end(s, 4, "interrupted")


SOUND = (
    broken_within,
    interrupted_in_a_drain,
)
