"""Captured worlds of namespaces, and what is started on them. Runs again as an ordinary user."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from namespace_bench import Bench, admitted, bench, kind

from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Limits, Snapshot
from proctor.sandbox.namespace.layers import MOST_LAYERS
from proctor.sandbox.namespace.sandbox import NamespaceSandbox

__all__ = ["admitted", "bench", "kind"]
pytestmark = pytest.mark.real


async def fork(bench: Bench, snapshot: Snapshot, **changes: object) -> NamespaceSandbox:
    world = await bench.kind.fork(snapshot, bench.spec(**changes), bench.admitted)
    bench.worlds.append(world)
    return world


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


async def test_a_snapshot_of_another_tier_is_refused(bench: Bench) -> None:
    world = await bench.start()
    snapshot = await world.capture()
    with pytest.raises(Refusal) as refused:
        await fork(bench, replace(snapshot, facts={**snapshot.facts, "tier": "other"}))
    assert refused.value.reason is Reason.CAPTURE_FAILED
