"""Checks of agents, worlds and verifiers: that they are the design's, and ended as the entries about them say."""

from __future__ import annotations

from typing import Any

from proctor_verify.check import Check
from proctor_verify.design import NO_TRIAL, ArmPlan
from proctor_verify.journal import Entry
from proctor_verify.vocabulary import NETWORKS, OF_EXCHANGES

ANY_KIND = "auto"
# What an agent's own end may come to; every other exception of an attempt has another source.
_OF_AGENTS = frozenset(
    {
        *("agent_timeout", "agent_killed", "agent_error", "agent_output_capped"),
        *("step_limit", "token_limit", "idle_timeout"),
    }
)
# Limits that an agent keeps by itself; every other one is of its world, and ends it.
_OWN_LIMITS = {
    "steps": "step_limit",
    "tokens": "token_limit",
    "context": "context_exceeded",
    "idle": "idle_timeout",
}
# The agent of a row is no process: these show in no end of one.
_OF_NO_PROCESS = frozenset({"agent_error", *_OWN_LIMITS.values()}) - {"idle_timeout"}


class _OfAnArm(Check):
    needs_design = True

    def plan(self, entry: Entry) -> ArmPlan | None:
        """What the design says of the attempt's arm; None where another check says what is wrong."""
        attempt = self.run.open.get(entry.body["attempt"])
        if attempt is None or attempt.trial == NO_TRIAL:
            return None
        return self.design.plans[attempt.arm]


class AgentsPlanned(_OfAnArm):
    id = "agents.planned"
    doc = (
        "the agent that starts is the design's for its arm: name, settings, skills by name and digest, and a deadline "
        "that is no later than the design's"
    )
    noun = "agents"
    kinds = ("agent.started",)

    def entry(self, entry: Entry) -> None:
        plan, body = self.plan(entry), entry.body
        if plan is None:
            return
        self.looked += 1
        timeout = body["timeout_sec"]
        if body["agent"] != plan.agent:
            self.fail_at(entry, f"starts agent {body['agent']}, where the design has {plan.agent}")
        elif repr(body["settings"]) != plan.settings:
            self.fail_at(entry, "starts an agent with other settings than the design's")
        elif repr(body["skills"]) != plan.skills:
            self.fail_at(entry, "starts an agent with other skills than the design's")
        elif timeout is not None and timeout <= 0:
            self.fail_at(entry, f"starts an agent with a deadline of {timeout} seconds")
        elif plan.timeout_sec is not None and (timeout is None or timeout > plan.timeout_sec):
            self.fail_at(entry, f"starts an agent with deadline {timeout}, where the design has {plan.timeout_sec}")


class AgentsEnded(Check):
    id = "agents.ended"
    doc = (
        "an agent's exception follows from how it ended, and its attempt's end says it too; an attempt that completed "
        "has an agent that ended and, unless it is of a question row, a verifier, or it stays ungraded for a reason "
        "that an exchange of it gave; what only an exchange can say, one of the attempt said"
    )
    noun = "agents"
    kinds = ("agent.ended", "attempt.ended")
    needs_design = True

    def entry(self, entry: Entry) -> None:
        attempt, body = self.run.open.get(entry.body["attempt"]), entry.body
        if attempt is None or attempt.trial == NO_TRIAL:
            return  # said by attempts.admitted, attempts.ended, attempts.joined
        if entry.kind == "agent.ended":
            self.looked += 1
            wanted = _exception(body["ended"])
            of_row = attempt.is_row and wanted is None and body["exception"] in _OF_NO_PROCESS
            if body["exception"] != wanted and not of_row:
                self.fail_at(entry, f"has exception {body['exception']}, where its end comes to {wanted}")
            return
        of_agent = attempt.agent_ended["exception"] if attempt.agent_ended is not None else None
        completed, said = body["outcome"] == "completed", body["exception"]
        of_verifier, short_for = attempt.is_row or attempt.verifier_ended is not None, attempt.short_for
        if short_for and short_for not in attempt.told:
            self.fail_at(entry, f"leaves {attempt.id} ungraded for {short_for}, which no exchange of it says")
        elif said in OF_EXCHANGES and said not in attempt.told:
            self.fail_at(entry, f"ends {attempt.id} for {said}, which no exchange of it says")
        elif short_for and said is None:
            self.fail_at(entry, f"ends {attempt.id} without an exception, and it stopped short")
        elif completed and not short_for and (attempt.agent_ended is None or not of_verifier):
            self.fail_at(entry, f"completes {attempt.id} without an end of its agent or of its verifier")
        elif said != of_agent and (said in _OF_AGENTS or said is None):
            self.fail_at(entry, f"ends with exception {said}, and its agent with {of_agent}")


class WorldsPlanned(_OfAnArm):
    id = "worlds.planned"
    doc = (
        "a world is of the design's kind with a network no wider than the design's; an agent's is no fork, and an "
        "agent that is not of a question row starts after its world"
    )
    noun = "worlds"
    kinds = ("sandbox.started", "agent.started")

    def entry(self, entry: Entry) -> None:
        plan = self.plan(entry)
        if plan is None:
            return
        if entry.kind == "agent.started":
            attempt = self.run.open[entry.body["attempt"]]
            if not attempt.is_row and not attempt.agent_world:
                self.fail_at(entry, f"starts the agent of {attempt.id}, which has no world")
            return
        self.looked += 1
        facts = entry.body["facts"]
        if plan.kind not in (facts["kind"], ANY_KIND):
            self.fail_at(entry, f"starts a world of kind {facts['kind']}, where the design has {plan.kind}")
        elif NETWORKS.index(facts["network"]) > plan.network:
            self.fail_at(entry, f"has network {facts['network']}, wider than the design's {NETWORKS[plan.network]}")
        elif entry.body["role"] == "agent" and entry.body["from_snapshot"]:
            self.fail_at(entry, "forks the agent's world from a snapshot of this attempt, which is not there yet")


class Assured(Check):
    id = "attempts.assured"
    doc = (
        "the assurance of a grade is that of its verifier, null where none ran, and `isolated` exactly where a world "
        "was started for the verifier; it is the design's, or `isolated`"
    )
    noun = "grades"
    kinds = ("attempt.graded",)

    def entry(self, entry: Entry) -> None:
        attempt, said = self.run.open.get(entry.body["attempt"]), entry.body["assurance"]
        if attempt is None:
            return  # said by attempts.admitted, attempts.ended
        self.looked += 1
        wanted = attempt.verifier_ended["assurance"] if attempt.verifier_ended is not None else None
        if said != wanted:
            self.fail_at(entry, f"has assurance {said}, and its verifier {wanted}")
        elif (said == "isolated") != attempt.verifier_world:
            self.fail_at(
                entry,
                f"has assurance {said}, and {'a' if attempt.verifier_world else 'no'} world of its verifier started",
            )
        elif self.run.design is not None and said not in (None, "isolated", self.run.design.assurance):
            self.fail_at(entry, f"has assurance {said}, where the design has {self.run.design.assurance}")


def _exception(ended: dict[str, Any]) -> str | None:
    if ended["start_error"] is not None:
        return "agent_start_failed"
    if ended["timed_out"]:
        return "agent_timeout"
    if ended["limit_hit"] in _OWN_LIMITS:
        return _OWN_LIMITS[ended["limit_hit"]]
    if ended["signal"] is not None or ended["limit_hit"] is not None:
        return "agent_killed"
    if ended["exit_code"] != 0:
        return "agent_error"
    return "agent_output_capped" if ended["output_dropped"] else None
