"""Faults of what entries say: words that there are not, and entries that contradict the design or each other."""

from __future__ import annotations

from typing import Any

from builder import Story
from plants import Plants
from steps import Step

PLANTS = Plants()
plant = PLANTS.before_sealing


def _shape(what: str, kind: str, *path: str, value: Any) -> None:
    """A value that a field at this path of a body cannot have."""

    @plant("journal.kinds", f"{kind}: {what}")
    def _(s: Story) -> None:
        at = s.find(kind).body
        for key in path[:-1]:
            at[key] = dict(at[key]) if isinstance(at[key], dict) else list(at[key])
            at = at[key]
        at[path[-1]] = value


for field, values in {
    "exit_code": (True, 0.5, -1, 256, 2**53 - 1, "0"),
    "signal": (0, 65, False),
    "timed_out": (None, 0),
    "output_bytes": (-1, True, 1.5, None),
    "leftovers": (-1, None),
    "limit_hit": (7,),
    "start_error": (False,),
}.items():
    for value in values:
        _shape(f"ended.{field} is {value!r}", "verifier.ended", "ended", field, value=value)
_shape("neither a status nor a signal", "verifier.ended", "ended", "exit_code", value=None)
_shape("both a status and a signal", "agent.ended", "ended", "signal", value=9)
_shape("nothing", "verifier.ended", "ended", value={})
_shape("a word for a pid", "run.admitted", "opening", "pid", value="7")
_shape("pid 0", "run.admitted", "opening", "pid", value=0)
_shape("no fingerprint", "run.admitted", "key", "fingerprint", value="sha256:12")
_shape("a version that is and is not there", "agent.started", "version", "available", value=False)
_shape("a version without a field", "agent.started", "version", value={"available": True, "value": "1"})
_shape("a limit without a reason", "sandbox.started", "limits", value=[{"name": "pids", "wanted": 1}])
_shape(
    "a limit of true",
    "sandbox.started",
    "limits",
    value=[{"name": "pids", "wanted": None, "enforced": True, "how": "x", "why_not": None}],
)
_shape("no facts", "sandbox.started", "facts", value={})
_shape("a network that there is not", "sandbox.started", "facts", value={"kind": "namespace", "network": "wide"})
_shape("a stand-in without a root", "sandbox.started", "base_substituted", value={"image": "debian"})
_shape(
    "counts that do not add up",
    "attempt.graded",
    "tests",
    value={
        **dict.fromkeys(("rows", "identities", "all_fail", "all_skip", "all_other", "mixed"), 0),
        **dict.fromkeys(("last_row_fails", "duplicates"), 0),
        "all_pass": 100,
    },
)
_shape("other counts", "attempt.graded", "tests", value={"passed": 100})
_shape("an assurance that there is not", "verifier.ended", "assurance", value="total")
_shape("a reason that there is not", "attempt.graded", "reason", value="because")
_shape("an exception that there is not", "agent.ended", "exception", value="bad_luck")
_shape("an exception that there is not", "attempt.ended", "exception", value="")
_shape("a reason that there is not", "run.ended", "reason", value="nonsense")
_shape("a cause that there is not", "run.draining", "cause", value="SIGKILL")
for status in (-1, 2, 3, 6, 131, 2**53 - 1, True, 5.5, "0"):
    _shape(f"exit status {status!r}", "run.ended", "exit_status", value=status)
for time in ("2031-02-29T00:00:00.000000Z", "2031-04-31T00:00:00.000000Z", "0000-01-01T00:00:00.000000Z", ""):

    @plant("journal.kinds", f"a time that there is not: {time!r}")
    def _(s: Story, time: str = time) -> None:
        s.find("run.paused").after = lambda entry: entry.update(time=time)


# Agents and worlds, against the design.


@plant("agents.planned", "another agent")
def _(s: Story) -> None:
    s.find("agent.started").body["agent"] = "nop"


@plant("agents.planned", "other settings")
def _(s: Story) -> None:
    s.find("agent.started").body["settings"] = {"hint": 1}


@plant("agents.planned", "settings of another arm")
def _(s: Story) -> None:
    own = {"name": "oracle", "settings": {"hint": True}, "timeout_sec": 60}
    s.design["arms"][0]["agent"] = own
    arms = {step.body["attempt"]: step.body["arm"] for step in s.entries() if step.kind == "attempt.admitted"}
    for step in s.entries():
        if step.kind == "agent.started" and arms[step.body["attempt"]] == "arm-0":
            step.body["settings"] = {"hint": True}
    # 1 is no true, even where a language says so
    s.find("agent.started", settings={"hint": True}).body["settings"] = {"hint": 1}


@plant("agents.planned", "a skill that the arm does not have")
def _(s: Story) -> None:
    s.find("agent.started").body["skills"] = [{"name": "x", "sha256": "0" * 64}]


@plant("agents.planned", "another digest of a skill")
def _(s: Story) -> None:
    s.design["arms"][0]["skills"] = [{"name": "x", "sha256": "1" * 64, "path": "x", "files": []}]
    arms = {step.body["attempt"]: step.body["arm"] for step in s.entries() if step.kind == "attempt.admitted"}
    started = [step for step in s.entries() if step.kind == "agent.started" and arms[step.body["attempt"]] == "arm-0"]
    for step in started:
        step.body["skills"] = [{"name": "x", "sha256": "1" * 64}]
    started[0].body["skills"] = [{"name": "x", "sha256": "2" * 64}]


@plant("agents.planned", "a later deadline")
def _(s: Story) -> None:
    s.find("agent.started").body["timeout_sec"] = 60.5


@plant("agents.planned", "no deadline")
def _(s: Story) -> None:
    s.find("agent.started").body["timeout_sec"] = None


@plant("agents.planned", "a deadline of nothing")
def _(s: Story) -> None:
    s.find("agent.started").body["timeout_sec"] = 0


@plant("agents.ended", "a timeout that its end does not bear out")
def _(s: Story) -> None:
    s.find("agent.ended").body["exception"] = s.find("attempt.ended").body["exception"] = "agent_timeout"


@plant("agents.ended", "an exception that is hidden")
def _(s: Story) -> None:
    _agent(s, exit_code=1)


@plant("agents.ended", "the attempt's end hides the agent's exception")
def _(s: Story) -> None:
    _agent(s, exit_code=None, signal=9, timed_out=True)
    s.find("agent.ended").body["exception"] = "agent_timeout"


@plant("agents.ended", "the attempt's end has an exception that the agent does not")
def _(s: Story) -> None:
    s.find("attempt.ended").body["exception"] = "agent_error"


def _agent(s: Story, **ended: Any) -> None:
    body = s.find("agent.ended").body
    body["ended"] = {**body["ended"], **ended}


@plant("agents.ended", "completed without an end of the agent")
def _(s: Story) -> None:
    s.drop(s.find("agent.ended"))
    s.drop(s.find("attempt.boundary", boundary="pre-verify"))


@plant("worlds.planned", "a wider network")
def _(s: Story) -> None:
    _world(s, network="public")


@plant("worlds.planned", "a wider network for an arm that has a narrower one")
def _(s: Story) -> None:
    s.design["sandbox"]["network"] = "public"
    s.design["arms"][0]["sandbox"] = {"kind": "namespace", "network": "gateway-only"}
    arms = {step.body["attempt"]: step.body["arm"] for step in s.entries() if step.kind == "attempt.admitted"}
    worlds = [step for step in s.entries() if step.kind == "sandbox.started"]
    for step in worlds:
        step.body["facts"] = {**step.body["facts"], "network": "gateway-only"}
    own = next(step for step in worlds if arms[step.body["attempt"]] == "arm-0")
    own.body["facts"] = {**own.body["facts"], "network": "allowlist"}


@plant("worlds.planned", "another kind")
def _(s: Story) -> None:
    _world(s, kind="docker")


@plant("worlds.planned", "an agent's world that is a fork")
def _(s: Story) -> None:
    s.find("sandbox.started", role="agent").body["from_snapshot"] = True


def _world(s: Story, **facts: str) -> None:
    body = s.find("sandbox.started").body
    body["facts"] = {**body["facts"], **facts}


@plant("attempts.assured", "isolated without a world for the verifier")
def _(s: Story) -> None:
    s.drop(s.find("sandbox.started", role="verifier"))


@plant("attempts.assured", "shared, with a world for the verifier")
def _(s: Story) -> None:
    s.design["grading"]["assurance"] = "shared"
    s.find("verifier.ended").body["assurance"] = s.find("attempt.graded").body["assurance"] = "shared"


@plant("attempts.assured", "another assurance than the verifier's")
def _(s: Story) -> None:
    s.find("attempt.graded").body["assurance"] = "live"


@plant("attempts.assured", "live in a design that says isolated")
def _(s: Story) -> None:
    _without_a_world(s, "live")


@plant("attempts.assured", "live in a design that says shared")
def _(s: Story) -> None:
    s.design["grading"]["assurance"] = "shared"
    _without_a_world(s, "live")


@plant("attempts.assured", "shared in a design that says live")
def _(s: Story) -> None:
    s.design["grading"]["assurance"] = "live"
    _without_a_world(s, "shared")


def _without_a_world(s: Story, said: str) -> None:
    """One verifier runs in its agent's world, and says so."""
    graded = s.find("attempt.graded")
    attempt = graded.body["attempt"]
    s.drop(s.find("sandbox.started", role="verifier", attempt=attempt))
    s.find("verifier.ended", attempt=attempt).body["assurance"] = graded.body["assurance"] = said


# Grades, against files and ends.


def _regrade(s: Story, was: str, **fields: Any) -> None:
    """Grade and final alike."""
    graded = s.find("attempt.graded", grade=was).body
    graded.update(fields)
    final = s.find("trial.final", trial=graded["attempt"][:16]).body
    final.update(fields)
    s.finals[final["trial"]] = final


def _verifier(s: Story, was: str, **ended: Any) -> None:
    attempt = s.find("attempt.graded", grade=was).body["attempt"]
    body = s.find("verifier.ended", attempt=attempt).body
    body["ended"] = {**body["ended"], **ended}


@plant("grades.recomputed", "a pass by a verifier that timed out")
def _(s: Story) -> None:
    _verifier(s, "pass", exit_code=None, signal=9, timed_out=True)


@plant("grades.recomputed", "a pass by a verifier that a signal ended")
def _(s: Story) -> None:
    _verifier(s, "pass", exit_code=None, signal=15)


@plant("grades.recomputed", "a fail by a verifier that did not start")
def _(s: Story) -> None:
    _verifier(s, "fail", start_error="no such file")


@plant("grades.recomputed", "ungraded for no reward by a verifier whose status says that it was killed")
def _(s: Story) -> None:
    _verifier(s, "ungraded", exit_code=137)


@plant("grades.recomputed", "ungraded by a verifier that ended, with a reward")
def _(s: Story) -> None:
    s.find("attempt.graded", grade="fail").body.update(rewards={"reward": 0.25})
    _regrade_one(s, grade="ungraded", reason="verifier_timeout")


@plant("grades.recomputed", "no test ran, and there is no report")
def _(s: Story) -> None:
    _regrade_one(s, grade="ungraded", reason="no_tests_ran")


@plant("grades.recomputed", "another reason for a fail")
def _(s: Story) -> None:
    _regrade(s, "fail", reason="tests_failed")


def _regrade_one(s: Story, **fields: Any) -> None:
    """A fail that counts as something else, in the only opening that counts it."""
    graded = s.find("attempt.graded", -1, grade="fail").body
    graded.update(fields)
    trial = graded["attempt"][:16]
    final = s.find("trial.final", trial=trial).body
    final.update(fields)
    s.finals[trial] = final
    totals = s.find("run.ended", -1).body["totals"]
    totals["fail"] -= 1
    totals["ungraded"] += 1


@plant("grades.recomputed", "rewards that the files do not have")
def _(s: Story) -> None:
    s.find("attempt.graded", grade="pass").body["rewards"] = {"reward": 99}


@plant("grades.recomputed", "one reward more")
def _(s: Story) -> None:
    s.find("attempt.graded", grade="pass").body["rewards"] = {"reward": 1, "style": 1}


@plant("grades.recomputed", "tests are counted, and there is no report")
def _(s: Story) -> None:
    counts = dict.fromkeys(("all_fail", "all_skip", "all_other", "mixed", "last_row_fails", "duplicates"), 0)
    s.find("attempt.graded").body["tests"] = {**counts, "rows": 2, "identities": 2, "all_pass": 2}


@plant("grades.recomputed", "a reward of no verdict file")
def _(s: Story) -> None:
    attempt = s.find("attempt.graded", grade="ungraded").body
    attempt["rewards"] = {"reward": 0}


# Ends of openings.


@plant("agents.ended", "a fault of a provider that no exchange heard")
def _(s: Story) -> None:
    s.find("attempt.ended", exception="sandbox_lost").body["exception"] = "rate_limited"


@plant("status.agrees", "by another signal than that of the drain")
def _(s: Story) -> None:
    s.find("run.ended").body["exit_status"] = 143


@plant("status.agrees", "by a signal, and not interrupted")
def _(s: Story) -> None:
    s.find("run.ended").body["reason"] = "internal_error"


@plant("status.agrees", "stopped without a reason")
def _(s: Story) -> None:
    s.find("run.ended").body["reason"] = None


@plant("status.agrees", "0 with a reason")
def _(s: Story) -> None:
    s.find("run.ended", -1).body["reason"] = "stage_deadline"


@plant("status.agrees", "only prepared, and attempts were begun")
def _(s: Story) -> None:
    s.find("run.ended").body.update(exit_status=0, reason="prepared_only")


def only_prepared(s: Story) -> None:
    """No fault: one more opening, at the begin, that was to prepare and did."""
    counts = {"trials": len(s.planned()), "finals": 0, "pass": 0, "fail": 0, "ungraded": 0}
    ended = {"exit_status": 0, "reason": "prepared_only", "complete": False, "totals": counts, "files": []}
    resumed = s.resume(previous_ended=True)
    s.drop(resumed)
    s.insert_before(s.find("block.admitted"), Step("run.ended", ended), resumed)


# Manifests of what was refused.


@plant("manifests.unbound", "refused by a signal that no reason names")
def _(s: Story) -> None:
    s.manifests["manifests/0001.json"]["exit_status"] = 130


@plant("manifests.unbound", "refused as interrupted, with the status of a refusal")
def _(s: Story) -> None:
    s.manifests["manifests/0001.json"]["refusals"] = [{"reason": "interrupted"}]


@plant("manifests.unbound", "refused with another status")
def _(s: Story) -> None:
    s.manifests["manifests/0001.json"]["exit_status"] = 4


@plant("manifests.unbound", "no command")
def _(s: Story) -> None:
    s.manifests["manifests/0001.json"]["command"] = None


def refused_by_a_signal(s: Story) -> None:
    """No fault: an admission that was interrupted."""
    s.manifests["manifests/0001.json"].update(exit_status=143, refusals=[{"reason": "interrupted"}])


def any_kind(s: Story) -> None:
    """No fault: the design leaves the kind of sandbox open."""
    s.design["sandbox"]["kind"] = "auto"


SOUND = (any_kind, refused_by_a_signal, only_prepared)
