"""toolloop: a model and its tools, in a loop, until it answers without calling one.

On a task the one tool is `shell`, which acts in the sandbox from outside; on a question row there are the tools that
the study declares, and nothing else. What ends it early (steps, tokens, time, the model's context) is a fact beside
the grade: what was done until then is graded.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor import __version__
from proctor.agents.base import LIMITS, Answered, RowTurn, SkillPack, Turn, Version
from proctor.agents.limits import read_settings
from proctor.agents.shell import Shell
from proctor.core.models import Answer, Message, ModelAccess, Role, ToolBox, ToolCall
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Ended

SYSTEM = """\
You work on a task in a sandbox, on your own: nobody answers questions. The tool `shell` runs commands there.
Each call is a new shell in the task's working directory: variables and `cd` do not last, and what still runs when it
ends is ended. Long output is cut in the middle. Check your work before you stop: your first answer without a call
is the end of it."""
# Skill files that a row's model is shown: there is no file system to read them from.
SKILL_BYTES = 65_536
# Of one answer, so many calls are made: no good answer has more, and their results are all held in memory.
MAX_CALLS = 128
_TOO_MANY = f"not run: one answer may make {MAX_CALLS} calls at most"
_DEADLINE, _CONTEXT = "deadline", "context"


@dataclass(frozen=True)
class _End:
    """What the model said last, and the limit that ended the loop, if one did."""

    text: str
    limit: str | None = None


class Toolloop:
    """A model with a shell, or with the tools of a question set.

    Settings: `steps` (most calls of the model, 50), `tokens` (most tokens in all; no limit), `shell_timeout` (seconds
    that one command may take, 120), `system` (the system prompt, in place of the one above; rows have none).
    """

    name = "toolloop"
    needs_solution = False
    needs_model = True
    takes_model = True
    inside = False
    apis: frozenset[str] = frozenset()

    def __init__(self, settings: Mapping[str, Any], base: Path) -> None:
        self._settings = read_settings(settings)
        self._skills: dict[str, str] = {}

    def version(self) -> Version:
        """proctor's own version."""
        return Version(__version__)

    async def act(self, turn: Turn) -> Ended:
        """Let the model work on the task through the shell.

        Raises:
            Refusal: of family SANDBOX; as `ModelAccess.ask` does.
        """
        began = time.monotonic_ns()
        deadline = asyncio.get_running_loop().time() + turn.deadline_sec
        system = [SYSTEM if self._settings.system is None else self._settings.system]
        if turn.skills:
            places = "".join(f"\n- /skills/{pack.name}/SKILL.md" for pack in turn.skills)
            system.append(f"Skills are described in these files. Read them before you start:{places}")
        messages = [Message(Role.SYSTEM, "\n\n".join(system)), Message(Role.USER, turn.instruction)]
        log = _Log(turn)
        shell = Shell(turn, self._settings.shell_timeout, deadline)
        try:
            end = await self._run(turn.model, messages, shell, deadline, log.say)
        finally:
            shell.close()
        log.say("[done]" if end.limit is None else f"[stopped: {end.limit}]")
        return Ended(
            exit_code=0,
            signal=None,
            timed_out=end.limit == _DEADLINE,
            duration_ns=time.monotonic_ns() - began,
            limit_hit=end.limit if end.limit in LIMITS else None,
        )

    async def answer(self, turn: RowTurn) -> Answered:
        """Let the model answer the row: the text of its last message; no answer where a limit ended it.

        Raises:
            Refusal: as `ModelAccess.ask` does.
        """
        deadline = asyncio.get_running_loop().time() + turn.deadline_sec
        system = [self._settings.system] if self._settings.system else []
        system += [f"# Skill: {pack.name}\n\n{await self._skill(pack)}" for pack in turn.skills]
        messages = [*turn.messages]
        if system:
            messages.insert(0, Message(Role.SYSTEM, "\n\n".join(system)))
        end = await self._run(turn.model, messages, turn.tools, deadline, _unsaid)
        if end.limit is not None:
            return Answered(None, LIMITS.get(end.limit, Reason.AGENT_TIMEOUT))
        return Answered(end.text if end.text.strip() else None)

    async def _run(
        self,
        model: ModelAccess | None,
        messages: list[Message],
        tools: ToolBox,
        deadline: float,
        say: Callable[[str], None],
    ) -> _End:
        """The loop. Limits are looked at before each question: what a model asked for last is still done."""
        if model is None:
            raise Refusal(Reason.MODEL_NEEDED, "toolloop was handed no model")
        for message in messages:
            say(f"[{message.role.value}]\n{message.text}")
        text, used = "", 0
        for step in range(self._settings.steps):
            if self._settings.tokens is not None and used >= self._settings.tokens:
                return _End(text, "tokens")
            answer = await _ask(model, messages, tools, deadline)
            if isinstance(answer, str):
                return _End(text, answer)
            messages.append(answer.message)
            text, used = answer.message.text, used + answer.usage.total
            say(f"[step {step + 1}: {used} tokens, {answer.finish.value}]\n{text}".rstrip())
            if not answer.message.calls:
                return _End(text)
            for number, call in enumerate(answer.message.calls):
                say(f"[{call.name}] {_asked(call)}")
                result = await _called(tools, call) if number < MAX_CALLS else _TOO_MANY
                say(result)
                messages.append(Message(Role.TOOL, result, call_id=call.id, tool=call.name))
        return _End(text, "steps")

    async def _skill(self, pack: SkillPack) -> str:
        if pack.sha256 not in self._skills:
            self._skills[pack.sha256] = await asyncio.to_thread(_skill_text, pack.path / "SKILL.md")
        return self._skills[pack.sha256]


async def _ask(model: ModelAccess, messages: list[Message], tools: ToolBox, deadline: float) -> Answer | str:
    """The model's answer, or the limit that left none: no question goes out after the deadline."""
    if asyncio.get_running_loop().time() >= deadline:
        return _DEADLINE
    limit = asyncio.timeout_at(deadline)
    try:
        async with limit:
            return await model.ask(messages, tools.specs)
    except TimeoutError:
        if limit.expired():
            return _DEADLINE
        raise
    except Refusal as refusal:
        if refusal.reason is LIMITS[_CONTEXT]:
            return _CONTEXT
        raise


async def _called(tools: ToolBox, call: ToolCall) -> str:
    """What the model is told of its call: a call that cannot be made is its own to mend."""
    names = [spec.name for spec in tools.specs]
    if call.name not in names:
        return f"not run: there is no tool {call.name!r}; there are: {', '.join(names) or 'none'}"
    if call.arguments is None:
        return "not run: the arguments are not a JSON object"
    return await tools.call(call)


def _asked(call: ToolCall) -> str:
    command = (call.arguments or {}).get("command")
    return command if isinstance(command, str) else call.raw


def _skill_text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(SKILL_BYTES + 1)
    text = data[:SKILL_BYTES].decode("utf-8", "replace")
    return text if len(data) <= SKILL_BYTES else f"{text}\n[… the rest is left out …]"


def _unsaid(text: str) -> None:
    """A row has no folder: its journal entries hold every word."""


class _Log:
    """What is said and done, without keys and what looks like one: `proctor logs -f` follows it."""

    def __init__(self, turn: Turn) -> None:
        self._path = turn.output / "toolloop.txt"
        self._redactor = turn.redactor

    def say(self, text: str) -> None:
        """Write it down at once. A few KB into the page cache cost less than a thread would."""
        with self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{self._redactor.text(text).rstrip()}\n\n")
