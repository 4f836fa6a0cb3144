"""What of its worlds the namespace sandbox alone has. Runs again as an ordinary user."""

from __future__ import annotations

import asyncio
import os
import select
from pathlib import Path

import pytest
from namespace_bench import Bench, admitted, bench, kind, make_root

from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_probe
from proctor.sandbox.base import Limits
from proctor.sandbox.namespace.kind import NamespaceKind

__all__ = ["admitted", "bench", "kind"]
pytestmark = pytest.mark.real


async def test_storage_has_a_limit_over_many_files(bench: Bench) -> None:
    world = await bench.start(limits=Limits(storage_bytes=32 << 20), required_limits=frozenset({"storage"}))
    fill = "i=0; while :; do head -c 1000000 /dev/zero > /var/f$i; i=$((i+1)); sleep 0.005; done"
    ended, _ = await bench.run(world, fill, deadline_sec=600)
    assert (ended.limit_hit, ended.timed_out) == ("storage", False)


async def test_storage_has_a_limit_on_one_file(bench: Bench) -> None:
    world = await bench.start(limits=Limits(storage_bytes=8 << 20))
    ended, _ = await bench.run(world, "exec head -c 1000000000 /dev/zero > /var/f", deadline_sec=600)
    assert ended.limit_hit == "storage"


async def test_limits_are_read_back(bench: Bench) -> None:
    wanted = Limits(cpus=1.5, memory_bytes=128 << 20, storage_bytes=1 << 30, pids=50)
    world = await bench.start(limits=wanted)
    found = {entry.name: entry for entry in world.limits_enforced}
    assert set(found) == {"cpus", "memory", "storage", "pids"}
    for name, value in (("memory", 128 << 20), ("storage", 1 << 30), ("pids", 50)):
        assert (found[name].wanted, found[name].enforced) == (value, value)
        assert found[name].how and found[name].why_not is None
    if found["cpus"].enforced is None:
        assert found["cpus"].why_not
    else:
        assert found["cpus"].enforced == 1.5


async def test_a_limit_that_cannot_be_had_is_refused_when_required(bench: Bench, kind: NamespaceKind) -> None:
    if "cpus" in kind.probe(seal_probe(30)).capabilities.limits:
        pytest.skip("every limit can be had here")
    with pytest.raises(Refusal) as refused:
        await bench.start(limits=Limits(cpus=1), required_limits=frozenset({"cpus"}))
    assert refused.value.reason is Reason.LIMIT_UNENFORCEABLE
    assert bench.left() == []


async def test_a_given_root_is_the_world(bench: Bench, tmp_path: Path) -> None:
    root = await asyncio.to_thread(make_root, tmp_path / "root")
    (root / "opt/tool").mkdir(parents=True)
    (root / "opt/tool/data").write_text("of the root")
    (root / "secret").mkdir()
    (root / "secret/key").write_text("hidden")
    world = await bench.start(root=root, hidden=(root / "secret",))
    _, said = await bench.run(
        world, "cat /opt/tool/data; echo; echo x > /opt/tool/new; echo y > /new; ls /secret; ls /usr/share", user="0"
    )
    assert said.startswith("of the root\n") and "hidden" not in said
    assert not (root / "opt/tool/new").exists() and not (root / "new").exists()
    assert world.facts["root"] == str(root)


async def test_a_root_without_a_shell_is_refused(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "root/usr").mkdir(parents=True)
    with pytest.raises(Refusal) as refused:
        await bench.start(root=tmp_path / "root")
    assert refused.value.reason is Reason.ROOTFS_INVALID


async def test_public_shares_the_hosts_network_and_says_so(bench: Bench) -> None:
    world = await bench.start(network=Network.PUBLIC)
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    script = f"import socket; socket.create_connection(('127.0.0.1', {port}), 600); print('reached')"
    _, said = await bench.run(world, "", argv=("python3", "-c", script))
    server.close()
    await server.wait_closed()
    assert said == "reached\n"
    assert any("network" in words for words in world.facts["not_isolated"])


async def test_an_operators_shell_has_a_terminal_and_no_powers(bench: Bench) -> None:
    world = await bench.start()
    await bench.run(world, "echo inside > /here")
    command = bench.kind.enter(bench.scratch)
    assert command is not None
    try:
        ours, theirs = os.openpty()
    except OSError as fault:
        pytest.skip(f"no terminals on this machine: {fault.strerror}")
    shell = await asyncio.create_subprocess_exec(*command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(
        ours,
        b"cat /here; grep -E 'Seccomp:|NoNewPrivs|CapEff' /proc/self/status; [ -t 0 ] && echo ter''minal; exit 5\n",
    )
    said = await asyncio.to_thread(_said, ours)
    os.close(ours)
    assert await shell.wait() == 5
    assert "inside" in said and "Seccomp:\t2" in said and "NoNewPrivs:\t1" in said and "\nterminal" in said
    assert f"{0x1FFFFFFFFFF:016x}" not in said
    await world.stop()
    assert bench.kind.enter(bench.scratch) is None


def _said(terminal: int, end: bytes | None = None) -> str:
    """What comes from a terminal up to `end`, or to its own end; gives up after a silence."""
    said = b""
    try:
        while (end is None or end not in said) and select.select([terminal], [], [], 60)[0]:
            said += os.read(terminal, 1 << 14)
    except OSError:
        pass  # how a terminal ends
    return said.decode()
