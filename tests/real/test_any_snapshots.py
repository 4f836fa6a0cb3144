"""Captured worlds and what is started on them, in every kind of sandbox. Runs again as an ordinary user."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from each_kind import Bench, bench

from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Exec, Limits, Sandbox, Snapshot

__all__ = ["bench"]
pytestmark = pytest.mark.real


async def fork(bench: Bench, snapshot: Snapshot) -> Sandbox:
    world: Sandbox = await bench.kind.fork(snapshot, bench.spec(image=None), bench.admitted)
    bench.worlds.append(world)
    return world


async def released(bench: Bench, *snapshots: Snapshot) -> bool:
    for snapshot in snapshots:
        await asyncio.to_thread(bench.kind.release, snapshot, bench.admitted)
    return await bench.nothing_left()


async def test_a_fork_has_everything_that_was_written_wherever(bench: Bench) -> None:
    world = await bench.start()
    names = ("app", "tmp", "usr/local/bin", "usr/share", "etc", "opt", "root", "var/lib", "new")
    places = [f"/{name}/f" for name in names]
    await bench.run(
        world,
        f"for f in {' '.join(places)}; do mkdir -p $(dirname $f); echo $f > $f; done; rm -r /media; rm /usr/bin/env",
    )
    snapshot = await world.capture()
    forked = await fork(bench, snapshot)
    _, said = await bench.run(forked, f"cat {' '.join(places)}; stat -c %a /tmp /; ls -d /media; ls -d /usr/bin/env")
    assert said.splitlines()[:-2] == [*places, "1777", "755"]
    assert "/media'" in said and "/usr/bin/env'" in said
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
    assert bench.left()
    assert await released(bench, snapshot)


async def test_forks_at_once_share_one_capture_and_nothing_else(bench: Bench) -> None:
    world = await bench.start()
    await bench.run(world, "echo shared > /shared")
    snapshot = await world.capture()
    number = 4 if bench.has_images else 16

    async def one(index: int) -> str:
        forked = await fork(bench, snapshot)
        out = bench.folder / f"out{index}"
        script = f"cat /shared; echo {index} > /shared; echo {index} > /own{index}; ls -d /own*; cat /shared"
        await forked.exec(Exec(("sh", "-c", script), stdout=out))
        await forked.stop()
        return out.read_text()

    said = await asyncio.gather(*(one(index) for index in range(number)))
    assert said == [f"shared\n/own{index}\n{index}\n" for index in range(number)]
    assert await released(bench, snapshot)


async def test_a_snapshot_that_is_gone_or_foreign_is_refused(bench: Bench) -> None:
    world = await bench.start()
    snapshot = await world.capture()
    with pytest.raises(Refusal) as refused:
        await fork(bench, replace(snapshot, kind="another"))
    assert refused.value.reason is Reason.CAPTURE_FAILED
    assert await released(bench, snapshot)
    with pytest.raises(Refusal) as refused:
        await fork(bench, snapshot)
    assert refused.value.reason is Reason.CAPTURE_FAILED
    assert await released(bench, snapshot), "what is gone is released again"


# --- what changed since a mark


async def test_what_changed_since_the_mark_is_told(bench: Bench) -> None:
    world = await bench.start(network=Network.PUBLIC)  # which may have a file of its own written into /etc
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
    await bench.run(world, "echo 1 > /etc/one; rm /etc/timezone; mkdir /srv/x")
    await world.mark()
    await bench.run(world, "ls -lR /etc > /dev/null; echo work > /tmp/work")
    first = await world.capture()
    assert (first.facts["changed"], first.facts["changed_paths"]) == ({}, [])
    forked = await fork(bench, first)
    await forked.mark()
    await bench.run(forked, "rm -r /etc/one /srv/x; mkdir /srv/x; touch /etc/two; rm /etc/two")
    second = await forked.capture()
    assert second.facts["changed"] == {"/": 1, "/etc": 1}  # /srv/x is another one now
    assert second.facts["changed_paths"] == ["/etc/one", "/srv/x"]
    assert await released(bench, second, first)


async def test_a_world_that_was_not_marked_tells_no_changes(bench: Bench) -> None:
    world = await bench.start()
    await bench.run(world, "echo 1 > /etc/one")
    snapshot = await world.capture()
    facts = snapshot.facts
    assert facts["changed"] is None and facts["changed_why_not"] and "changed_paths" not in facts
    assert await released(bench, snapshot)
