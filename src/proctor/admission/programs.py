"""The programs of installed agents: which one a run takes, that it is whole, and of the version that is expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from proctor.agents.base import Agent, Installed
from proctor.agents.bundles import check_bundle
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.study import Design
from proctor.study.design import AgentDesign, BundleDesign


def settings_of(agent: AgentDesign, frozen: Design | None, arm: str) -> Mapping[str, Any]:
    """What the agent's class is handed: a run goes on with the version that it began with, whatever came since."""
    began = None if frozen is None or all(each.name != arm for each in frozen.arms) else frozen.agent_of(arm).bundle
    if began is None or "version" in agent.settings:
        return agent.settings
    return {**agent.settings, "version": began.version}


def version_skew(design: AgentDesign, agent: Agent, known: Sequence[Refusal]) -> list[Refusal]:
    """What stands against the version that the agent reports, unless it is `known`.

    Raises:
        Refusal: BUNDLE_CHANGED: its program is not what was installed.
    """
    if isinstance(agent, Installed):
        check_bundle(agent.installed)
    if design.expect_version is None:
        return []
    said = agent.version()
    absent = said.value is None
    if said.value == design.expect_version:
        return []
    found = Refusal(
        Reason.RUNTIME_VERSION_ABSENT if absent else Reason.RUNTIME_SKEW,
        f"the agent {design.name!r} says no version: {said.reason}"
        if absent
        else f"the agent {design.name!r} is of another version than the study expects",
        path="agent.expect_version",
        observed=said.value,
        required=design.expect_version,
    )
    return [] if found.as_record() in [each.as_record() for each in known] else [found]


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
