"""Which agent a run's results are of, and what that means where it is none that was measured."""

from __future__ import annotations

from proctor.report.text import field, plain, safe
from proctor.study import Design

_SHOWN = 60
_MEANS = {
    "oracle": "the task's own solution, so these are no results of an agent",
    "nop": "does nothing, so these are no results of an agent",
}


def agents_record(design: Design) -> dict[str, str]:
    """The name of the agent of each arm."""
    return {arm.name: design.agent_of(arm.name).name for arm in design.arms}


def agents_text(design: Design) -> list[str]:
    """For people: one agent, or what each arm has."""
    told = {arm.name: _told(design, arm.name) for arm in design.arms}
    if len(set(told.values())) == 1:
        return [next(iter(told.values()))]
    return [f"{safe(arm)}: {text}" for arm, text in told.items()]


def agent_lines(design: Design) -> list[str]:
    """The same in lines."""
    told = agents_text(design)
    name = "agent" if len(told) == 1 else "agents"
    return [line for number, text in enumerate(told) for line in field("" if number else name, text)]


def _told(design: Design, arm: str) -> str:
    agent = design.agent_of(arm)
    command = agent.settings.get("command")
    if agent.name in _MEANS:
        return f"{agent.name} ({_MEANS[agent.name]})"
    if command is None:
        return safe(agent.name)
    text = safe(plain(command))
    return f"{safe(agent.name)} ({text if len(text) <= _SHOWN else text[: _SHOWN - 2] + ' …'})"
