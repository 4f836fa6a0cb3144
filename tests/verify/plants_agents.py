"""Agents at the edges of what is said of their ends: of rows and of tasks, with and without a deadline."""

from __future__ import annotations

from builder import Story
from money_stories import money_story
from plants import Plants
from primitives import Body

PLANTS = Plants(money_story)
plant = PLANTS.before_sealing


def _agent(s: Story, exception: str, *, row: bool, **ended: object) -> None:
    """The agent of an attempt that passed, at a row or not, ended so, and both ends say it."""
    body = _ended(s, row=row)
    body.update(ended={**body["ended"], **ended}, exception=exception)
    s.find("attempt.ended", attempt=body["attempt"]).body["exception"] = exception


def _ended(s: Story, *, row: bool) -> Body:
    scored = {step.body["attempt"] for step in s.entries() if step.kind == "answer.scored"}
    ends = [step.body for step in s.entries() if step.kind == "agent.ended"]
    return next(body for body in ends if (body["attempt"] in scored) == row)


def an_agent_of_a_row_that_reached_its_steps(s: Story) -> None:
    """No fault: it is no process, and its end shows none of that."""
    _agent(s, "step_limit", row=True)


def no_deadline(s: Story) -> None:
    """No fault: the design has none, and agents have one or not."""
    s.design["agent"]["timeout_sec"] = None
    s.find("agent.started").body["timeout_sec"] = None


@plant("agents.ended", "an agent of a task that reached its steps, which its end does not show")
def _(s: Story) -> None:
    _agent(s, "step_limit", row=False)


@plant("agents.ended", "an agent of a row that reached its steps, and had no time left")
def _(s: Story) -> None:
    _agent(s, "step_limit", row=True, timed_out=True)


@plant("agents.ended", "an agent of a row that had no time left, which its end does not show")
def _(s: Story) -> None:
    _agent(s, "agent_timeout", row=True)


@plant("agents.ended", "ungraded for one reason, as nobody said, and ended for another")
def _(s: Story) -> None:
    refused = s.find("exchange.refused", reason="ceiling_reached")
    s.find("attempt.ended", exception="ceiling_reached").body["exception"] = "feature_unpriced"
    s.drop(refused)


SOUND = (an_agent_of_a_row_that_reached_its_steps, no_deadline)
