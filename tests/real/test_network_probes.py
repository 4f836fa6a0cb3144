"""From inside a world everything is tried, and nothing is reached but the gateway. Runs again as an ordinary user."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from each_kind import SMALL_IMAGE, AnyBench, any_bench
from host_ears import Ears, own_addresses, resolver_addresses

from proctor.core.network import Network
from proctor.sandbox.base import PutItem, Sandbox

__all__ = ["any_bench"]
pytestmark = pytest.mark.real

HERE = Path(__file__).resolve().parent
KINDS = ("tcp", "udp", "name", "abstract", "unix", "socket", "link", "address", "route", "device", "setns", "unshare")


async def probe(bench: AnyBench, world: Sandbox, doors: dict[str, Any]) -> list[tuple[str, str, bool]]:
    await world.put(
        [PutItem("/prober.py", source=HERE / "prober.py"), PutItem("/doors.json", content=json.dumps(doors).encode())]
    )
    ended, said = await bench.run(world, "sh", "-c", 'exec python3 -I /prober.py "$(cat /doors.json)"')
    assert ended.exit_code == 0, said
    return [tuple(row) for row in json.loads(said)]


async def accepted(asked: list[Any]) -> None:
    """What connected before is heard of a little later."""
    for _ in range(20_000):
        if asked:
            return
        await asyncio.sleep(0.01)


async def test_a_prober_reaches_nothing(any_bench: AnyBench, tmp_path: Path) -> None:
    async with Ears(tmp_path) as ears:
        world = await any_bench.start(network=Network.NONE)
        tried = await probe(any_bench, world, ears.all_doors() | {"far": True, "scan": True})
        assert ears.heard == []
    assert [row for row in tried if row[2]] == []
    assert {what.split()[0] for what, _, _ in tried} >= set(KINDS) and len(tried) > 100


async def test_a_prober_reaches_the_gateway_and_nothing_else(any_bench: AnyBench, tmp_path: Path) -> None:
    asked = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(writer.get_extra_info("sockname"))
        writer.write(b"the gateway\n")
        writer.close()

    async with Ears(tmp_path) as ears:
        world = await any_bench.start(network=Network.GATEWAY_ONLY)
        server = await asyncio.start_server(answer, sock=await world.listen())
        doors = ears.all_doors() | {"far": True, "scan": True}
        # somebody on this host may use that number, too
        doors["tcp"] = [door for door in doors["tcp"] if door[1] != 47600]
        doors["tcp"] += [(address, 47600) for address in ("127.0.0.1", "172.17.0.1", "::1", *own_addresses())]
        tried = await probe(any_bench, world, doors)
        await accepted(asked)
        server.close()
        assert ears.heard == []
    reached = {what: how for what, how, was in tried if was}
    assert set(reached) == {"tcp 127.0.0.1 47600"}
    assert reached["tcp 127.0.0.1 47600"].startswith("connected")
    assert set(asked) == {("127.0.0.1", 47600)}


async def test_the_prober_can_reach_what_there_is_to_reach(any_bench: AnyBench, tmp_path: Path) -> None:
    """Without which the other tests would say nothing: where the network is shared it finds each of our listeners."""
    if any_bench.kind.name != "namespace":
        pytest.skip("only the namespace sandbox shares the host's network where it is public")
    async with Ears(tmp_path) as ears:
        world = await any_bench.start(network=Network.PUBLIC)
        doors = {"tcp": ears.tcp, "udp": ears.udp, "abstract": [ears.abstract], "paths": [], "names": []}
        tried = await probe(any_bench, world, doors | {"far": False, "scan": False, "wait": 5.0})
        reached = {what for what, _, was in tried if was}
        for kind, targets in (("tcp", ears.tcp), ("udp", ears.udp)):
            missed = [
                (address, port)
                for address, port in targets
                if not any(what.startswith(f"{kind} {address}") and what.endswith(f" {port}") for what in reached)
            ]
            assert missed == []
        assert f"abstract {ears.abstract}" in reached and ears.heard


@pytest.mark.parametrize("network", [Network.NONE, Network.GATEWAY_ONLY])
async def test_a_prober_without_python_reaches_no_more(any_bench: AnyBench, network: Network, tmp_path: Path) -> None:
    asked = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(1)
        writer.write(b"the gateway\n")
        writer.close()

    async with Ears(tmp_path) as ears:
        world = await any_bench.start(network=network, image=SMALL_IMAGE)
        doors = [f"tcp {address} {port}" for address, port in ears.tcp] + ["tcp 127.0.0.1 47600"]
        doors += ["name example.com", *(f"resolver {address}" for address in resolver_addresses())]
        allowed = set()
        if network is Network.GATEWAY_ONLY:
            server = await asyncio.start_server(answer, sock=await world.listen())
            allowed = {"reached tcp 127.0.0.1 47600"}
        await world.put([PutItem("/prober.sh", source=HERE / "prober.sh")])
        ended, said = await any_bench.run(world, "sh", "/prober.sh", stdin="\n".join([*doors, ""]).encode())
        if network is Network.GATEWAY_ONLY:
            await accepted(asked)
            server.close()
        assert ears.heard == []
    assert ended.exit_code == 0
    rows = said.splitlines()
    assert {row for row in rows if row.startswith("reached")} == allowed and len(asked) == len(allowed)
    assert len(rows) > len(doors) and not any(row.startswith("absent tcp") for row in rows)
