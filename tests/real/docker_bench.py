"""What the tests of the docker sandbox share: a kind, a token, and worlds that end with their test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from bench_parts import BenchParts, admitted

from proctor.core.tokens import Admitted, seal_probe
from proctor.sandbox.base import Image, SandboxSpec
from proctor.sandbox.docker.engine import Engine, EngineError, now
from proctor.sandbox.docker.kind import DockerKind
from proctor.sandbox.docker.owner import SCRATCH
from proctor.sandbox.docker.probe import look
from proctor.sandbox.docker.world import DockerSandbox

__all__ = ["Bench", "admitted", "bench", "call", "image_id", "kind"]
DEBIAN = "debian:bookworm-slim"
PYTHON = "python:3.13-slim"
BUSYBOX = "busybox:latest"


@pytest.fixture(scope="module")
def kind() -> DockerKind:
    found = DockerKind()
    seen = found.probe(seal_probe(30))
    if not seen.available:
        pytest.skip(f"no Docker engine here: {[str(refusal) for refusal in seen.refusals]}")
    return found


def call(method: str, path: str, **asked: Any) -> Any:
    """Ask the engine, past the kind."""

    async def work() -> Any:
        async with Engine(look(10).where) as engine:
            return await engine.call(method, path, **asked)

    return now(work())


def image_id(kind: DockerKind, name: str) -> str:
    """The id of an image that must be here; skips where it is not."""
    found = kind.images([name], seal_probe(30), pull="never")[name]
    if not isinstance(found, Image) or found.id is None:
        pytest.skip(f"no image {name} here")
    return found.id


class Bench(BenchParts[DockerKind, DockerSandbox]):
    """Of an engine."""

    has_images = True

    def spec(self, **changes: Any) -> SandboxSpec:
        image = changes.pop("image", DEBIAN)
        known = image if image is None or image.startswith("sha256:") else image_id(self.kind, image)
        return super().spec(image=known, **changes)

    async def nothing_left(self) -> bool:
        """Whether nothing of this test is left, or only what is on its way out."""
        for _ in range(20_000):
            if not self.left():
                return True
            await asyncio.sleep(0.01)
        return False

    async def only_images_left(self, number: int) -> bool:
        """Whether that many images of this test are left, and nothing else but what is on its way out."""
        for _ in range(20_000):
            left = self.left()
            if len(left) == number and all(each.startswith("sha256:") for each in left):
                return True
            await asyncio.sleep(0.01)
        return False

    def left(self) -> list[str]:
        """Ids of containers and images that carry this test's scratch folder."""
        mine = str(self.scratch.resolve())
        rows = [*call("GET", "containers/json", params={"all": "1"}), *call("GET", "images/json")]
        return [row["Id"] for row in rows if (row.get("Labels") or {}).get(SCRATCH) == mine]

    async def close(self) -> None:
        """End what it started, and remove what is left of it."""
        await super().close()
        for left in self.left():
            what = "images" if left.startswith("sha256:") else "containers"
            try:
                call("DELETE", f"{what}/{left}", params={"force": "1"})
            except EngineError as fault:
                assert fault.status in (404, 409)  # on its way out already


@pytest.fixture
async def bench(kind: DockerKind, admitted: Admitted, tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(kind, admitted, tmp_path)
    yield made
    await made.close()
