"""What the benches of all kinds of sandbox share: worlds that end with their test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest

from proctor.core.tokens import Admitted, seal_admitted
from proctor.sandbox.base import Ended, Exec, Sandbox, SandboxKind, SandboxSpec

Kind = TypeVar("Kind", bound=SandboxKind)
World = TypeVar("World", bound=Sandbox)


def token_for(folder: Path) -> Admitted:
    return seal_admitted(run_id="r", run_dir=folder / "run", design_sha256="0" * 64, label="proctor-test")


@pytest.fixture
def admitted(tmp_path: Path) -> Admitted:
    return token_for(tmp_path)


class BenchParts(Generic[Kind, World]):
    """Starts worlds in a scratch folder of the test's own and ends them with it."""

    has_images = False

    def __init__(self, kind: Kind, admitted: Admitted, folder: Path) -> None:
        self.kind, self.admitted, self.folder = kind, admitted, folder
        self.scratch = folder / "scratch"
        self.worlds: list[World] = []

    def spec(self, **changes: Any) -> SandboxSpec:
        return replace(SandboxSpec(name="w", scratch=self.scratch), **changes)

    async def start(self, **changes: Any) -> World:
        starting: Callable[..., Awaitable[Any]] = self.kind.start
        world: World = await starting(self.spec(**changes), self.admitted)
        self.worlds.append(world)
        return world

    async def run(self, world: Sandbox, script: str, **changes: Any) -> tuple[Ended, str]:
        out = self.folder / "out"
        command = Exec(("sh", "-c", script), stdout=out, deadline_sec=600.0)
        ended = await world.exec(replace(command, **changes))
        return ended, out.read_bytes().decode("utf-8", "replace")

    async def cut(self, world: Sandbox, script: str, said: str, **changes: Any) -> tuple[Ended, str]:
        """Run what goes on until its deadline, with a longer one where it had not come so far as to say that."""
        for deadline in (0.5, 5.0, 60.0, 600.0):
            ended, text = await self.run(world, script, deadline_sec=deadline, **changes)
            if said in text:
                break
        return ended, text

    async def nothing_left(self) -> bool:
        """Whether nothing of this test is left."""
        return not list(self.scratch.iterdir())

    async def close(self) -> None:
        """End what it started."""
        for world in self.worlds:
            await world.stop()
