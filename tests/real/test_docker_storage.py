"""What containers may write has a limit also where the engine holds none: a watcher looks, and ends what is over."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from docker_bench import DEBIAN, PYTHON, Bench, admitted, bench, kind
from engine_left import docker

from proctor.core.tokens import seal_probe
from proctor.sandbox.base import LimitInForce, Limits
from proctor.sandbox.docker.kind import DockerKind

__all__ = ["admitted", "bench", "kind"]
pytestmark = pytest.mark.real

MIB = 2**20
FILL = "while :; do head -c 1048576 /dev/urandom >> {path} || exit 3; sleep 0.02; done"


@pytest.fixture(autouse=True)
def watched(kind: DockerKind) -> None:
    seen = kind.probe(seal_probe(30))
    if "storage" not in seen.capabilities.limits:
        pytest.skip(f"no limit on storage here: {seen.notes}")


async def limited(bench: Bench, **changes: Any) -> Any:
    limits = Limits(storage_bytes=64 * MIB)
    return await bench.start(limits=limits, required_limits=frozenset({"storage"}), **changes)


async def test_what_a_world_wants_is_in_force_and_says_how(bench: Bench) -> None:
    world = await limited(bench)
    (limit,) = [each for each in world.limits_enforced if each.name == "storage"]
    assert limit == LimitInForce("storage", 64 * MIB, 64 * MIB, limit.how, None)
    assert limit.how is not None


@pytest.mark.parametrize("path", ["/root/big", "/tmp/big", "/usr/lib/big"])
async def test_a_filler_is_ended_and_its_world_goes_on(bench: Bench, path: str) -> None:
    world = await limited(bench)
    ended, _ = await bench.run(world, FILL.format(path=path))
    assert (ended.limit_hit, ended.signal, ended.timed_out) == ("storage", signal.SIGKILL, False)
    (brought,) = await world.get([path], bench.folder / "in", cap_bytes=1 << 30, cap_files=10)
    assert 0 < brought.size < 1024 * MIB


async def test_volumes_of_the_image_count_as_well(bench: Bench) -> None:
    image = docker("build", "-q", "-", stdin=f"FROM {DEBIAN}\nVOLUME /kept\n".encode())
    world = await limited(bench, image=image)
    ended, _ = await bench.run(world, FILL.format(path="/kept/big"))
    assert ended.limit_hit == "storage"


async def test_files_of_many_names_and_of_none_count_as_what_they_take(bench: Bench) -> None:
    world = await limited(bench, image=PYTHON)
    made = "truncate -s 10G /root/sparse; head -c 1048576 /dev/zero > /root/a"
    ended, said = await bench.run(world, f"{made}; for i in $(seq 90); do ln /root/a /root/a$i; done; sleep 0.3")
    assert (ended.exit_code, ended.limit_hit) == (0, None), said


async def test_what_the_image_has_and_what_lies_in_memory_is_not_counted(bench: Bench) -> None:
    world = await limited(bench, tmp_bytes=128 * MIB)
    ended, said = await bench.run(world, "head -c 100000000 /dev/zero > /dev/shm/big; rm -rf /usr/share/doc; sleep 0.3")
    assert (ended.exit_code, ended.limit_hit) == (0, None), said


async def test_a_command_that_may_leave_processes_leaves_none_over_the_limit(bench: Bench) -> None:
    world = await limited(bench)
    ended, _ = await bench.run(world, f"sleep 1000 & {FILL.format(path='/root/big')}", leave_running=True)
    assert ended.limit_hit == "storage"
    assert await world.kill_all() == 0


async def test_a_world_that_ends_while_it_is_watched_is_told_as_ever(bench: Bench) -> None:
    world = await limited(bench)
    ended, said = await bench.run(world, "echo out; sleep 0.2; echo err >&2; exit 7")
    assert (ended.exit_code, ended.limit_hit, said) == (7, None, "out\nerr\n")
    ended, _ = await bench.run(world, "sleep 100", deadline_sec=0.5)
    assert (ended.timed_out, ended.limit_hit) == (True, None)
