"""Worlds of every kind of sandbox that this machine has, for tests that must hold in all of them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import docker_bench
import namespace_bench
import pytest
from bench_parts import BenchParts, token_for

from proctor.admission.worlds import sandbox_kind
from proctor.core.refusal import Refusal
from proctor.core.tokens import Admitted, seal_probe
from proctor.sandbox.base import Ended, Exec, Sandbox, SandboxKind, SandboxSpec

PYTHON_IMAGE = "python:3.13-slim"
SMALL_IMAGE = "busybox:latest"


@cache
def kind_or_skip(name: str) -> SandboxKind:
    """The kind of that name; skips where this machine has none, or this user may not have it."""
    try:
        found = sandbox_kind(name)
    except ValueError:
        pytest.skip(f"this installation knows no sandbox {name!r}")
    seen = found.probe(seal_probe(30))
    if not seen.available:
        pytest.skip(f"no {name} here: {[str(refusal) for refusal in seen.refusals]}")
    return found


@dataclass
class AnyBench:
    """Starts worlds of one kind in a scratch folder of the test's own."""

    kind: SandboxKind
    admitted: Admitted
    folder: Path
    worlds: list[Sandbox] = field(default_factory=list)

    @property
    def has_images(self) -> bool:
        return self.kind.name == "docker"

    async def start(self, *, image: str = PYTHON_IMAGE, **changes: Any) -> Sandbox:
        """A world of that image, or of the host's files where the kind has none; skips without the image."""
        spec = SandboxSpec(name="w", scratch=self.folder / "scratch")
        if self.has_images:
            spec = replace(spec, image=await self._id_of(image))
        elif image == SMALL_IMAGE:
            spec = replace(spec, root=small_root(self.folder / "root"))
        world = await self.kind.start(replace(spec, **changes), self.admitted)
        self.worlds.append(world)
        return world

    async def run(self, world: Sandbox, *argv: str, **changes: Any) -> tuple[Ended, str]:
        out = self.folder / "out"
        ended = await world.exec(replace(Exec(argv, stdout=out, deadline_sec=1200.0), **changes))
        return ended, out.read_bytes().decode("utf-8", "replace")

    async def _id_of(self, name: str) -> str:
        found = self.kind.images([name], seal_probe(30), pull="never")[name]
        if isinstance(found, Refusal):
            pytest.skip(f"no image {name} here: {found}")
        return (await self.kind.provide(found, self.admitted)).id


_APPLETS = ("sh", "nc", "timeout", "nslookup", "ping", "wget", "ip", "unshare", "nsenter", "mknod", "arping")


def small_root(root: Path) -> Path:
    """A root file system of busybox alone; skips where the host has none."""
    found = shutil.which("busybox")
    if found is None:
        pytest.skip("no busybox here")
    for name in ("usr/bin", "usr/lib", "usr/lib64", "etc", "tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in ("bin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    listed = subprocess.run(["ldd", found], capture_output=True, text=True, check=False).stdout
    for path in filter(None, (word if word[0] == "/" else None for word in listed.split())):
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, root / path[1:])
    shutil.copy2(found, root / "usr/bin/busybox")
    for applet in _APPLETS:
        (root / "usr/bin" / applet).symlink_to("busybox")
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\n")
    return root


@pytest.fixture(params=["namespace", "docker"])
async def any_bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AnyBench]:
    made = AnyBench(kind_or_skip(request.param), token_for(tmp_path), tmp_path)
    yield made
    for world in made.worlds:
        await world.stop()


Bench = BenchParts[Any, Any]
_BENCHES: Mapping[str, type[Bench]] = {"namespace": namespace_bench.Bench, "docker": docker_bench.Bench}


@pytest.fixture(params=list(_BENCHES))
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    made = _BENCHES[request.param](kind_or_skip(request.param), token_for(tmp_path), tmp_path)
    yield made
    await made.close()
