"""oracle: runs the task's own solution, answers rows with their target. What it does not pass cannot be passed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor import __version__
from proctor.agents.base import Answered, RowTurn, Turn, Version, no_settings
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Ended, Exec, PutItem
from proctor.tasks.scripts import RUN_FILE


class Oracle:
    """The agent that applies `solution/solve.sh`."""

    name = "oracle"
    needs_solution = True
    needs_model = False
    takes_model = False
    takes_prompt = False
    inside = False
    apis: frozenset[str] = frozenset()

    def __init__(self, settings: Mapping[str, Any], base: Path) -> None:
        no_settings(self.name, settings)

    def version(self) -> Version:
        """proctor's own version: what is measured is the task's digest."""
        return Version(__version__)

    async def act(self, turn: Turn) -> Ended:
        """Bring the solution in and run it in the working directory, as the agent's user."""
        if turn.solution is None:
            raise Refusal(Reason.TASK_NO_SOLUTION, "the oracle was given no solution")
        target = turn.solution.target
        await turn.sandbox.put([PutItem(target, source=turn.solution.folder, fresh=True)])
        return await turn.sandbox.exec(
            Exec(
                ("sh", "-c", RUN_FILE, "sh", f"{target}/{turn.solution.script}"),
                stdout=turn.output / "oracle.txt",
                cwd=turn.workdir,
                env={**turn.env, "DEBIAN_FRONTEND": "noninteractive", **turn.solution.env},
                user=turn.user,
                deadline_sec=turn.deadline_sec,
                leave_running=turn.leave_running,
            )
        )

    async def answer(self, turn: RowTurn) -> Answered:
        """The right answer, as the row has it."""
        return Answered(turn.target)
