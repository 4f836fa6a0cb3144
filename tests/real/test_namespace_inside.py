"""What agents inside need: a listening socket of the host, folders of the host, and servers that stay.

The whole file runs again as an ordinary user.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path

import pytest
from namespace_bench import Bench, admitted, bench, kind, make_root

from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Bundle, Tier
from proctor.sandbox.namespace.marker import live_init
from proctor.sandbox.namespace.sandbox import NamespaceSandbox

__all__ = ["admitted", "bench", "kind"]
pytestmark = pytest.mark.real

TARGET = "/opt/agent/one"
TALK = "exec 3<>/dev/tcp/127.0.0.1/{}; echo asked >&3; cat <&3"


async def answer_once(sock: socket.socket) -> bytes:
    """Take one connection and answer it; what it said."""
    loop = asyncio.get_running_loop()
    taken, _ = await loop.sock_accept(sock)
    with taken:
        said = await loop.sock_recv(taken, 100)
        await loop.sock_sendall(taken, b"answered\n")
    return said


async def talk(bench: Bench, world: NamespaceSandbox, sock: socket.socket) -> tuple[bytes, str]:
    """What a program inside says to a socket of ours, and hears."""
    answering = asyncio.create_task(answer_once(sock))
    script = TALK.format(sock.getsockname()[1])
    _, heard = await bench.run(world, "", argv=("bash", "-c", script), deadline_sec=600.0)
    async with asyncio.timeout(600):
        return await answering, heard


# --- a socket inside


@pytest.mark.parametrize("network", [Network.GATEWAY_ONLY, Network.PUBLIC])
async def test_what_connects_inside_is_accepted_outside(bench: Bench, network: Network) -> None:
    world = await bench.start(network=network)
    assert world.facts["gateway"] is None
    with await world.listen() as sock:
        assert world.facts["gateway"] == "{}:{}".format(*sock.getsockname())
        assert await talk(bench, world, sock) == (b"asked\n", "answered\n")


async def test_worlds_listen_on_the_same_port_and_are_apart(bench: Bench) -> None:
    one, two = [await bench.start(network=Network.GATEWAY_ONLY) for _ in range(2)]
    with await one.listen() as first, await two.listen() as second:
        assert first.getsockname() == second.getsockname() == ("127.0.0.1", 47600)
        assert await talk(bench, two, second) == (b"asked\n", "answered\n")
        first.setblocking(False)
        with pytest.raises(BlockingIOError):
            first.accept()


async def test_a_port_that_is_taken_is_no_hindrance(bench: Bench) -> None:
    world = await bench.start(network=Network.GATEWAY_ONLY)
    with await world.listen() as first, await world.listen() as second:
        assert first.getsockname() != second.getsockname()
        assert await talk(bench, world, second) == (b"asked\n", "answered\n")
    with await world.listen() as third:  # though connections to it were closed a moment ago
        assert third.getsockname() == ("127.0.0.1", 47600)


async def test_a_world_without_network_refuses_and_an_ended_one_too(bench: Bench) -> None:
    world = await bench.start(network=Network.NONE)
    with pytest.raises(Refusal) as refused:
        await world.listen()
    assert refused.value.reason is Reason.NETWORK_UNAVAILABLE
    for network in (Network.GATEWAY_ONLY, Network.PUBLIC):
        ended = await bench.start(network=network)
        await ended.stop()
        with pytest.raises(Refusal) as refused:
            await ended.listen()
        assert refused.value.reason is Reason.SANDBOX_LOST


async def test_a_world_that_was_killed_refuses(bench: Bench) -> None:
    world = await bench.start(network=Network.GATEWAY_ONLY)
    init = live_init(bench.scratch)
    assert init is not None
    os.kill(init, signal.SIGKILL)
    with pytest.raises(Refusal):
        async with asyncio.timeout(600):
            while True:  # its keeper is told by the kernel, and ends
                await world.kill_all()
    with pytest.raises(Refusal) as refused:
        await world.listen()
    assert refused.value.reason is Reason.SANDBOX_LOST


async def test_the_socket_outlives_the_world_and_then_hears_nothing(bench: Bench) -> None:
    world = await bench.start(network=Network.GATEWAY_ONLY)
    with await world.listen() as sock:
        await world.stop()
        with pytest.raises(BlockingIOError):
            sock.accept()
    assert bench.left() == []


# --- folders of the host


def make_bundle(folder: Path) -> Path:
    """A program, a file and a folder, as an installer leaves them: for all to read, and to write for its owner."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/hello").write_text("#!/bin/sh\necho hello from $0\n")
    (folder / "bin/hello").chmod(0o755)
    (folder / "data").write_text("of the host\n")
    return folder


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return Bundle(make_bundle(tmp_path / "a bundle: with, a \\ name"), TARGET)


@pytest.mark.parametrize("given_root", [False, True], ids=["host", "root"])
async def test_a_bundle_is_run_and_read_and_never_written(bench: Bench, bundle: Bundle, given_root: bool) -> None:
    root = make_root(bench.folder / "root") if given_root else None
    world = await bench.start(root=root, bundles=(bundle,))
    assert world.facts["bundles"] == [TARGET]
    users = ["root"] if world.facts["tier"] == Tier.ORDINARY else ["root", "12345:12345"]
    for user in users:
        _, said = await bench.run(world, f"{TARGET}/bin/hello; cat {TARGET}/data; cat {TARGET}/../one/data", user=user)
        assert said == f"hello from {TARGET}/bin/hello\nof the host\nof the host\n"
        for deed in (f"echo x > {TARGET}/data", f"echo x > {TARGET}/new", f"rm {TARGET}/data", f"rm -r {TARGET}"):
            ended, _ = await bench.run(world, deed, user=user)
            assert ended.exit_code != 0
    assert {path.name for path in bundle.source.rglob("*")} == {"bin", "hello", "data"}
    assert (bundle.source / "data").read_text() == "of the host\n"


async def test_where_a_bundle_lies_on_the_host_is_told_nowhere(bench: Bench, bundle: Bundle) -> None:
    world = await bench.start(bundles=(bundle,))
    _, said = await bench.run(world, f"cat /proc/self/mountinfo /proc/mounts; exec {TARGET}/bin/hello")
    assert TARGET in said and bundle.source.name not in said and str(bench.folder) not in said


async def test_two_bundles_and_one_below_usr(bench: Bench, tmp_path: Path) -> None:
    bundles = [Bundle(make_bundle(tmp_path / str(n)), target) for n, target in enumerate(("/a/b/c", "/usr/lib/a/b"))]
    world = await bench.start(bundles=tuple(bundles))
    _, said = await bench.run(world, "cat /a/b/c/data /usr/lib/a/b/data; ls -d /usr/lib/os-release")
    assert said == "of the host\nof the host\n/usr/lib/os-release\n"


async def test_captures_and_forks_are_without_bundles_and_nothing_changed(bench: Bench, bundle: Bundle) -> None:
    world = await bench.start(bundles=(bundle,))
    await world.mark()
    snapshot = await world.capture()
    assert snapshot.facts["changed"] == {}
    forked = await bench.kind.fork(snapshot, bench.spec(), bench.admitted)
    bench.worlds.append(forked)
    ended, said = await bench.run(forked, f"find {TARGET}")
    assert (ended.exit_code, said) == (0, f"{TARGET}\n")  # where it was mounted
    again = await bench.kind.fork(snapshot, bench.spec(bundles=(bundle,)), bench.admitted)
    bench.worlds.append(again)
    assert (await bench.run(again, f"cat {TARGET}/data"))[1] == "of the host\n"


async def test_a_link_that_an_agent_left_on_the_way_leads_a_bundle_nowhere(bench: Bench, bundle: Bundle) -> None:
    trap = bench.folder / "trap"
    trap.mkdir()
    world = await bench.start()
    lead = f"/oldroot{trap}"
    _, said = await bench.run(world, f"mkdir -p /opt; rm -rf /opt/agent; ln -s {lead} /opt/agent; ls -ld /opt/agent")
    assert lead in said
    snapshot = await world.capture()
    forked = await bench.kind.fork(snapshot, bench.spec(bundles=(bundle,)), bench.admitted)
    bench.worlds.append(forked)
    assert (await bench.run(forked, f"cat {TARGET}/data"))[1] == "of the host\n"
    assert list(trap.iterdir()) == []


@pytest.mark.parametrize(
    "target", ["/", "/opt", "opt/x", "/opt/../x", "/opt//x", "/opt/x/", "/proc/x", "/dev/shm", "/opt/\0", ""]
)
async def test_bundles_that_go_nowhere_are_refused(bench: Bench, bundle: Bundle, target: str) -> None:
    with pytest.raises(Refusal) as refused:
        await bench.start(bundles=(Bundle(bundle.source, target),))
    assert refused.value.reason is Reason.PATH_UNSAFE
    assert not bench.scratch.exists()


async def test_bundles_that_are_not_there_or_lie_in_each_other_are_refused(bench: Bench, bundle: Bundle) -> None:
    for bundles, reason in (
        ((Bundle(bench.folder / "none", TARGET),), Reason.BUNDLE_MISSING),
        ((Bundle(bundle.source / "data", TARGET),), Reason.BUNDLE_MISSING),
        ((bundle, bundle), Reason.PATH_UNSAFE),
        ((bundle, Bundle(bundle.source, f"{TARGET}/in")), Reason.PATH_UNSAFE),
    ):
        with pytest.raises(Refusal) as refused:
            await bench.start(bundles=bundles)
        assert refused.value.reason is reason


# --- servers that stay

SERVE = (
    "import socket\n"
    "sock = socket.create_server(('127.0.0.1', 8099))\n"
    "open('/tmp/ready', 'w').close()\n"
    "while True:\n"
    "  taken, _ = sock.accept()\n"
    "  print('served', flush=True)\n"
    "  taken.sendall(b'served\\n'); taken.close()\n"
)
START = f"""python3 -c "{SERVE}" & until [ -e /tmp/ready ]; do sleep 0.01; done; echo started"""
ASK = "cat < /dev/tcp/127.0.0.1/8099"


async def test_what_is_left_running_serves_the_next_command_and_ends_with_it(bench: Bench) -> None:
    world = await bench.start()
    ended, said = await bench.run(world, START, leave_running=True)
    assert (ended.exit_code, ended.leftovers, said) == (0, 0, "started\n")
    kept = bench.folder / "kept"
    (bench.folder / "out").rename(kept)
    for _ in range(3):
        ended, said = await bench.run(world, "", argv=("bash", "-c", ASK), leave_running=True)
        assert (ended.exit_code, said) == (0, "served\n")
    ended, said = await bench.run(world, "", argv=("bash", "-c", ASK))
    assert (ended.exit_code, said, ended.leftovers) == (0, "served\n", 1)
    assert kept.read_text() == "started\n"  # what it writes later is no output of the command that started it
    ended, _ = await bench.run(world, "", argv=("bash", "-c", ASK))
    assert ended.exit_code != 0
    assert await world.kill_all() == 0


async def test_at_its_deadline_nothing_is_left_running(bench: Bench) -> None:
    world = await bench.start()
    ended, _ = await bench.cut(world, f"{START}; sleep 1000", "started", leave_running=True)
    assert ended.timed_out and ended.leftovers >= 1
    assert await world.kill_all() == 0


async def test_cancelled_nothing_is_left_running(bench: Bench) -> None:
    world = await bench.start(network=Network.GATEWAY_ONLY)
    with await world.listen() as sock:
        script = f"{START}; {TALK.format(47600)}; sleep 1000"
        running = asyncio.create_task(bench.run(world, "", argv=("bash", "-c", script), leave_running=True))
        async with asyncio.timeout(600):
            await answer_once(sock)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert await world.kill_all() == 0


@pytest.mark.parametrize("end", ["kill_all", "capture", "stop"])
async def test_what_is_left_running_ends_with_its_world(bench: Bench, end: str) -> None:
    world = await bench.start()
    write = "setsid sh -c 'trap \"\" TERM HUP; while :; do echo x; echo x >> /tmp/more; done' & sleep 0.1"
    ended, _ = await bench.run(world, write, leave_running=True)
    assert ended.leftovers == 0
    if end == "kill_all":
        assert await world.kill_all() >= 1
        size = (await bench.run(world, "stat -c %s /tmp/more"))[1]
        assert (await bench.run(world, "stat -c %s /tmp/more"))[1] == size
    elif end == "capture":
        snapshot = await world.capture()
        forked = await bench.kind.fork(snapshot, bench.spec(), bench.admitted)
        bench.worlds.append(forked)
        size = (await bench.run(forked, "stat -c %s /tmp/more"))[1]
        assert (await bench.run(forked, "stat -c %s /tmp/more; ls /proc | grep -c '^[0-9]*$'"))[1].startswith(size)
    else:
        await world.stop()
        assert bench.left() == []
