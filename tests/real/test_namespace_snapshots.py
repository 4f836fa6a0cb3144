"""Captured worlds and what is started on them. Runs again as an ordinary user."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from namespace_bench import Bench, admitted, bench, kind

from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Exec, Limits, Snapshot
from proctor.sandbox.namespace.layers import MOST_LAYERS
from proctor.sandbox.namespace.sandbox import NamespaceSandbox

__all__ = ["admitted", "bench", "kind"]
pytestmark = pytest.mark.real


async def fork(bench: Bench, snapshot: Snapshot, **changes: object) -> NamespaceSandbox:
    world = await bench.kind.fork(snapshot, bench.spec(**changes), bench.admitted)
    bench.worlds.append(world)
    return world


async def test_a_fork_has_everything_that_was_written_wherever(bench: Bench) -> None:
    world = await bench.start()
    places = [
        "/app/f",
        "/tmp/f",
        "/usr/local/bin/f",
        "/usr/share/f",
        "/etc/f",
        "/opt/f",
        "/root/f",
        "/var/lib/f",
        "/new/f",
    ]
    await bench.run(
        world,
        f"for f in {' '.join(places)}; do mkdir -p $(dirname $f); echo $f > $f; done; rm -r /media; rm /usr/bin/cal",
    )
    snapshot = await world.capture()
    forked = await fork(bench, snapshot)
    _, said = await bench.run(forked, f"cat {' '.join(places)}; ls -d /media; stat -c %a /tmp /")
    assert said.splitlines()[: len(places)] == places
    assert "/media'" in said and said.endswith("1777\n755\n")
    await forked.stop()
    bench.kind.release(snapshot, bench.admitted)
    assert bench.left() == []


async def test_a_captured_world_is_over_and_its_processes_too(bench: Bench) -> None:
    world = await bench.start(limits=Limits(pids=50))
    snapshot = await world.capture()
    with pytest.raises(Refusal) as refused:
        await bench.run(world, "true")
    assert refused.value.reason is Reason.SANDBOX_LOST
    await world.stop()
    assert [path.exists() for path in snapshot.layers] == [True]
    bench.kind.release(snapshot, bench.admitted)
    assert bench.left() == []


async def test_sixteen_forks_at_once_share_one_capture_and_nothing_else(bench: Bench) -> None:
    world = await bench.start()
    await bench.run(world, "echo shared > /shared")
    snapshot = await world.capture()

    async def one(index: int) -> str:
        forked = await fork(bench, snapshot)
        out = bench.folder / f"out{index}"
        script = f"cat /shared; echo {index} > /shared; echo {index} > /own{index}; ls -d /own*; cat /shared"
        await forked.exec(Exec(("sh", "-c", script), stdout=out))
        await forked.stop()
        return out.read_text()

    said = await asyncio.gather(*(one(index) for index in range(16)))
    assert said == [f"shared\n/own{index}\n{index}\n" for index in range(16)]
    bench.kind.release(snapshot, bench.admitted)
    assert bench.left() == []


async def test_many_captures_in_a_row_are_joined_and_show_the_same(bench: Bench) -> None:
    world = await bench.start()
    snapshots = []
    for index in range(MOST_LAYERS + 4):
        script = (
            f"echo {index} > /f{index}; rm -f /f{index - 2}; mkdir -p /d /usr/share/d; echo {index} > /d/latest;"
            f" if [ {index} = 3 ]; then rm -rf /d; mkdir /d; echo 3 > /d/third; fi; echo {index} >> /usr/share/d/log;"
            " rm -f /usr/bin/env"
        )
        ended, said = await bench.run(world, script)
        assert ended.exit_code == 0, said
        snapshots.append(await world.capture())
        world = await fork(bench, snapshots[-1])
    assert max(len(snapshot.layers) for snapshot in snapshots) < MOST_LAYERS
    _, said = await bench.run(world, "ls -d /f*; ls /d; wc -l < /usr/share/d/log; ls -d /usr/bin/env")
    last = MOST_LAYERS + 3
    assert said.startswith(f"/f{last - 1}\n/f{last}\nlatest\nthird\n{last + 1}\n") and "No such file" in said
    await world.stop()
    for snapshot in reversed(snapshots):
        bench.kind.release(snapshot, bench.admitted)
    assert bench.left() == []


async def test_limits_and_mounts_of_a_fork_are_those_of_the_world(bench: Bench) -> None:
    limits = Limits(memory_bytes=128 << 20, pids=40, storage_bytes=1 << 28)
    world = await bench.start(limits=limits)
    script = "cut -d' ' -f2,3 /proc/mounts | grep -v overlay; ulimit -a; cat /proc/sys/user/max_user_namespaces"
    before = (await bench.run(world, script))[1]
    snapshot = await world.capture()
    forked = await fork(bench, snapshot, limits=limits)
    assert (await bench.run(forked, script))[1] == before
    assert forked.limits_enforced == world.limits_enforced


async def test_a_fork_may_have_another_network(bench: Bench) -> None:
    world = await bench.start()
    snapshot = await world.capture()
    forked = await fork(bench, snapshot, network=Network.PUBLIC)
    _, said = await bench.run(forked, "cat /etc/resolv.conf")
    host = Path("/etc/resolv.conf")
    assert said == (host.read_text() if host.exists() else "")


async def test_a_snapshot_that_is_gone_or_foreign_is_refused(bench: Bench) -> None:
    world = await bench.start()
    snapshot = await world.capture()
    for other in (replace(snapshot, kind="docker"), replace(snapshot, facts={**snapshot.facts, "tier": "other"})):
        with pytest.raises(Refusal) as refused:
            await fork(bench, other)
        assert refused.value.reason is Reason.CAPTURE_FAILED
    bench.kind.release(snapshot, bench.admitted)
    with pytest.raises(Refusal) as refused:
        await fork(bench, snapshot)
    assert refused.value.reason is Reason.CAPTURE_FAILED
    assert bench.left() == []


async def test_an_agents_shell_is_not_what_keeps_a_fork(bench: Bench) -> None:
    world = await bench.start()
    await bench.run(
        world, "rm /usr/bin/sh /usr/bin/dash /usr/bin/bash; cp /usr/bin/false /usr/bin/sh; rm -r /etc /proc 2>/dev/null"
    )
    snapshot = await world.capture()
    forked = await fork(bench, snapshot)
    ended, said = await bench.run(forked, "", argv=("cat", "/proc/1/comm"))
    assert (ended.exit_code, said.strip()) != (None, "")
    assert await forked.kill_all() == 0


# --- what changed since a mark


async def test_what_changed_since_the_mark_is_told(bench: Bench, tmp_path: Path) -> None:
    world = await bench.start(network=Network.PUBLIC)  # which has a file of its own written into /etc
    await bench.run(world, "mkdir -p /app /opt/tool/deep; echo 1 > /opt/tool/deep/a; echo 1 > /opt/b; rm /etc/hostname")
    await bench.run(world, "echo 1 > /usr/bin/of-the-task; rm /usr/bin/env; echo 1 > /app/mine")
    await world.mark(["/app"])
    ended, said = await bench.run(
        world,
        "set -e; cd /usr/bin; cp yes yes.real; rm yes; echo '#!/bin/sh' > yes; chmod 755 yes; rm of-the-task;"
        " sed -i s/root/toor/ /etc/passwd; touch /etc/was-here; rm /etc/was-here; rm /etc/timezone;"
        " rm -r /opt/tool; chmod 600 /opt/b; mkdir /var/empty; touch /var/log/x; rm /var/log/x; echo 2 > /new;"
        " mkdir -p /app/deep; echo 2 > /app/mine; echo 2 > /tmp/x; mkdir /logs; echo 2 > /logs/x;"
        " printf 2 > $(printf '/root/odd\\377')",
    )
    assert ended.exit_code == 0, said
    facts = (await world.capture()).facts
    assert facts["changed"] == {"/": 1, "/etc": 2, "/opt": 2, "/root": 1, "/usr": 3, "/var": 1}
    assert facts["changed_at_least"] is False
    assert facts["changed_paths"] == [
        "/usr/bin/of-the-task",
        "/usr/bin/yes",
        "/usr/bin/yes.real",
        "/etc/passwd",
        "/etc/timezone",
    ]


async def test_nothing_changed_is_told_too_in_a_fork_as_well(bench: Bench) -> None:
    world = await bench.start()
    await bench.run(world, "echo 1 > /etc/one; rm /etc/timezone; mkdir /srv/x")
    await world.mark()
    await bench.run(world, "ls -lR /etc > /dev/null; echo work > /tmp/work")
    first = await world.capture()
    assert (first.facts["changed"], first.facts["changed_paths"]) == ({}, [])
    forked = await bench.kind.fork(first, bench.spec(), bench.admitted)
    bench.worlds.append(forked)
    await forked.mark()
    await bench.run(forked, "rm -r /etc/one /srv/x; mkdir /srv/x; touch /etc/two; rm /etc/two")
    second = await forked.capture()
    assert second.facts["changed"] == {"/": 1, "/etc": 1}  # /srv/x is another one now
    assert second.facts["changed_paths"] == ["/etc/one", "/srv/x"]
    bench.kind.release(second, bench.admitted)
    bench.kind.release(first, bench.admitted)


async def test_a_world_that_was_not_marked_tells_no_changes(bench: Bench) -> None:
    world = await bench.start()
    await bench.run(world, "echo 1 > /etc/one")
    facts = (await world.capture()).facts
    assert facts["changed"] is None and facts["changed_why_not"] and "changed_paths" not in facts
