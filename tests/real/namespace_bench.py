"""What the tests of the namespace sandbox share: a kind, a token, and worlds that end with their test."""

from __future__ import annotations

import subprocess
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


def make_root(root: Path) -> Path:
    """A root file system of sh, cat, ls and rm with the libraries that they name."""
    for name in ("usr/bin", "usr/lib", "usr/lib64", "etc"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    for program in ("sh", "cat", "ls", "rm"):
        source = Path(f"/bin/{program}").resolve()
        listed = subprocess.run(["ldd", str(source)], capture_output=True, text=True, check=True).stdout
        named = [Path(word) for word in listed.split() if word.startswith("/")]
        for path, target in [(source, root / "usr/bin" / program), *((path, root / str(path)[1:]) for path in named)]:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
            target.chmod(0o755)
    return root
