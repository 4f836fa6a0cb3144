"""The tool `shell`: a model's commands, run in the sandbox of its attempt, and what it is told of how they ended."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from proctor.agents.base import Turn
from proctor.core.models import ToolCall, ToolSpec
from proctor.sandbox.base import Ended, Exec
from proctor.tasks.scripts import RUN_TEXT

SPEC = ToolSpec(
    "shell",
    "Run a command in the sandbox, in the task's working directory. Returns its exit code and what it printed.",
    {
        "type": "object",
        "properties": {"command": {"type": "string", "description": "What bash is to run."}},
        "required": ["command"],
        "additionalProperties": False,
    },
)
# What a model is shown of one command: enough for a test report, and no step fills a context by itself.
SHOWN_BYTES = 16_384
# Linux takes no longer argument, its end included.
COMMAND_BYTES = 32 * 4096 - 1


class Shell:
    """A tool box of one tool. `deadline` is the event loop's time at which the attempt's own time is over."""

    specs = (SPEC,)

    def __init__(self, turn: Turn, timeout_sec: float, deadline: float) -> None:
        self._turn = turn
        self._timeout_sec = timeout_sec
        self._deadline = deadline
        # what a command prints goes through a file of the host: the next command's takes its place
        self._output = turn.output / "shell.txt"

    async def call(self, call: ToolCall) -> str:
        """Run the command, and say how it ended and what it printed.

        Raises:
            Refusal: of family SANDBOX.
        """
        command = (call.arguments or {}).get("command")
        if not isinstance(command, str) or not command.strip():
            return 'not run: the arguments must be {"command": "…"}, with a command that is not empty'
        why_not = _why_not(command)
        if why_not is not None:
            return f"not run: {why_not}"
        left = max(0.0, self._deadline - asyncio.get_running_loop().time())
        limit = min(self._timeout_sec, left)
        turn = self._turn
        ended = await turn.sandbox.exec(
            Exec(
                ("sh", "-c", RUN_TEXT, "sh", command),
                stdout=self._output,
                cwd=turn.workdir,
                env=turn.env,
                user=turn.user,
                deadline_sec=limit,
                leave_running=turn.leave_running,
            )
        )
        return f"{_how(ended, limit)}\n{await asyncio.to_thread(_shown, self._output, ended.output_dropped)}"

    def close(self) -> None:
        """Remove what the last command printed: the log has it, as far as it was shown."""
        self._output.unlink(missing_ok=True)


def _why_not(command: str) -> str | None:
    try:
        data = command.encode()
    except UnicodeEncodeError:
        return "a command cannot hold half a surrogate pair"
    if b"\0" in data:
        return "a command cannot hold NUL characters"
    if len(data) > COMMAND_BYTES:
        return f"a command has at most {COMMAND_BYTES} bytes, and this one {len(data)}; write long files in parts"
    return None


def _how(ended: Ended, limit_sec: float) -> str:
    if ended.start_error is not None:
        return f"not run: {ended.start_error}"
    said = [f"exit code {ended.exit_code}" if ended.signal is None else f"ended by signal {ended.signal}"]
    if ended.timed_out:
        said = [f"timed out: ended after {limit_sec:.4g} s"]
    if ended.limit_hit is not None:
        said.append(f"the sandbox's limit was hit: {ended.limit_hit}")
    if ended.leftovers and not ended.timed_out:
        said.append(f"{ended.leftovers} processes that it left running were ended")
    return "; ".join(said)


def _shown(output: Path, dropped: int) -> str:
    with output.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size + dropped <= SHOWN_BYTES:
            return file.read(SHOWN_BYTES).decode("utf-8", "replace") or "(no output)"
        half = SHOWN_BYTES // 2
        head = file.read(half)
        file.seek(max(half, size - half))
        tail = file.read(half)
    left_out = size + dropped - len(head) - len(tail)
    return f"{_text(head)}\n[… {left_out} bytes left out …]\n{_text(tail)}"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
