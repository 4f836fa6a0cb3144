"""mini-swe-agent: in work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.agents.base import Turn, Version
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Ended


class MiniSweAgent:
    """The agent mini-swe-agent, inside of the sandbox."""

    name = "mini-swe-agent"
    needs_solution = False
    needs_model = True
    takes_model = True
    inside = True
    apis = frozenset({"chat"})

    def __init__(self, settings: Mapping[str, Any], base: Path) -> None:
        raise Refusal(
            Reason.BUNDLE_MISSING, "the agent mini-swe-agent is not installed", path="agent.name", observed=self.name
        )

    def version(self) -> Version:
        """None yet."""
        return Version(None, "not installed")

    async def act(self, turn: Turn) -> Ended:
        """Nothing yet."""
        raise NotImplementedError
