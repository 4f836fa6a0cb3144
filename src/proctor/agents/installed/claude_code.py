"""claude-code: in work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.agents.base import Turn, Version
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Ended


class ClaudeCode:
    """The agent claude-code, inside of the sandbox."""

    name = "claude-code"
    needs_solution = False
    needs_model = True
    takes_model = True
    inside = True
    apis = frozenset({"anthropic"})

    def __init__(self, settings: Mapping[str, Any], base: Path) -> None:
        raise Refusal(
            Reason.BUNDLE_MISSING, "the agent claude-code is not installed", path="agent.name", observed=self.name
        )

    def version(self) -> Version:
        """None yet."""
        return Version(None, "not installed")

    async def act(self, turn: Turn) -> Ended:
        """Nothing yet."""
        raise NotImplementedError
