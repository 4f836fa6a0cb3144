"""A world for agents inside that remembers what was asked of it; how its one command goes is the test's to say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.agents.base import Turn
from proctor.core.models import Door
from proctor.sandbox.base import Ended, Exec, Fetched, PutItem

DONE = Ended(exit_code=0, signal=None, timed_out=False, duration_ns=1)
TOKEN = "token-of-this-attempt"


async def done(command: Exec) -> Ended:
    return DONE


@dataclass
class QuietWorld:
    """Runs nothing."""

    going: Callable[[Exec], Awaitable[Ended]] = done
    commands: list[Exec] = field(default_factory=list)
    items: list[PutItem] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)

    async def exec(self, command: Exec) -> Ended:
        self.commands.append(command)
        return await self.going(command)

    async def put(self, items: Sequence[PutItem]) -> None:
        self.items += items

    async def get(self, paths: Sequence[str], into: Path, *, cap_bytes: int, cap_files: int) -> list[Fetched]:
        self.fetched += paths
        return []

    def content(self, target: str) -> bytes:
        (item,) = [item for item in self.items if item.target == target]
        assert item.content is not None
        return item.content


def door(api: str = "chat", **changes: Any) -> Door:
    said: Mapping[str, Any] = {
        "base_url": "http://127.0.0.1:47600",
        "token": TOKEN,
        "model": "model-1",
        "api": api,
        "effort": None,
        "max_output_tokens": 4_000,
        "last_ns": lambda: 0,
    }
    return Door(**{**said, **changes})


def turn(world: Any, output: Path, **changes: Any) -> Turn:
    said: Mapping[str, Any] = {
        "sandbox": world,
        "instruction": "Do it.",
        "workdir": "/app",
        "env": {"LANG": "C.UTF-8"},
        "user": None,
        "output": output,
        "deadline_sec": 60.0,
    }
    return Turn(**{**said, **changes})
