"""Ends of generated attempts and runs: graded as the runner grades, and counted as it counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from primitives import Body
from steps import Late, Step

from proctor.core.outcomes import Outcome
from proctor.evidence.fold import RunState
from proctor.evidence.kinds import Kind
from proctor.grading.files import Absent, Content, VerdictFiles
from proctor.grading.grade import Assurance, VerifierOutcome, grade
from proctor.grading.scorers.base import partly
from proctor.grading.solved import DuplicateTests
from proctor.grading.verdicts import read_verdicts
from proctor.rollout.verdict import as_entry
from proctor.runner.derived import derived_files
from proctor.study.plan import Trial

if TYPE_CHECKING:
    from builder import Story
    from runs import Going, Maker

# At the thresholds of the rules, as scripts write them.
TEXTS = (b"0.5", b"5e-1", b"0.50000000000000001", b"0.49999999999999994", b"1", b"1.0\n", b" .1", b"0", b"-0.0", b"x")
DOCUMENTS = (b'{"acc":1}', b'{"acc":0.9999999999999999,"reward":0.5}', b'{"reward":1,"acc":true}', b"{}", b"[1]")
NUMBERS = (0, 1, 0.5, 0.49999999999999994, 0.1, 1.0000000000000002)
_ENDED: Body = {
    **{"exit_code": 0, "signal": None, "timed_out": False, "output_bytes": 0, "output_dropped": 0},
    **{"leftovers": 0, "limit_hit": None, "start_error": None},
}


def finish(maker: Maker, going: Going) -> None:
    """Ends an attempt in one of the ways that count, and its trial and block where that is all."""
    from made_exchanges import answer

    for exchange in list(going.flying):
        answer(maker, going, exchange)
        if maker.over:
            return
    maker.going.remove(going)
    if going.stop is not None:
        _graded(maker, going, {"grade": "ungraded", "reason": going.stop, "reward": None, "rewards": {}}, None)
        end(maker, going, Outcome.COMPLETED, going.stop)
    elif maker.draw(st.integers(0, 4)) == 0:
        exception = "internal_error" if going.row else "sandbox_lost"
        end(maker, going, Outcome.INFRASTRUCTURE, exception)
        if not maker.is_spent(going.trial) or maker.off("replaced"):
            maker.again.append((maker.plan.blocks[going.trial.block], going.trial))
            return
        say_final(maker, going.trial, {"grade": "ungraded", "reason": exception, "reward": None})
    else:
        _grade(maker, going)
        end(maker, going, Outcome.COMPLETED, None)
    if going.trial.id in maker.state.due:
        say_final(maker, going.trial, maker.state.due[going.trial.id]._asdict())
    block = maker.plan.blocks[going.trial.block]
    if not maker.left_of(block):
        maker.end_block(block)


def _grade(maker: Maker, going: Going) -> None:
    maker.story.add("agent.ended", attempt=going.id, exception=None, ended=dict(_ENDED), duration_ns=5)
    if going.row:
        reward = maker.draw(st.sampled_from(NUMBERS))
        text = maker.story.blob(b"An answer.\n")
        maker.story.add("answer.scored", attempt=going.id, answer=text, scorer="exact", detail="this with that")
        scored = partly(reward, "", {"acc": 1} if maker.draw(st.booleans()) else {})
        _graded(maker, going, as_entry(scored.grade(maker.rule)), None)
        return
    folder = going.folder
    maker.story.add("attempt.boundary", attempt=going.id, boundary="pre-verify")
    maker.story._world(going.id, "verifier")
    outcome = VerifierOutcome(maker.draw(st.sampled_from((0, 0, 1, 124, 137, 126))))
    ended = {**_ENDED, "exit_code": outcome.exit_code}
    maker.story.add("verifier.ended", attempt=going.id, assurance="isolated", ended=ended, duration_ns=5)
    found, listed = {}, []
    for name, contents in (("reward.txt", TEXTS), ("reward.json", DOCUMENTS)):
        if maker.draw(st.integers(0, 2)):
            found[name] = maker.draw(st.sampled_from(contents))
            maker.story.files[f"{folder}/verifier/{name}"] = found[name]
            listed.append((f"verifier/{name}", "source"))
    maker.story.list_files(going.id, listed)
    files = VerdictFiles(*(Content(found[n]) if n in found else Absent() for n in ("reward.txt", "reward.json")))
    graded = grade(
        read_verdicts(files),
        outcome,
        rule=maker.rule,
        duplicate_tests=DuplicateTests.REFUSE,
        assurance=Assurance.ISOLATED,
    )
    _graded(maker, going, as_entry(graded), "isolated")


def _graded(maker: Maker, going: Going, said: Body, assurance: str | None) -> None:
    body = {**said, "assurance": assurance, "tests": None, "disclosures": []}
    if going.stop is None and maker.off("grade"):
        body |= _otherwise(body)
    if body["reward"] is not None:
        body["reward"] += maker.off("reward")
    # canonical JSON knows no 1.0
    body["reward"] = _whole(body["reward"])
    body["rewards"] = {name: _whole(number) for name, number in body["rewards"].items()}
    maker.state.apply(Kind.ATTEMPT_GRADED, {**body, "attempt": going.id})
    maker.story.add("attempt.graded", attempt=going.id, **body)


def _whole(number: float | None) -> float | None:
    return int(number) if number is not None and number == int(number) else number


def _otherwise(body: Body) -> Body:
    if body["grade"] == "pass":
        return {"grade": "fail", "reason": "below_threshold"}
    return {"grade": "pass", "reason": None} if body["grade"] == "fail" else {"reason": "verifier_crashed"}


def end(maker: Maker, going: Going, outcome: Outcome, exception: str | None) -> None:
    """Ends it on the record, with its `attempt.json`."""
    if going.lease is not None and outcome is not Outcome.LOST:
        going.lease.end()
    maker.story.end(going.id, outcome.value, exception)
    maker.state.apply(Kind.ATTEMPT_ENDED, {"attempt": going.id, "outcome": outcome.value, "exception": exception})
    path = f"{going.folder}/attempt.json"
    if path in maker.story.files and maker.off("attempt"):
        was = maker.story.files[path]
        maker.story.files[path] = Late(lambda s: s.settled(was).replace(b'"boundaries":[', b'"boundaries":["x",'))


def say_final(maker: Maker, trial: Trial, said: Body) -> None:
    """The trial's final, of its last attempt."""
    attempt = f"{trial.id}/{maker.state.trial(trial.id).attempts - 1}"
    body = {name: said[name] for name in ("grade", "reason", "reward")}
    if maker.off("final"):
        body |= _otherwise(body)
    maker.story.finals[trial.id] = body
    maker.state.apply(Kind.TRIAL_FINAL, {"trial": trial.id, "attempt": attempt, **body})
    maker.story.add("trial.final", trial=trial.id, attempt=attempt, **body)


def stop(maker: Maker, status: int, reason: str | None) -> Step:
    """The end of an opening, with the derived files that the runner makes of what is recorded so far."""
    step = maker.story.stop(status, reason)
    for name in ("grade_summary.json", "summary.json"):
        maker.story.files[name] = Late(lambda s, name=name: _derived(maker, s, step)[name])
    return step


def _derived(maker: Maker, story: Story, last: Step) -> dict[str, bytes]:
    state = RunState()
    for step in story.entries():
        if step is last:
            break
        kind = Kind.by_id(step.kind)
        if kind is not None and kind is not Kind.RUN_ENDED and step.body:
            state.apply(kind, story.settled(step.body))
    return derived_files(maker.design, maker.plan, state)


def misstated(maker: Maker, step: Step) -> None:
    """What an end says otherwise than it is."""
    totals, complete, summary = maker.off("totals"), maker.off("complete"), maker.off("summary")

    def after(entry: dict[str, Any]) -> None:
        body = entry["body"]
        body["totals"]["finals"] = max(0, body["totals"]["finals"] + totals)
        body["complete"] ^= bool(complete)

    step.after = after
    if summary:
        was = maker.story.files["summary.json"]
        maker.story.files["summary.json"] = Late(lambda s: s.settled(was).replace(b'"format":1', b'"format":2'))
