"""Faults of how things end, each where no other rule would notice: finals, agents, grades; and ends that are sound."""

from __future__ import annotations

from typing import Any

from builder import Story
from plants import Plants
from primitives import Body
from steps import Late, Step

PLANTS = Plants()
plant = PLANTS.before_sealing
SOUND: list[Any] = []


def sound(alter: Any) -> Any:
    """Declare what looks odd, and is no fault."""
    SOUND.append(alter)
    return alter


def _not_started(s: Story) -> str:
    """The attempt that is the last of its trial, was never graded, and has its final all the same."""
    return str(s.find("attempt.ended", exception="sandbox_start_failed").body["attempt"])


def _final_of(s: Story, attempt: str) -> Body:
    final = s.find("trial.final", trial=attempt[:16]).body
    s.finals[attempt[:16]] = final
    return final


# Finals.


@plant("journal.kinds", "a final that names no attempt")
def _(s: Story) -> None:
    _final_of(s, _not_started(s))["attempt"] = None


@plant("finals.agree", "a reward that an ungraded attempt does not have")
def _(s: Story) -> None:
    _final_of(s, _not_started(s))["reward"] = 1


@plant("finals.one", "twice, and they disagree")
def _(s: Story) -> None:
    there = s.find("trial.final", grade="pass")
    s.insert_after(there, Step(there.kind, {**there.body, "grade": "fail", "reason": "wrong_answer"}))


@plant("attempts.joined", "the final of an attempt at a trial that is not planned")
def _(s: Story) -> None:
    final = {"trial": "0" * 16, "attempt": "0" * 16 + "/0", "grade": "pass", "reason": None, "reward": 1}
    s.insert_before(s.find("block.admitted"), Step("trial.final", final))


# The order of beginnings.


@plant("trials.ordered", "one that is drawn later begins, and ends the opening, before one that was never tried")
def _(s: Story) -> None:
    """An opening more, at the begin, in which the first block's second arm alone is tried, and interrupted."""
    begin, second = s.find("block.admitted"), s.find("attempt.admitted", block=0, arm=s.arms(0)[1])
    attempt = second.body["attempt"]
    at, length = s.at(begin), len(s.steps)
    s.add("block.admitted", **dict(begin.body))
    s.attempts[second.body["trial"]] = 0
    s.start(0, s.arms(0)[1])
    s.end(attempt, "interrupted", "interrupted")
    s.add("run.draining", cause="SIGINT")
    counts = {"trials": len(s.planned()), "finals": 0, "pass": 0, "fail": 0, "ungraded": 0}
    s.add("run.ended", exit_status=130, reason="interrupted", complete=False, totals=counts, files=[])
    s.resume(previous_ended=True)
    added = s.steps[length:]
    del s.steps[length:]
    s.steps[at:at] = added
    _again_as(s, second, attempt)


def _again_as(s: Story, admitted: Step, before: str) -> None:
    """What follows is the attempt after the one before, which it supersedes."""
    trial = before[:16]
    new = f"{trial}/1"
    for step in s.steps[s.at(admitted) :]:
        if isinstance(step, Step):
            for name, value in step.body.items():
                if value == before:
                    step.body[name] = new
    folder = admitted.body["folder"]
    moved = folder[:-1] + "1"
    admitted.body.update(number=1, supersedes=before, folder=moved)
    for path in [path for path in s.files if path.startswith(f"{folder}/")]:
        del s.files[path]
    for step in list(s.entries()):
        if step.kind == "attempt.files" and step.body["attempt"] in (before, new):
            s.drop(step)
    graded = s.find("attempt.graded", attempt=new).body
    fields: Body = {"grade": "ungraded", "reason": "reward_missing", "reward": None}
    graded.update(fields, rewards={})
    final = s.find("trial.final", trial=trial).body
    was = final["grade"]
    final.update(fields, attempt=new)
    s.finals[trial] = final
    for end in s.entries():
        if end.kind == "run.ended" and end.body["totals"]["finals"]:
            end.body["totals"][was] -= 1
            end.body["totals"]["ungraded"] += 1


# Ends of agents, of which each exception follows from something else.


def _agent_of(s: Story, exception: str, **ended: Any) -> None:
    """The agent of an attempt that passed ended so, and both its end and its attempt's say what follows from that."""
    attempt = s.find("attempt.graded", grade="pass").body["attempt"]
    body = s.find("agent.ended", attempt=attempt).body
    body.update(ended={**body["ended"], **ended}, exception=exception)
    s.find("attempt.ended", attempt=attempt).body["exception"] = exception


AGENTS: dict[str, tuple[str, Body]] = {
    "an agent that did not start": ("agent_start_failed", {"exit_code": None, "start_error": "no such file"}),
    "an agent that had no time left": ("agent_timeout", {"exit_code": None, "signal": 9, "timed_out": True}),
    "an agent that had no time left and ended well": ("agent_timeout", {"timed_out": True}),
    "an agent that reached its steps": ("step_limit", {"limit_hit": "steps"}),
    "an agent that was idle": ("idle_timeout", {"exit_code": None, "signal": 9, "limit_hit": "idle"}),
    "an agent that a signal ended": ("agent_killed", {"exit_code": None, "signal": 15}),
    "an agent that met a limit of its world": ("agent_killed", {"limit_hit": "memory"}),
    "an agent that ended with an error": ("agent_error", {"exit_code": 3}),
    "an agent that said too much": ("agent_output_capped", {"output_dropped": 1}),
}
for _what, (_exception, _end) in AGENTS.items():

    @sound
    def _(s: Story, exception: str = _exception, ended: Body = _end) -> None:
        _agent_of(s, exception, **ended)

    @plant("agents.ended", f"{_what}, by another name")
    def _(s: Story, ended: Body = _end, exception: str = _exception) -> None:
        _agent_of(s, "agent_error" if exception != "agent_error" else "agent_killed", **ended)


# Grades.


def _regraded(s: Story, was: str, **fields: Any) -> Body:
    """One grade, its final and all totals that count it, in the last opening alone."""
    graded = s.find("attempt.graded", -1, grade=was).body
    graded.update(fields)
    final = s.find("trial.final", trial=graded["attempt"][:16]).body
    final.update({name: value for name, value in fields.items() if name in ("grade", "reason", "reward")})
    s.finals[final["trial"]] = final
    return graded


@plant("grades.recomputed", "another reward than its files have")
def _(s: Story) -> None:
    _regraded(s, "pass", reward=2)


@plant("grades.recomputed", "a verdict file that is none")
def _(s: Story) -> None:
    attempt = s.find("attempt.graded", grade="pass").body["attempt"]
    folder = s.find("attempt.admitted", attempt=attempt).body["folder"]
    s.files[f"{folder}/verifier/reward.txt"] = b"one\n"


@plant("attempts.graded", "a fail without a reason")
def _(s: Story) -> None:
    _regraded(s, "fail", reason=None)


@plant("attempts.assured", "an assurance, and no verifier ended")
def _(s: Story) -> None:
    s.find("attempt.graded", grade="ungraded").body["assurance"] = "live"


@sound
def a_record_that_was_cut_short(s: Story) -> None:
    """What a process that died left of `attempt.json` is kept as it is."""
    lost = s.find("run.recovered").body["lost"][0]
    folder = s.find("attempt.admitted", attempt=lost).body["folder"]
    s.files[f"{folder}/attempt.json"] = b'{"agent":'
    listed = s.find("attempt.files", attempt=lost).body
    was = listed["files"]
    listed["files"] = Late(lambda s: [*s.settled(was), s.fact(f"{folder}/", "attempt.json", role="partial")])
