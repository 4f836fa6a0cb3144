"""A model that says what a test wrote down, and a sandbox that runs harmless commands on the host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proctor.core.models import Answer, Finish, Message, Role, ToolCall, ToolSpec
from proctor.core.money import ZERO
from proctor.core.usage import Bucket, Usage
from proctor.sandbox.base import Ended, Exec, LimitInForce, PutItem, Sandbox, Snapshot


def call(name: str, raw: str, number: int = 0) -> ToolCall:
    try:
        arguments = json.loads(raw)
    except ValueError:
        arguments = None
    return ToolCall(f"call-{number}", name, arguments if isinstance(arguments, dict) else None, raw)


def shell(command: str, number: int = 0) -> ToolCall:
    return call("shell", json.dumps({"command": command}), number)


def says(text: str = "", *calls: ToolCall, tokens: int = 10) -> Answer:
    message = Message(Role.ASSISTANT, text, calls, native={"as it": "came"})
    return Answer(message, Finish.TOOLS if calls else Finish.STOP, Usage({Bucket.OUTPUT: tokens}), ZERO, "x")


@dataclass
class Script:
    """A model: answers in order, the last one for ever; an exception is raised, None never answers."""

    answers: Sequence[Answer | BaseException | None]
    seen: list[tuple[tuple[Message, ...], tuple[ToolSpec, ...]]] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def ask(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), *, max_output_tokens: int | None = None
    ) -> Answer:
        self.seen.append((tuple(messages), tuple(tools)))
        self.asked.set()
        answer = self.answers[min(len(self.seen), len(self.answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        if answer is None:
            await asyncio.Event().wait()
            raise AssertionError
        return answer

    def results(self) -> list[str]:
        """What the model was told of its calls, at its last question."""
        return [message.text for message in self.seen[-1][0] if message.role is Role.TOOL]


class HostWorld(Sandbox):
    """Runs commands on the host, each to its end; `change` says what becomes of how one ended."""

    limits_enforced: tuple[LimitInForce, ...] = ()
    facts: Mapping[str, Any] = {}

    def __init__(self, change: Callable[[Ended], Ended] = lambda ended: ended) -> None:
        self.commands: list[Exec] = []
        self._change = change

    async def exec(self, command: Exec) -> Ended:
        self.commands.append(command)
        with command.stdout.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *command.argv, stdout=output, stderr=output, cwd=command.cwd, env={"PATH": "/usr/bin:/bin"}
            )
            status = await process.wait()
        gone = (None, -status) if status < 0 else (status, None)
        size = command.stdout.stat().st_size
        ended = self._change(Ended(gone[0], gone[1], timed_out=False, duration_ns=1, output_bytes=size))
        with command.stdout.open("r+b") as output:
            output.truncate(ended.output_bytes)
        return replace(ended, output_dropped=size - ended.output_bytes)

    async def put(self, items: Sequence[PutItem]) -> None:
        raise AssertionError("toolloop brings nothing in")

    async def get(self, paths: Sequence[str], into: Path, *, cap_bytes: int, cap_files: int) -> list[Any]:
        raise AssertionError("toolloop brings nothing out")

    async def freeze(self) -> None: ...

    async def thaw(self) -> None: ...

    async def kill_all(self) -> int:
        return 0

    async def mark(self, apart: Sequence[str] = ()) -> None: ...

    async def capture(self) -> Snapshot:
        raise AssertionError("toolloop captures nothing")

    async def stop(self) -> None: ...
