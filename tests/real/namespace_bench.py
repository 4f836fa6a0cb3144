"""What the tests of the namespace sandbox share: a kind, a token, and worlds that end with their test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proctor.core.tokens import Admitted, seal_admitted, seal_probe
from proctor.sandbox.base import Ended, Exec, SandboxSpec
from proctor.sandbox.namespace.kind import NamespaceKind
from proctor.sandbox.namespace.sandbox import NamespaceSandbox


@pytest.fixture(scope="module")
def kind() -> NamespaceKind:
    found = NamespaceKind()
    seen = found.probe(seal_probe(30))
    if not seen.available:
        pytest.skip(f"no namespaces here: {[str(refusal) for refusal in seen.refusals]}")
    return found


@pytest.fixture
def admitted(tmp_path: Path) -> Admitted:
    return seal_admitted(run_id="r", run_dir=tmp_path / "run", design_sha256="0" * 64, label="proctor-test")


class Bench:
    """Starts worlds in a scratch folder of the test's own and ends them with it."""

    def __init__(self, kind: NamespaceKind, admitted: Admitted, folder: Path) -> None:
        self.kind, self.admitted, self.folder = kind, admitted, folder
        self.scratch = folder / "scratch"
        self.worlds: list[NamespaceSandbox] = []

    def spec(self, **changes: Any) -> SandboxSpec:
        return replace(SandboxSpec(name="w", scratch=self.scratch), **changes)

    async def start(self, **changes: Any) -> NamespaceSandbox:
        world = await self.kind.start(self.spec(**changes), self.admitted)
        self.worlds.append(world)
        return world

    async def run(self, world: NamespaceSandbox, script: str, **changes: Any) -> tuple[Ended, str]:
        out = self.folder / "out"
        command = Exec(("sh", "-c", script), stdout=out, deadline_sec=60.0)
        ended = await world.exec(replace(command, **changes))
        return ended, out.read_bytes().decode("utf-8", "replace")

    def left(self) -> list[Path]:
        return list(self.scratch.iterdir())


@pytest.fixture
async def bench(kind: NamespaceKind, admitted: Admitted, tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(kind, admitted, tmp_path)
    yield made
    for world in made.worlds:
        await world.stop()
