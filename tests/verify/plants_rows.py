"""Question rows at the edges of the rules of answers and grades: under any rule, and what stopped short after all."""

from __future__ import annotations

from builder import Story
from designs import make_design, make_task
from money_stories import money_story
from plants import Plants
from primitives import Body, Signer
from steps import Step


def rows_story(signer: Signer | None = None) -> Story:
    """A run of one question row, in a study in which test reports decide of everything else."""
    design = make_design(tasks=0, epochs=1)
    design["tasks"] = [make_task("row-0", row=True)]
    design["questions"] = {"path": "units.jsonl", "sha256": "0" * 64, "scorer": "exact", "scorer_timeout_sec": 10}
    design["grading"]["solved"] = "tests"
    s = Story(design, signer=signer or Signer())
    s.admit()
    s.checkpoint()
    s.block(0)
    for arm in s.arms(0):
        attempt = s.start(0, arm)
        s.grade(attempt, "pass", 1)
        s.end(attempt)
        s.final(attempt)
    s.add("block.ended", block=0)
    s.stop(0)
    s.checkpoint(named=False)
    return s


PLANTS = Plants(rows_story)
MONEY = Plants(money_story)


def rows_alone(s: Story) -> None:
    """No fault: a scorer's own word decides."""


def a_scorer_that_failed(s: Story) -> None:
    """No fault: there is an answer, and no reward of it."""
    graded = s.find("attempt.graded").body
    _regraded(s, graded["attempt"], "scorer_failed")
    s.find("run.ended").body["exit_status"] = 1


def a_scorer_that_said_something_else(s: Story) -> None:
    """No fault: there is a reward, and not the one that is asked for."""
    attempt = s.find("attempt.graded").body["attempt"]
    _regraded(s, attempt, "reward_key_missing")
    s.find("attempt.graded", attempt=attempt).body["rewards"] = {"style": 1}
    s.find("run.ended").body["exit_status"] = 1


def _regraded(s: Story, attempt: str, reason: str) -> None:
    """What passed is ungraded."""
    said = {"grade": "ungraded", "reason": reason, "reward": None}
    s.find("attempt.graded", attempt=attempt).body.update(said, rewards={})
    final = s.find("trial.final", attempt=attempt).body
    final.update(said)
    s.finals[attempt[:16]] = final
    totals = s.find("run.ended").body["totals"]
    totals["pass"] -= 1
    totals["ungraded"] += 1


COUNTS: Body = {
    **dict.fromkeys(("all_fail", "all_skip", "all_other", "mixed", "last_row_fails", "duplicates"), 0),
    **dict.fromkeys(("rows", "identities", "all_pass"), 2),
}
SOUND = (rows_alone, a_scorer_that_failed, a_scorer_that_said_something_else)


@PLANTS.before_sealing("grades.recomputed", "a row whose tests are counted")
def _(s: Story) -> None:
    s.find("attempt.graded").body["tests"] = COUNTS


for _name, _value in (("rewards", {"reward": 1}), ("reward", 1), ("tests", COUNTS)):

    @MONEY.before_sealing("grades.recomputed", f"{_name} of an attempt that was stopped short")
    def _(s: Story, name: str = _name, value: object = _value) -> None:
        graded = s.find("attempt.graded", reason="ceiling_reached").body
        graded[name] = value
        final = s.find("trial.final", attempt=graded["attempt"]).body
        final["reward"] = graded["reward"]
        s.finals[final["trial"]] = final


@MONEY.before_sealing("grades.recomputed", "a row that failed, under a rule that wants less")
def _(s: Story) -> None:
    s.design["grading"]["solved"] = "reward >= 0.25"


@MONEY.before_sealing("grades.recomputed", "stopped short, and its verifier came to an end")
def _(s: Story) -> None:
    attempt = s.find("verifier.ended").body["attempt"]
    model = s.find("attempt.admitted", attempt=attempt).body["model"]
    refused = s.find("exchange.refused", reason="feature_unpriced").body
    told = {**refused, "attempt": attempt, "model": model, "reason": "model_not_listed"}
    s.insert_before(s.find("agent.ended", attempt=attempt), Step("exchange.refused", told))
    s.find("attempt.ended", attempt=attempt).body["exception"] = "model_not_listed"
    _regraded(s, attempt, "model_not_listed")


@MONEY.before_sealing("answers.scored", "after a grade that says that nothing was scored")
def _(s: Story) -> None:
    graded = s.find("attempt.graded", reason="ceiling_reached")
    answer = {**s.find("answer.scored").body, "attempt": graded.body["attempt"]}
    s.insert_after(graded, Step("answer.scored", answer))


@MONEY.before_sealing("attempts.numbered", "an attempt at a row, twice")
def _(s: Story) -> None:
    rows = {task["name"] for task in s.design["tasks"] if task["format"] == "question"}
    first = next(step for step in s.entries() if step.kind == "attempt.admitted" and step.body["task"] in rows)
    s.insert_after(first, Step(first.kind, dict(first.body)))


@MONEY.before_sealing("answers.scored", "after a grade of a row that says that nothing was scored")
def _(s: Story) -> None:
    scored = s.find("answer.scored")
    attempt = scored.body["attempt"]
    refused = {**s.find("exchange.refused", reason="feature_unpriced").body, "attempt": attempt}
    s.insert_before(s.find("agent.ended", attempt=attempt), Step("exchange.refused", refused))
    graded = s.find("attempt.graded", attempt=attempt)
    s.drop(scored)
    s.insert_after(graded, scored)
    said = {"grade": "ungraded", "reason": "feature_unpriced", "reward": None}
    graded.body.update(said, rewards={})
    s.find("attempt.ended", attempt=attempt).body["exception"] = "feature_unpriced"
    s.finals[attempt[:16]] = s.find("trial.final", attempt=attempt).body
    s.finals[attempt[:16]].update(said)
    totals = s.find("run.ended").body["totals"]
    totals.update({"pass": totals["pass"] - 1, "ungraded": totals["ungraded"] + 1})


PLANTS += MONEY
