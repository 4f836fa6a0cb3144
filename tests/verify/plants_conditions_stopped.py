"""Attempts that were stopped, and are sound all the same."""

from __future__ import annotations

from builder import Story
from plants import Plants

PLANTS = Plants()


def an_agent_that_was_killed_in_what_was_interrupted(s: Story) -> None:
    """No fault: the attempt was stopped, and says nothing more."""
    stopped = s.find("attempt.ended", outcome="interrupted")
    like = s.find("agent.ended").body
    killed = {**like["ended"], "exit_code": None, "signal": 15}
    s.add("agent.ended", **{**like, "attempt": stopped.body["attempt"], "exception": "agent_killed", "ended": killed})
    s.insert_before(s.find("attempt.files", attempt=stopped.body["attempt"]), s.steps.pop())
    stopped.body["exception"] = None


SOUND = (an_agent_that_was_killed_in_what_was_interrupted,)
