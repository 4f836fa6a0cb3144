"""Captured containers and what is started on them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from docker_bench import BUSYBOX, Bench, admitted, bench, call, image_id, kind

from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Image, Limits, PutItem, Snapshot
from proctor.sandbox.changes import told
from proctor.sandbox.docker.changes import told_by_list
from proctor.sandbox.docker.world import DockerSandbox

__all__ = ["admitted", "bench", "kind"]
pytestmark = pytest.mark.real


async def fork(bench: Bench, snapshot: Snapshot, **changes: object) -> DockerSandbox:
    world = await bench.kind.fork(snapshot, bench.spec(image=None, **changes), bench.admitted)
    bench.worlds.append(world)
    return world


async def released(bench: Bench, snapshot: Snapshot) -> bool:
    await asyncio.to_thread(bench.kind.release, snapshot, bench.admitted)
    return await bench.nothing_left()


async def test_captures_in_a_row_show_the_same(bench: Bench) -> None:
    world = await bench.start(image=BUSYBOX)
    snapshots = []
    for index in range(4):
        await bench.run(world, f"echo {index} > /f{index}; rm -f /f{index - 2}; rm -rf /d; mkdir /d; touch /d/{index}")
        snapshots.append(await world.capture())
        world = await fork(bench, snapshots[-1])
    _, said = await bench.run(world, "ls -d /f*; ls /d")
    assert said == "/f2\n/f3\n3\n"
    await world.stop()
    for snapshot in reversed(snapshots):
        await asyncio.to_thread(bench.kind.release, snapshot, bench.admitted)
    assert await bench.nothing_left()


async def test_limits_and_environment_of_a_fork_are_its_own(bench: Bench) -> None:
    world = await bench.start(limits=Limits(memory_bytes=128 << 20, pids=40), env={"A": "1", "B": "1"})
    snapshot = await world.capture()
    forked = await fork(bench, snapshot, limits=Limits(memory_bytes=256 << 20, pids=80), env={"A": "2"})
    found = {entry.name: entry.enforced for entry in forked.limits_enforced}
    assert (found["memory"], found["pids"]) == (256 << 20, 80)
    _, said = await bench.run(
        forked, "echo $A $B; cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null"
    )
    assert said.splitlines()[0] == "2" and said.splitlines()[-1] == "80"
    await forked.stop()
    assert await released(bench, snapshot)


async def test_a_fork_may_have_another_network(bench: Bench) -> None:
    world = await bench.start(image=BUSYBOX)
    snapshot = await world.capture()
    forked = await fork(bench, snapshot, network=Network.PUBLIC)
    _, said = await bench.run(forked, "ls /sys/class/net")
    assert "eth0" in said.split() and forked.facts["network_is"] == "the engine's bridge"
    assert any("network" in words for words in forked.facts["not_isolated"])


@pytest.mark.parametrize(
    "trap",
    [
        "mkfifo /etc/passwd /etc/group",
        "ln -s /dev/zero /etc/passwd",
        "(printf 'root:x:'; head -c 100000 /dev/zero | tr '\\0' 1; echo ':0::/:/bin/sh') > /etc/passwd",
    ],
)
async def test_a_fork_of_a_world_whose_tables_are_traps_starts(bench: Bench, trap: str) -> None:
    world = await bench.start(image=BUSYBOX)
    await bench.run(world, f"rm /etc/passwd /etc/group; {trap}")
    snapshot = await world.capture()
    forked = await fork(bench, snapshot)
    assert "/etc/passwd" in forked.facts["tables_replaced"]
    assert (await bench.run(forked, "id -u"))[1] == "0\n"
    await forked.stop()
    assert await released(bench, snapshot)


async def test_an_image_that_a_fork_cannot_start_from_is_a_typed_refusal(bench: Bench) -> None:
    world = await bench.start(image=BUSYBOX)
    await bench.run(world, "rm -rf /bin")
    snapshot = await world.capture()
    with pytest.raises(Refusal) as refused:
        await fork(bench, snapshot)
    assert refused.value.reason is Reason.SANDBOX_START_FAILED and "sh" in refused.value.message
    assert await released(bench, snapshot)


# --- volumes


async def with_volume(bench: Bench, folder: Path) -> str:
    (folder / "context").mkdir()
    text = "FROM busybox:latest\nRUN mkdir -p /data/sub && echo base > /data/base && chmod 1777 /data\nVOLUME /data\n"
    base = image_id(bench.kind, BUSYBOX)
    bases = {"busybox:latest": base}
    image = Image(context=folder / "context", dockerfile=text, stages=(1,), base_ids=bases, key="ab" * 32)
    return (await bench.kind.provide(image, bench.admitted)).id


async def test_volumes_are_captured_and_begin_in_a_fork_as_they_were(bench: Bench, tmp_path: Path) -> None:
    image = await with_volume(bench, tmp_path)
    world = await bench.start(image=image)
    assert world.facts["volumes"] == ["/data"]
    await world.put([PutItem("/data/put", content=b"put\n", mode=0o600)])
    await bench.run(
        world, "cat /data/base; rm /data/base; rmdir /data/sub; echo mine > /data/mine; ln -s mine /data/link"
    )
    await world.mark()
    snapshot = await world.capture()
    assert snapshot.facts["changed"] == {} and snapshot.facts["changed_at_least"] is True
    for _ in range(2):
        forked = await fork(bench, snapshot)
        _, said = await bench.run(forked, "cd /data; ls; cat link put; stat -c %a . put; rm mine")
        assert said == "link\nmine\nput\nmine\nput\n1777\n600\n"
        await forked.stop()
    volumes = {row["Name"] for row in call("GET", "volumes")["Volumes"] or ()}
    assert await released(bench, snapshot)
    assert list(bench.scratch.iterdir()) == []
    left = {row["Name"] for row in call("GET", "volumes")["Volumes"] or ()}
    assert left <= volumes
    call("DELETE", f"images/{image}", params={"force": "1"})


# --- what changed since a mark


def test_the_engines_own_list_counts_files_and_folders_alone() -> None:
    before = told_by_list({"/etc": 0, "/etc/one": 1}, ())
    now = {"/etc": 0, "/etc/one": 1, "/etc/two": 1, "/usr": 0, "/usr/new": 1, "/tmp/x": 1, "/app": 1, "/app/x": 1}
    assert told(before, lambda: told_by_list(now, ["/app"]))["changed"] == {"/etc": 1, "/usr": 1}
