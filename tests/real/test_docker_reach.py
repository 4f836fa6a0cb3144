"""What a container can reach, and what of ours listens in it; servers that stay, bundles, and what is read back."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
from docker_bench import BUSYBOX, DEBIAN, PYTHON, Bench, admitted, bench, kind

from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_probe
from proctor.sandbox.base import Bundle, Exec, Limits, PutItem, Tier
from proctor.sandbox.docker.config import CAPABILITIES
from proctor.sandbox.docker.kind import DockerKind
from proctor.sandbox.docker.world import DockerSandbox

__all__ = ["admitted", "bench", "kind"]
pytestmark = pytest.mark.real


@pytest.fixture
def enterable(kind: DockerKind) -> None:
    if not kind.probe(seal_probe(30)).capabilities.gateway:
        pytest.skip("networks of containers cannot be entered here")


async def answered(bench: Bench, world: DockerSandbox, ours: socket.socket) -> str:
    """What a client inside is told by a server out here that accepts on `ours`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"you said " + await reader.readline())
        await writer.drain()
        writer.close()

    host, port = ours.getsockname()
    server = await asyncio.start_server(serve, sock=ours)
    async with server:
        script = (
            f"import socket; s = socket.create_connection(('{host}', {port}), 600); s.sendall(b'hello\\n');"
            " print(s.makefile().read(), end='')"
        )
        _, said = await bench.run(world, "", argv=("python3", "-c", script))
    return said


@pytest.mark.parametrize("network", [Network.GATEWAY_ONLY, Network.PUBLIC])
async def test_a_socket_of_ours_listens_inside(bench: Bench, enterable: None, network: Network) -> None:
    world = await bench.start(image=PYTHON, network=network)
    assert world.facts["gateway"] is None
    first = await world.listen()
    assert first.getsockname() == ("127.0.0.1", 47600) and world.facts["gateway"] == "127.0.0.1:47600"
    second = await world.listen()  # while the first still listens
    assert second.getsockname()[1] != 47600
    assert await answered(bench, world, second) == "you said hello\n"
    assert await answered(bench, world, first) == "you said hello\n"
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", 47600), 1)  # not out here
    third = await world.listen()
    assert third.getsockname()[1] == 47600
    third.close()


async def test_without_a_network_nothing_listens(bench: Bench) -> None:
    world = await bench.start(image=BUSYBOX)
    with pytest.raises(Refusal) as refused:
        await world.listen()
    assert refused.value.reason is Reason.NETWORK_UNAVAILABLE


async def test_public_is_a_bridge_and_says_so(bench: Bench) -> None:
    world = await bench.start(image=BUSYBOX, network=Network.PUBLIC)
    _, said = await bench.run(world, "ls /sys/class/net")
    assert sorted(said.split()) == ["eth0", "lo"] or "eth0" in said.split()
    assert any("network" in words for words in world.facts["not_isolated"])


async def test_the_hosts_name_servers_are_not_named_without_a_network(bench: Bench) -> None:
    world = await bench.start(image=BUSYBOX)
    _, said = await bench.run(world, "cat /etc/resolv.conf; hostname")
    assert [line for line in said.splitlines() if line.startswith("nameserver")] == ["nameserver 127.0.0.1"]
    assert said.endswith("sandbox\n")


# --- servers that stay

SERVE = "import http.server as h; h.HTTPServer(('127.0.0.1', 8000), h.SimpleHTTPRequestHandler).serve_forever()"
ASK = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8000/', timeout=600).status)"


async def test_what_a_command_may_leave_stays_until_the_next_ends(bench: Bench) -> None:
    world = await bench.start(image=PYTHON)
    script = f'cd /tmp; python3 -c "{SERVE}" & while ! python3 -c "{ASK}" 2>/dev/null; do :; done'
    ended, said = await bench.run(world, script, leave_running=True)
    assert (ended.exit_code, ended.leftovers, said.splitlines()[-1]) == (0, 0, "200")
    ended, said = await bench.run(world, "", argv=("python3", "-c", f"{ASK}\n{ASK}"))
    assert (ended.exit_code, said, ended.leftovers) == (0, "200\n200\n", 1)
    assert await world.kill_all() == 0


async def test_what_a_command_may_leave_is_ended_at_its_deadline(bench: Bench) -> None:
    world = await bench.start(image=BUSYBOX)
    ended, _ = await bench.cut(world, "sleep 1000 & echo begun; sleep 1000", "begun", leave_running=True)
    assert ended.timed_out and ended.leftovers >= 1
    assert await world.kill_all() == 0


# --- bundles


async def test_a_bundle_is_seen_and_is_no_part_of_a_capture(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "bundle/bin").mkdir(parents=True)
    tool = tmp_path / "bundle/bin/tool"
    tool.write_text("#!/bin/sh\necho of the bundle\n")
    tool.chmod(0o755)
    bundle = Bundle(tmp_path / "bundle", "/opt/agent")
    world = await bench.start(image=DEBIAN, bundles=(bundle,))
    await world.mark()
    for user in (None, "1234:1234"):
        assert (await bench.run(world, "/opt/agent/bin/tool", user=user))[1] == "of the bundle\n"
    ended, _ = await bench.run(world, "echo x > /opt/agent/new || rm /opt/agent/bin/tool")
    assert ended.exit_code != 0 and tool.exists()
    for item in (PutItem("/opt/agent", fresh=True), PutItem("/opt/agent/x", content=b"")):
        with pytest.raises(Refusal) as refused:
            await world.put([item])
        assert refused.value.reason is Reason.PATH_UNSAFE
    assert any("bundles" in words for words in world.facts["not_isolated"])
    snapshot = await world.capture()
    assert snapshot.facts["changed"] == {}
    forked = await bench.kind.fork(snapshot, bench.spec(image=None), bench.admitted)
    bench.worlds.append(forked)
    assert (await bench.run(forked, "ls -A /opt/agent"))[1] == ""
    await forked.stop()
    await asyncio.to_thread(bench.kind.release, snapshot, bench.admitted)


async def test_a_bundle_that_is_not_there_is_refused(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(Refusal) as refused:
        await bench.start(image=BUSYBOX, bundles=(Bundle(tmp_path / "none", "/opt/agent"),))
    assert refused.value.reason is Reason.BUNDLE_MISSING
    assert await bench.nothing_left()


# --- what is read back


async def test_what_is_in_force_is_read_back(bench: Bench) -> None:
    wanted = Limits(cpus=1.5, memory_bytes=128 << 20, storage_bytes=1 << 30, pids=50)
    world = await bench.start(limits=wanted, tmp_bytes=1 << 20)
    found = {entry.name: entry for entry in world.limits_enforced}
    assert (found["cpus"].enforced, found["memory"].enforced, found["pids"].enforced) == (1.5, 128 << 20, 50)
    storage = found["storage"]
    assert storage.enforced == 1 << 30 or storage.why_not
    facts = world.facts
    assert (facts["kind"], facts["tier"], facts["network_is"]) == ("docker", Tier.PRIVILEGED.value, "loopback only")
    assert facts["image"].startswith("sha256:") and facts["engine_version"] and facts["not_isolated"]
    _, said = await bench.run(world, "grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status; df -k /dev/shm")
    fields = dict(line.split(":") for line in said.splitlines() if ":" in line)
    assert int(fields["CapEff"], 16).bit_count() == len(CAPABILITIES) == int(fields["CapBnd"], 16).bit_count()
    assert (fields["NoNewPrivs"].strip(), fields["Seccomp"].strip()) == ("1", "2")
    assert " 1024 " in said


async def test_a_limit_that_cannot_be_had_is_refused_when_required(bench: Bench, kind: DockerKind) -> None:
    if "storage" in kind.probe(seal_probe(30)).capabilities.limits:
        pytest.skip("storage can be limited here")
    with pytest.raises(Refusal) as refused:
        await bench.start(limits=Limits(storage_bytes=1 << 30), required_limits=frozenset({"storage"}))
    assert refused.value.reason is Reason.LIMIT_UNENFORCEABLE and "quota" in refused.value.message
    assert await bench.nothing_left()


async def test_zombies_do_not_pile_up(bench: Bench) -> None:
    world = await bench.start(image=BUSYBOX, limits=Limits(pids=40))
    # however late they are reaped: before every twentieth those that came before have gone
    few = "until [ $(ls -d /proc/[0-9]* 2>/dev/null | wc -l) -lt 15 ]; do sleep 0.1; done"
    script = f"i=0; while [ $i -lt 300 ]; do (sleep 0 &); i=$((i+1)); [ $((i%20)) != 0 ] || {few}; done; echo done"
    ended, said = await bench.run(world, script)
    assert (ended.exit_code, said) == (0, "done\n")


async def test_arguments_and_output_are_bytes(bench: Bench) -> None:
    world = await bench.start(image=BUSYBOX)
    odd = ["a b", "$HOME `id` $(id)", "'\"\\", "new\nline", "*", "-n", "", "ünï", "\x01\x7f"]
    out = bench.folder / "args"
    await world.exec(Exec(("printf", "%s\\0", *odd), stdout=out))
    assert out.read_bytes().decode().split("\0")[:-1] == odd
    await world.exec(Exec(("printf", "%s\\0", *odd), stdout=out, stderr=bench.folder / "err"))
    assert out.read_bytes().decode().split("\0")[:-1] == odd
    await world.put([PutItem("/all", content=bytes(range(256)) * 4096)])
    ended = await world.exec(Exec(("cat", "/all"), stdout=out))
    assert out.read_bytes() == bytes(range(256)) * 4096 and ended.output_bytes == 256 * 4096
    await world.exec(Exec(("cat",), stdout=out, stdin=bytes(range(256)) * 4096))
    assert out.read_bytes() == bytes(range(256)) * 4096


async def test_stdin_that_nobody_reads_holds_nothing_up(bench: Bench) -> None:
    world = await bench.start(image=BUSYBOX)
    ended, said = await bench.run(world, "echo done", stdin=b"x" * (4 << 20))
    assert (ended.exit_code, said) == (0, "done\n")


async def test_a_command_that_closes_its_output_is_waited_for(bench: Bench) -> None:
    world = await bench.start(image=BUSYBOX)
    ended, _ = await bench.run(world, "exec >&- 2>&-; sleep 0.5; exit 5")
    assert ended.exit_code == 5 and ended.duration_ns > 4e8


async def test_a_shell_for_the_operator_is_a_command_of_the_engines_client(bench: Bench, kind: DockerKind) -> None:
    assert kind.enter(bench.scratch) is None
    world = await bench.start(image=BUSYBOX)
    command = kind.enter(bench.scratch)
    assert command is not None and command[0] == "docker" and command[-2:] == (world.facts["container"], "sh")
    await world.stop()
    assert kind.enter(bench.scratch) is None


@pytest.mark.parametrize("apart", [False, True])
async def test_a_server_that_writes_to_its_output_stays_all_the_same(bench: Bench, apart: bool) -> None:
    world = await bench.start(image=BUSYBOX)
    errors = bench.folder / "err" if apart else None
    tick = "echo tick; date +%s > /now; mv /now /alive; usleep 100000"
    script = f"(while :; do {tick}; done) & echo begun; echo err >&2; exit 3"
    ended, said = await bench.run(world, script, leave_running=True, stderr=errors)
    assert (ended.exit_code, ended.leftovers, ended.start_error) == (3, 0, None)
    assert said.replace("tick\n", "") == ("begun\n" if apart else "begun\nerr\n")
    assert errors is None or errors.read_text() == "err\n"
    size = (bench.folder / "out").stat().st_size
    await bench.run(world, "sleep 4", leave_running=True, stdout=bench.folder / "other")
    goes_on = 'seen=$(cat /alive); until [ "$(cat /alive)" != "$seen" ]; do sleep 0.1; done'
    ended, _ = await bench.run(world, goes_on, stdout=bench.folder / "alive")
    assert ended.exit_code == 0
    assert (bench.folder / "out").stat().st_size == size  # what comes after its end is nobody's
    assert await world.kill_all() == 0


async def test_what_may_leave_servers_tells_its_end_as_any_command(bench: Bench) -> None:
    world = await bench.start(image=BUSYBOX)
    for changes, expected in (
        ({"argv": ("sh", "-c", "kill -TERM $$")}, (None, 15, None)),
        ({"argv": ("sh", "-c", "cat; exit 4"), "stdin": b"in"}, (4, None, None)),
        ({"argv": ("nope",)}, (None, None, "nope: not found")),
        ({"argv": ("nope",), "stderr": bench.folder / "err"}, (None, None, "nope: not found")),
        ({"argv": ("/etc",)}, (None, None, "/etc: is a folder")),
    ):
        ended, _ = await bench.run(world, "", leave_running=True, **changes)
        assert (ended.exit_code, ended.signal, ended.start_error) == expected
    assert await world.kill_all() == 0


async def test_a_bomb_that_may_stay_does_not_end_the_world(bench: Bench) -> None:
    world = await bench.start(image=PYTHON, limits=Limits(pids=40))
    bomb = (
        "import os, time\nfor _ in range(100):\n  try:\n    if os.fork() == 0: time.sleep(1000)\n  except OSError: pass"
    )
    ended, _ = await bench.run(world, "", argv=("python3", "-c", bomb), leave_running=True)
    assert ended.exit_code == 0
    ended, _ = await bench.run(world, "true")  # there is no room for it, or there just is
    assert ended.exit_code == 0 or ended.start_error is not None or ended.limit_hit == "pids"
    await world.kill_all()
    assert (await bench.run(world, "echo on"))[1] == "on\n"
