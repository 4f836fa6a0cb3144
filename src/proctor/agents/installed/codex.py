"""codex: in work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.agents.base import Turn, Version
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Ended


class Codex:
    """The agent codex, inside of the sandbox."""

    name = "codex"
    needs_solution = False
    needs_model = True
    takes_model = True
    inside = True
    apis = frozenset({"responses"})

    def __init__(self, settings: Mapping[str, Any], base: Path) -> None:
        raise Refusal(Reason.BUNDLE_MISSING, "the agent codex is not installed", path="agent.name", observed=self.name)

    def version(self) -> Version:
        """None yet."""
        return Version(None, "not installed")

    async def act(self, turn: Turn) -> Ended:
        """Nothing yet."""
        raise NotImplementedError
