"""Captured containers and what is started on them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from docker_bench import BUSYBOX, DEBIAN, Bench, admitted, bench, call, image_id, kind

from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Exec, Image, Limits, PutItem, Snapshot
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


async def test_a_fork_has_everything_that_was_written_wherever(bench: Bench) -> None:
    world = await bench.start()
    places = ["/app/f", "/tmp/f", "/usr/local/bin/f", "/etc/f", "/opt/f", "/root/f", "/var/lib/f", "/new/f"]
    await bench.run(
        world, f"for f in {' '.join(places)}; do mkdir -p $(dirname $f); echo $f > $f; done; rm -r /media; rm /bin/cat"
    )
    snapshot = await world.capture()
    forked = await fork(bench, snapshot)
    _, said = await bench.run(
        forked, f"for f in {' '.join(places)}; do read x < $f; echo $x; done; ls -d /media /bin/cat"
    )
    assert said.splitlines()[: len(places)] == places
    assert "/media" in said and "/bin/cat'" in said
    await forked.stop()
    assert await released(bench, snapshot)
    assert json.loads(json.dumps(dict(snapshot.facts))) == dict(snapshot.facts)


async def test_a_captured_world_is_over_and_its_processes_too(bench: Bench) -> None:
    world = await bench.start(limits=Limits(pids=50))
    snapshot = await world.capture()
    with pytest.raises(Refusal) as refused:
        await bench.run(world, "true")
    assert refused.value.reason is Reason.SANDBOX_LOST
    await world.stop()
    assert await released(bench, snapshot)


async def test_four_forks_at_once_share_one_capture_and_nothing_else(bench: Bench) -> None:
    world = await bench.start(image=BUSYBOX)
    await bench.run(world, "echo shared > /shared")
    snapshot = await world.capture()

    async def one(index: int) -> str:
        forked = await fork(bench, snapshot)
        out = bench.folder / f"out{index}"
        script = f"cat /shared; echo {index} > /shared; echo {index} > /own{index}; ls -d /own*; cat /shared"
        await forked.exec(Exec(("sh", "-c", script), stdout=out))
        await forked.stop()
        return out.read_text()

    said = await asyncio.gather(*(one(index) for index in range(4)))
    assert said == [f"shared\n/own{index}\n{index}\n" for index in range(4)]
    assert await released(bench, snapshot)


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


async def test_a_snapshot_that_is_gone_or_foreign_is_refused(bench: Bench) -> None:
    world = await bench.start(image=BUSYBOX)
    snapshot = await world.capture()
    with pytest.raises(Refusal) as refused:
        await fork(bench, replace(snapshot, kind="namespace"))
    assert refused.value.reason is Reason.CAPTURE_FAILED
    assert await released(bench, snapshot)
    with pytest.raises(Refusal) as refused:
        await fork(bench, snapshot)
    assert refused.value.reason is Reason.CAPTURE_FAILED
    assert await released(bench, snapshot), "what is gone is released again"


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


async def test_what_changed_since_the_mark_is_told(bench: Bench) -> None:
    world = await bench.start(image=DEBIAN)
    await bench.run(world, "mkdir -p /app /opt/tool/deep; echo 1 > /opt/tool/deep/a; echo 1 > /opt/b; rm -f /etc/issue")
    await bench.run(world, "echo 1 > /usr/bin/of-the-task; rm /usr/bin/env; echo 1 > /app/mine")
    await world.mark(["/app"])
    ended, said = await bench.run(
        world,
        "set -e; cd /usr/bin; cp yes yes.real; rm yes; echo '#!/bin/sh' > yes; chmod 755 yes; rm of-the-task;"
        " sed -i s/root/toor/ /etc/passwd; touch /etc/was-here; rm /etc/was-here; rm /etc/timezone;"
        " rm -r /opt/tool; chmod 600 /opt/b; mkdir /var/empty; touch /var/log/x; rm /var/log/x; echo 2 > /new;"
        " mkdir -p /app/deep; echo 2 > /app/mine; echo 2 > /tmp/x; mkdir -p /logs; echo 2 > /logs/x;"
        " printf 2 > $(printf '/root/odd\\377')",
    )
    assert ended.exit_code == 0, said
    snapshot = await world.capture()
    facts = snapshot.facts
    assert facts["changed"] == {"/": 1, "/etc": 2, "/opt": 2, "/root": 1, "/usr": 3, "/var": 1}
    assert facts["changed_at_least"] is False
    first = ["/usr/bin/of-the-task", "/usr/bin/yes", "/usr/bin/yes.real", "/etc/passwd", "/etc/timezone"]
    assert facts["changed_paths"] == first
    assert await released(bench, snapshot)


async def test_nothing_changed_is_told_too_in_a_fork_as_well(bench: Bench) -> None:
    world = await bench.start()
    await bench.run(world, "echo 1 > /etc/one; mkdir /srv/x")
    await world.mark()
    await bench.run(world, "ls -lR /etc > /dev/null; echo work > /tmp/work")
    first = await world.capture()
    assert (first.facts["changed"], first.facts["changed_paths"]) == ({}, [])
    forked = await fork(bench, first)
    await forked.mark()
    await bench.run(forked, "rm -r /etc/one /srv/x; mkdir /srv/x; touch /etc/two; rm /etc/two")
    second = await forked.capture()
    assert second.facts["changed"] == {"/": 1, "/etc": 1}  # /srv/x is another one now
    for snapshot in (second, first):
        await asyncio.to_thread(bench.kind.release, snapshot, bench.admitted)


async def test_a_world_that_was_not_marked_tells_no_changes(bench: Bench) -> None:
    world = await bench.start(image=BUSYBOX)
    snapshot = await world.capture()
    assert snapshot.facts["changed"] is None and snapshot.facts["changed_why_not"]
    assert await released(bench, snapshot)


def test_the_engines_own_list_counts_files_and_folders_alone() -> None:
    before = told_by_list({"/etc": 0, "/etc/one": 1}, ())
    now = {"/etc": 0, "/etc/one": 1, "/etc/two": 1, "/usr": 0, "/usr/new": 1, "/tmp/x": 1, "/app": 1, "/app/x": 1}
    assert told(before, lambda: told_by_list(now, ["/app"]))["changed"] == {"/etc": 1, "/usr": 1}
