"""nop: does nothing. A task that it passes has tests that prove nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor import __version__
from proctor.agents.base import Answered, RowTurn, Turn, Version, no_settings
from proctor.sandbox.base import Ended


class Nop:
    """The agent that does nothing."""

    name = "nop"
    needs_solution = False
    needs_model = False
    takes_model = False
    takes_prompt = False
    inside = False
    apis: frozenset[str] = frozenset()

    def __init__(self, settings: Mapping[str, Any], base: Path) -> None:
        no_settings(self.name, settings)

    def version(self) -> Version:
        """proctor's own version."""
        return Version(__version__)

    async def act(self, turn: Turn) -> Ended:
        """Return at once."""
        return Ended(exit_code=0, signal=None, timed_out=False, duration_ns=0)

    async def answer(self, turn: RowTurn) -> Answered:
        """No answer."""
        return Answered(None)
