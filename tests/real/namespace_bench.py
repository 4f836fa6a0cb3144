"""What the tests of the namespace sandbox share: a kind, a token, and worlds that end with their test."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from bench_parts import BenchParts, admitted

from proctor.core.tokens import Admitted, seal_probe
from proctor.sandbox.namespace.kind import NamespaceKind
from proctor.sandbox.namespace.sandbox import NamespaceSandbox

__all__ = ["Bench", "admitted", "bench", "kind", "make_root"]


@pytest.fixture(scope="module")
def kind() -> NamespaceKind:
    found = NamespaceKind()
    seen = found.probe(seal_probe(30))
    if not seen.available:
        pytest.skip(f"no namespaces here: {[str(refusal) for refusal in seen.refusals]}")
    return found


class Bench(BenchParts[NamespaceKind, NamespaceSandbox]):
    """Of namespaces."""

    def left(self) -> list[Path]:
        return list(self.scratch.iterdir())


@pytest.fixture
async def bench(kind: NamespaceKind, admitted: Admitted, tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(kind, admitted, tmp_path)
    yield made
    await made.close()


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
