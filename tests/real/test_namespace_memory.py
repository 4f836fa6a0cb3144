"""Worlds whose files lie in memory, since no folder takes layers. Run again as in a container; elsewhere it skips."""

from __future__ import annotations

import asyncio
import os
import select
import signal
from pathlib import Path

import pytest
from namespace_bench import Bench, admitted, bench, kind

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_probe
from proctor.sandbox.base import Limits, PutItem
from proctor.sandbox.namespace.kind import NamespaceKind

__all__ = ["admitted", "bench", "kind"]
pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def in_memory(kind: NamespaceKind) -> None:
    if kind.probe(seal_probe(30)).facts["files"] != "overlay in memory":
        pytest.skip("the temporary folder takes layers")


async def test_where_files_lie_is_disclosed(bench: Bench) -> None:
    seen = bench.kind.probe(seal_probe(30))
    assert seen.facts["overlay"] is True
    assert any("lies in memory, at most" in note for note in seen.notes)
    world = await bench.start(limits=Limits(storage_bytes=1 << 28, memory_bytes=1 << 28))
    assert world.facts["files"] == "overlay in memory" and world.facts["files_in_memory_bytes_at_most"] > 1 << 20
    storage = next(limit for limit in world.limits_enforced if limit.name == "storage")
    assert storage.enforced == 1 << 28 and (storage.how or "").endswith("in memory")


async def test_nothing_of_it_is_on_the_disk_or_in_the_mount_table(bench: Bench) -> None:
    before = Path("/proc/self/mounts").read_text()
    world = await bench.start()
    await world.put([PutItem("/big", content=bytes(1 << 20))])
    assert Path("/proc/self/mounts").read_text() == before
    assert sum(path.stat().st_size for path in bench.scratch.rglob("*") if path.is_file()) < 1 << 16
    _, said = await bench.run(world, "stat -c %s /big; cat /proc/*/mountinfo")
    assert said.startswith("1048576\n") and "proctor" not in said


async def test_what_lay_in_memory_ends_with_its_launcher_and_is_refused_by_type(bench: Bench) -> None:
    bench.kind = NamespaceKind()
    world = await bench.start()
    await bench.run(world, "echo x > /f")
    snapshot = await world.capture()
    launcher = int(snapshot.layers[0].parts[2])
    ended = os.pidfd_open(launcher)
    os.kill(launcher, signal.SIGKILL)
    await asyncio.to_thread(select.select, [ended], [], [], 600)
    os.close(ended)
    other = await bench.start()
    assert (await bench.run(other, "echo lives; ls /f"))[1].startswith("lives\n")
    with pytest.raises(Refusal) as refused:
        await bench.kind.fork(snapshot, bench.spec(), bench.admitted)
    assert refused.value.reason is Reason.CAPTURE_FAILED and "memory" in str(refused.value)
    bench.kind.release(snapshot, bench.admitted)
    await other.stop()
    assert bench.left() == []
