"""The version that an agent reports of itself where it is about to act, held against the one that was admitted."""

from __future__ import annotations

from proctor.agents.base import Agent, Installed, Turn, Version
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal


async def attested(agent: Agent, turn: Turn) -> Version:
    """What the agent says it is, in the world that it will act in; what admission knew of one that is not asked there.

    Raises:
        Refusal: RUNTIME_VERSION_ABSENT, RUNTIME_SKEW: of a program that was installed; and what running it raises.
    """
    admitted = agent.version()
    if not isinstance(agent, Installed):
        return admitted
    said = await agent.attest(turn)
    if said.value is None:
        raise Refusal(
            Reason.RUNTIME_VERSION_ABSENT,
            f"the agent {agent.name} does not say its version inside: {said.reason}",
            required=admitted.value,
        )
    if said.value != admitted.value:
        raise Refusal(
            Reason.RUNTIME_SKEW,
            f"the agent {agent.name} reports another version inside than the one that was admitted",
            observed=said.value,
            required=admitted.value,
        )
    return said
