"""Machines that lack something: overlays that do not stack, namespaces that are forbidden. Needs root to make them."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from namespace_bench import Bench, admitted, bench, kind, make_root

from proctor.sandbox.base import Bundle, PutItem, Tier
from proctor.sandbox.namespace import grounds
from proctor.sandbox.namespace.kind import NamespaceKind

__all__ = ["admitted", "bench", "kind"]
pytestmark = [pytest.mark.real, pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount and to forbid")]


@pytest.fixture
def small_root(tmp_path: Path) -> Path:
    """A root file system of few programs: a copy of the whole host would take minutes."""
    root = make_root(tmp_path / "root")
    (root / "secret").mkdir()
    (root / "secret/key").write_text("hidden")
    return root


@pytest.fixture
def on_overlay(tmp_path: Path) -> Iterator[Path]:
    """A folder that lies on an overlay, as everything does in a container."""
    for name in ("l", "u", "w", "m"):
        (tmp_path / name).mkdir()
    options = f"lowerdir={tmp_path}/l,upperdir={tmp_path}/u,workdir={tmp_path}/w"
    done = subprocess.run(
        ["mount", "-t", "overlay", "overlay", "-o", options, str(tmp_path / "m")], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("no overlay can be mounted here")
    yield tmp_path / "m"
    subprocess.run(["umount", "-l", str(tmp_path / "m")], check=True)


@pytest.mark.parametrize("files", ["overlay in memory", "copied"])
async def test_where_overlays_do_not_stack_worlds_are_the_same_and_say_so(
    bench: Bench, small_root: Path, on_overlay: Path, files: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.scratch = on_overlay / "scratch"
    bench.kind = NamespaceKind()
    if files == "copied":
        monkeypatch.setattr(grounds, "Store", _no_attributes)
    (bench.folder / "bundle").mkdir()
    (bench.folder / "bundle/f").write_text("of the host")
    bundle = Bundle(bench.folder / "bundle", "/a/b")
    world = await bench.start(root=small_root, hidden=(small_root / "secret",), bundles=(bundle,))
    assert world.facts["files"] == files
    told = any("bundles" in said for said in world.facts["not_isolated"])
    _, said = await bench.run(world, "cat /a/b/f; echo x > /a/b/f; cat /proc/self/mountinfo")
    assert said.startswith("of the host") and (str(bundle.source) in said) == told == (files == "copied")
    assert (bundle.source / "f").read_text() == "of the host"
    await world.put([PutItem("/data/f", content=b"put")])
    _, said = await bench.run(world, "cat /data/f; echo; ls /secret; echo new > /etc/new; rm /usr/bin/ls")
    assert said.startswith("put\n") and "hidden" not in said
    assert (small_root / "usr/bin/ls").exists() and not (small_root / "etc/new").exists()
    snapshot = await world.capture()
    forks = await asyncio.gather(*(bench.kind.fork(snapshot, bench.spec(), bench.admitted) for _ in range(2)))
    bench.worlds.extend(forks)
    await bench.run(forks[0], "echo changed > /etc/new")
    _, said = await bench.run(forks[1], "cat /data/f /etc/new; ls /")
    assert (said.startswith("putnew\n") and "'ls'" in said) or "not found" in said
    for fork in forks:
        await fork.stop()
    bench.kind.release(snapshot, bench.admitted)
    assert bench.left() == []


def _no_attributes(tier: Tier) -> None:
    """Memory as kernels before 6.6 have it."""
    raise OSError(errno.EOPNOTSUPP, "no user attributes in memory")


FORBIDDEN = """
import json, sys
from proctor.core.tokens import seal_probe
from proctor.sandbox.namespace.kind import NamespaceKind
seen = NamespaceKind().probe(seal_probe(60))
print(json.dumps([seen.available, [refusal.as_record() for refusal in seen.refusals]]))
"""


async def test_forbidden_user_namespaces_are_a_typed_refusal_with_its_fix(tmp_path: Path) -> None:
    script = tmp_path / "forbidden.py"
    script.write_text(FORBIDDEN)
    # In a user namespace of its own the limit can be set to zero without touching the machine's.
    command = f"echo 0 > /proc/sys/user/max_user_namespaces && exec {sys.executable} {script}"
    process = await asyncio.create_subprocess_exec(
        *("unshare", "--user", "--map-root-user", "sh", "-c", command),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    available, refusals = json.loads(said)
    assert not available
    assert [refusal["reason"] for refusal in refusals] == ["user_namespaces_forbidden"]
    assert "user.max_user_namespaces" in refusals[0]["remedy"]


async def test_a_covered_proc_is_a_typed_refusal_with_its_fix(tmp_path: Path) -> None:
    script = tmp_path / "covered.py"
    script.write_text(FORBIDDEN)
    # other whole /proc mounts on the machine, such as a chroot's, would do as well
    uncover = 'for p in $(awk \'$3 == "proc" && $2 != "/proc" {print $2}\' /proc/mounts); do umount -l $p; done; '
    command = f"{uncover} mount -t tmpfs tmpfs /proc/driver && exec {sys.executable} {script}"
    process = await asyncio.create_subprocess_exec(
        *("unshare", "--mount", "--propagation", "private", "sh", "-c", command),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    available, refusals = json.loads(said)
    assert not available
    assert [refusal["reason"] for refusal in refusals] == ["sandbox_unavailable"]
    assert "systempaths" in refusals[0]["remedy"] and len(refusals[0]["observed"]) == 3
