"""The agents of a run: handed over or installed, made with their settings, whole, of the version that is expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.admission.facts import Request
from proctor.agents.base import Agent, Installed, installed_agents, make_agent
from proctor.agents.bundles import check_bundle
from proctor.agents.handed import HandedOver, identify
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.study import Design
from proctor.study.actors import AgentDesign, BundleDesign, FunctionDesign


def handed_over(name: str, request: Request, folders: int) -> tuple[HandedOver | None, list[Refusal]]:
    """The study's agent, if it was handed over in Python, and what stands against what was.

    `folders` counts the tasks that it has to act on.
    """
    others = sorted(request.agents.keys() - {name})
    against = []
    if others:
        what = f"the study's agent is {name!r}, and others were handed over"
        against.append(Refusal(Reason.UNKNOWN_AGENT, what, path="agent.name", observed=others, required=name))
    if name not in request.agents:
        return None, against
    try:
        if name in installed_agents():
            what = f"an agent named {name!r} was handed over, and one of that name is installed"
            raise Refusal(Reason.DUPLICATE_NAME, what, path="agent.name", observed=name)
        made = identify(name, request.agents[name])
        if folders and not made.acts:
            what = f"the agent {name!r} has no `act`, and task folders are selected"
            raise Refusal(Reason.AGENT_UNSUITABLE, what, path="agent.name", observed=folders, required=0)
        return made, against
    except Refusal as refusal:
        return None, [*against, refusal]


def code_of(handed: HandedOver | None, frozen: Design | None) -> FunctionDesign | None:
    """What the design holds of it. A resume without it keeps what was: that it is missing is refused by itself."""
    if handed is not None:
        return FunctionDesign(handed.reference, handed.sha256)
    return None if frozen is None else frozen.agent.code


def make_agents(
    design: Design, frozen: Design | None, base: Path, handed: HandedOver | None
) -> tuple[dict[str, Agent], list[Refusal], list[Refusal]]:
    """The agent of every arm; what stands against others; and which are of another version than is expected."""
    code = design.agent.code
    if code is not None and handed is None:
        missing = Refusal(
            Reason.UNKNOWN_AGENT,
            f"the agent {design.agent.name!r} of this run was handed over in Python, and is not now",
            path="agent.name",
            observed=design.agent.name,
            required=code.name,
            remedy=f"Go on with it from Python: proctor.Run.open(RUN).resume(agents={{{design.agent.name!r}: …}}), "
            f"with the class {code.name}.",
        )
        return {}, [missing], []
    agents: dict[str, Agent] = {}
    against: list[Refusal] = []
    skews: list[Refusal] = []
    for arm in design.arms:
        own = design.agent_of(arm.name)
        try:
            agents[arm.name] = agent = make_agent(own.name, _settings(own, frozen, arm.name), base, handed)
            if isinstance(agent, Installed):
                check_bundle(agent.installed)
            skews += _skew(own, agent)
        except Refusal as refusal:
            against.append(refusal)
    return agents, _once(against), _once(skews)


def with_programs(design: Design, agents: Mapping[str, Agent]) -> Design:
    """The design with the program of every agent that has one."""

    def own(agent: AgentDesign, made: Agent | None) -> AgentDesign:
        if not isinstance(made, Installed):
            return agent
        return replace(agent, bundle=BundleDesign(made.installed.version, made.installed.sha256))

    plain = next((agents.get(arm.name) for arm in design.arms if arm.agent is None), None)
    arms = [
        arm if arm.agent is None else replace(arm, agent=own(arm.agent, agents.get(arm.name))) for arm in design.arms
    ]
    return replace(design, agent=own(design.agent, plain), arms=tuple(arms))


def _settings(agent: AgentDesign, frozen: Design | None, arm: str) -> Mapping[str, Any]:
    """What the agent's class is handed: a run goes on with the version that it began with, whatever came since."""
    began = None if frozen is None or all(each.name != arm for each in frozen.arms) else frozen.agent_of(arm).bundle
    if began is None or "version" in agent.settings:
        return agent.settings
    return {**agent.settings, "version": began.version}


def _skew(design: AgentDesign, agent: Agent) -> list[Refusal]:
    """What stands against the version that the agent reports."""
    said = agent.version()
    if design.expect_version is None or said.value == design.expect_version:
        return []
    absent = said.value is None
    return [
        Refusal(
            Reason.RUNTIME_VERSION_ABSENT if absent else Reason.RUNTIME_SKEW,
            f"the agent {design.name!r} says no version: {said.reason}"
            if absent
            else f"the agent {design.name!r} is of another version than the study expects",
            path="agent.expect_version",
            observed=said.value,
            required=design.expect_version,
        )
    ]


def _once(refusals: list[Refusal]) -> list[Refusal]:
    """Each once, however many arms meet it."""
    kept: list[Refusal] = []
    for refusal in refusals:
        if refusal.as_record() not in [known.as_record() for known in kept]:
            kept.append(refusal)
    return kept
