"""Worlds as their users see them, in every kind of sandbox. Runs again as an ordinary user."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from each_kind import Bench, bench

from proctor.core.canonical import encode
from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Exec, Limits, PutItem, Sandbox, Tier

__all__ = ["bench"]
pytestmark = pytest.mark.real


# --- commands


async def test_a_command_tells_its_output_and_exit(bench: Bench) -> None:
    world = await bench.start()
    ended, said = await bench.run(world, "echo out; echo err >&2; exit 7")
    assert (ended.exit_code, ended.signal, ended.timed_out, ended.start_error) == (7, None, False, None)
    assert said == "out\nerr\n"


async def test_stdout_and_stderr_are_kept_apart_where_two_files_are_given(bench: Bench) -> None:
    world = await bench.start()
    errors = bench.folder / "err"
    _, said = await bench.run(world, "echo out; echo err >&2", stderr=errors)
    assert (said, errors.read_text()) == ("out\n", "err\n")


async def test_stdin_environment_and_working_folder_reach_the_command(bench: Bench) -> None:
    world = await bench.start(env={"A": "spec", "B": "spec"})
    _, said = await bench.run(world, "cat; pwd; echo $A $B", stdin=b"in\n", cwd="/tmp", env={"B": "command"})
    assert said == "in\n/tmp\nspec command\n"


async def test_a_signal_is_no_exit_code(bench: Bench) -> None:
    world = await bench.start()
    ended, _ = await bench.run(world, "kill -TERM $$")
    assert (ended.exit_code, ended.signal) == (None, signal.SIGTERM)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"argv": ("no-such-program",)}, "no-such-program"),
        ({"argv": ("/etc/passwd",)}, "denied"),
        ({"cwd": "/no/such/folder"}, "/no/such/folder"),
        ({"cwd": "/\0"}, "null"),
        ({"argv": ("echo", "\0")}, "null"),
        ({"env": {"A": "\0"}}, "null"),
        ({"argv": ("echo", "x" * 3_000_000)}, "too long"),
        ({"user": "no-such-user"}, "no-such-user"),
    ],
)
async def test_what_cannot_start_says_why(bench: Bench, changes: dict[str, object], word: str) -> None:
    world = await bench.start()
    ended, _ = await bench.run(world, "true", **changes)
    assert (ended.exit_code, ended.signal) == (None, None)
    assert word.lower() in (ended.start_error or "").lower()


async def test_output_that_cannot_be_kept_is_a_typed_refusal(bench: Bench) -> None:
    world = await bench.start()
    for place, reason in (("no/such/folder/out", Reason.OUT_UNUSABLE), ("/dev/full", Reason.DISK_FULL)):
        with pytest.raises(Refusal) as refused:
            await bench.run(world, "echo x; sleep 1000", stdout=bench.folder / place)
        assert refused.value.reason is reason
        assert await world.kill_all() == 0


async def test_nothing_of_the_hosts_environment_is_inside(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_TEST_SECRET", "hunter2")
    world = await bench.start()
    _, said = await bench.run(world, "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")
    assert "hunter2" not in said
    names = {line.partition("=")[0] for line in said.splitlines()}
    assert names <= {"PATH", "HOME", "USER", "LOGNAME", "LANG", "PWD", "OLDPWD", "_", "SHLVL", "HOSTNAME", ""}


async def test_signals_and_limits_of_the_runner_are_not_inherited(bench: Bench) -> None:
    world = await bench.start()
    _, said = await bench.run(world, "grep -E 'Sig(Ign|Blk)|NoNewPrivs|Seccomp:' /proc/self/status; ulimit -c")
    fields = dict(line.split(":") for line in said.splitlines() if ":" in line)
    assert int(fields["SigIgn"], 16) == 0 and int(fields["SigBlk"], 16) == 0
    assert fields["NoNewPrivs"].strip() == "1" and fields["Seccomp"].strip() == "2"


# --- what ends with a command


@pytest.mark.parametrize(
    "leave",
    [
        "sleep 1000 &",
        "setsid sleep 1000 & sleep 0.1",
        "(setsid sh -c 'sleep 1000 & sleep 1000' &) ; sleep 0.1",
        "(trap '' TERM HUP INT; sleep 1000) >/dev/null 2>&1 &",
    ],
)
async def test_nothing_of_a_command_is_left_after_it(bench: Bench, leave: str) -> None:
    world = await bench.start()
    ended, _ = await bench.run(world, leave)
    assert ended.exit_code == 0 and ended.leftovers >= 1
    _, said = await bench.run(world, "ls /proc | grep -c '^[0-9]*$'; ps -e -o comm= | grep -c sleep")
    assert said.split()[-1] == "0"


async def test_a_deadline_ends_everything_and_is_typed(bench: Bench) -> None:
    world = await bench.start()
    ended, said = await bench.cut(world, "setsid sleep 1000 & echo begun; sleep 1000", "begun")
    assert ended.timed_out and ended.exit_code is None and ended.signal == signal.SIGKILL
    assert said == "begun\n" and ended.leftovers >= 1
    assert await world.kill_all() == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_what_fights_its_end_is_ended(bench: Bench, number: int) -> None:
    world = await bench.start(limits=Limits(pids=64))
    fight = f"import os\nwhile True:\n  try: os.kill(-1, {int(number)})\n  except OSError: pass"
    ended, _ = await bench.run(world, "", argv=("python3", "-c", fight), deadline_sec=0.5)
    assert ended.timed_out
    ended, _ = await bench.run(world, f"setsid python3 -c '{fight}' & sleep 0.3", deadline_sec=1.0)
    assert ended.leftovers >= 1
    assert await world.kill_all() == 0
    assert (await bench.run(world, "echo on"))[1] == "on\n"


@pytest.mark.parametrize("deadline", [1e300, float("inf"), 1e10])
async def test_a_deadline_beyond_all_clocks_is_one(bench: Bench, deadline: float) -> None:
    world = await bench.start()
    ended, said = await bench.run(world, "echo done", deadline_sec=deadline)
    assert (ended.exit_code, said) == (0, "done\n")


@pytest.mark.parametrize("deadline", [float("nan"), -1.0])
async def test_a_deadline_that_is_no_time_is_refused(bench: Bench, deadline: float) -> None:
    world = await bench.start()
    with pytest.raises(Refusal) as refused:
        await bench.run(world, "true", deadline_sec=deadline)
    assert refused.value.reason is Reason.SANDBOX_START_FAILED


async def test_a_background_child_that_holds_stdout_does_not_hold_the_end(bench: Bench) -> None:
    world = await bench.start()
    ended, said = await bench.run(world, "sleep 1000 & echo done")
    assert (ended.timed_out, said) == (False, "done\n")


async def test_a_flood_is_read_and_dropped_beyond_the_cap(bench: Bench) -> None:
    world = await bench.start()
    ended, said = await bench.run(world, "head -c 268435456 /dev/zero", output_cap=1 << 20)
    assert ended.exit_code == 0
    assert (ended.output_bytes, ended.output_dropped) == (1 << 20, (1 << 28) - (1 << 20))
    assert len(said) == 1 << 20


async def test_a_fork_bomb_ends_with_its_command(bench: Bench) -> None:
    world = await bench.start(limits=Limits(pids=64))
    bomb = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"
    for deadline in (1.0, 10.0, 100.0):  # in which it comes to its limit
        ended, _ = await bench.run(world, "", argv=("python3", "-c", bomb), deadline_sec=deadline)
        if ended.limit_hit or world.facts["tier"] != Tier.PRIVILEGED.value:
            break
    assert ended.timed_out or ended.limit_hit == "pids"  # a watcher does not wait for the deadline
    assert await world.kill_all() == 0
    if world.facts["tier"] == Tier.PRIVILEGED.value:
        assert ended.limit_hit == "pids"


async def test_a_second_command_waits_for_the_first(bench: Bench) -> None:
    world = await bench.start()
    one = bench.folder / "one"
    first = asyncio.create_task(world.exec(Exec(("sh", "-c", "sleep 0.3; echo whole"), stdout=one)))
    await asyncio.sleep(0)
    await bench.run(world, "true")
    assert (await first).exit_code == 0 and one.read_text() == "whole\n"


# --- limits


async def test_memory_has_a_limit(bench: Bench) -> None:
    world = await bench.start(limits=Limits(memory_bytes=64 << 20), required_limits=frozenset({"memory"}))
    hog = "import time\nx = []\nwhile True:\n  x.append(bytearray(b'1' * (1 << 20)))\n  time.sleep(0.002)"
    ended, _ = await bench.run(world, "", argv=("python3", "-c", hog))
    assert (ended.limit_hit, ended.signal, ended.timed_out) == ("memory", signal.SIGKILL, False)
    again, _ = await bench.run(world, "true")
    assert again.exit_code == 0 and again.limit_hit is None


async def test_what_is_recorded_of_a_world_is_short(bench: Bench) -> None:
    world = await bench.start()
    assert len(encode(dict(world.facts))) < 4_096


# --- users and files inside


async def test_root_inside_writes_where_installers_write(bench: Bench) -> None:
    world = await bench.start()
    places = "/ /etc /opt /root /srv /tmp /usr/bin /usr/lib /usr/local/bin /usr/share /var/lib"
    ended, said = await bench.run(world, f"for d in {places}; do echo x > $d/new || echo $d; done; id -u")
    assert (ended.exit_code, said) == (0, "0\n")


async def test_many_users_work_where_ids_are_mapped(bench: Bench) -> None:
    world = await bench.start()
    if world.facts["tier"] != Tier.PRIVILEGED.value:
        ended, _ = await bench.run(world, "id", user="nobody")
        assert "one user" in (ended.start_error or "")
        return
    ended, said = await bench.run(
        world,
        "useradd -u 1234 -m agent && touch /f && chown agent:agent /f && chmod 600 /f && stat -c '%u %g %a' /f"
        " && su agent -c 'id -u; cat /etc/shadow 2>&1; echo x > /etc/x; echo home > ~/x; cat ~/x'",
    )
    assert ended.exit_code == 0, said
    assert said.startswith("1234 1234 600\n1234\n") and said.endswith("home\n") and said.count("denied") == 2
    ended, said = await bench.run(world, "id -un; id -g; echo $HOME", user="agent")
    assert said == "agent\n1234\n/home/agent\n"
    ended, said = await bench.run(world, "id -u; id -g", user="1234:0")
    assert said == "1234\n0\n"


async def test_ordinary_programs_run(bench: Bench) -> None:
    world = await bench.start()
    script = (
        "set -e; cd /tmp; python3 -c 'import subprocess, ssl, sqlite3, multiprocessing as m;"
        " p = m.Pool(2); print(sum(p.map(abs, [-1, -2])))'; mktemp; date > d; grep -c . d"
        "; echo 'int main(){return 0;}' > a.c; if command -v gcc >/dev/null; then gcc a.c -o a; ./a; fi"
        '; if command -v node >/dev/null; then node -e \'require("fs").readFile("/tmp/d", e => console.log(e))\'; fi'
    )
    ended, said = await bench.run(world, script)
    assert ended.exit_code == 0, said


# --- networks


@pytest.mark.parametrize("network", [Network.NONE, Network.GATEWAY_ONLY])
async def test_without_a_network_there_is_only_loopback(bench: Bench, network: Network) -> None:
    world = await bench.start(network=network)
    script = (
        "import socket, threading\ns = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(s.getsockname())\nprint(sorted(n for _, n in socket.if_nameindex()))\n"
        "try: socket.create_connection(('192.0.2.1', 80), 2)\nexcept OSError as e: print(e.errno)\n"
    )
    _, said = await bench.run(world, "", argv=("python3", "-c", script))
    assert said == "['lo']\n101\n"
    assert world.facts["network_is"] == "loopback only"


async def test_an_allowlist_is_refused(bench: Bench) -> None:
    with pytest.raises(Refusal) as refused:
        await bench.start(network=Network.ALLOWLIST)
    assert refused.value.reason is Reason.NETWORK_UNAVAILABLE


# --- an operator's shell


async def test_an_operators_shell_takes_a_script(bench: Bench) -> None:
    await bench.start()
    command = bench.kind.enter(bench.scratch)
    assert command is not None
    pipe = asyncio.subprocess.PIPE
    shell = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    said, _ = await shell.communicate(b"hostname; exit 3\n")
    assert (said, shell.returncode) == (b"sandbox\n", 3)


# --- freezing, killing, stopping


async def test_a_frozen_world_stands_still_and_goes_on(bench: Bench) -> None:
    world = await bench.start()
    out = bench.folder / "ticks"
    ticking = asyncio.create_task(
        world.exec(Exec(("sh", "-c", "while :; do echo tick; sleep 0.01; done"), stdout=out, deadline_sec=600))
    )
    await _grows(out, 0)
    await world.freeze()
    size = await _stands_still(out)
    await world.thaw()
    await _grows(out, size)
    await world.freeze()
    assert await world.kill_all() >= 1
    ended = await ticking
    assert ended.signal == signal.SIGKILL and not ended.timed_out


async def _stands_still(path: Path) -> int:
    """Its size once what was on its way is in it: some thirty ticks long nothing comes."""
    for _ in range(200):
        size = path.stat().st_size
        await asyncio.sleep(0.3)
        if path.stat().st_size == size:
            return size
    raise AssertionError(f"{path} grows on")


async def _grows(path: Path, beyond: int) -> None:
    for _ in range(20_000):
        if path.exists() and path.stat().st_size > beyond:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{path} does not grow")


async def test_a_frozen_world_takes_no_command_and_can_be_stopped(bench: Bench) -> None:
    world = await bench.start()
    out = bench.folder / "ticks"
    running = asyncio.create_task(
        world.exec(Exec(("sh", "-c", "while :; do echo tick; sleep 0.01; done"), stdout=out, deadline_sec=600))
    )
    await _grows(out, 0)
    await world.freeze()
    with pytest.raises(Refusal) as refused:
        await bench.run(world, "true")
    assert refused.value.reason is Reason.SANDBOX_START_FAILED
    await world.stop()
    assert (await running).signal == signal.SIGKILL
    assert await bench.nothing_left()


async def test_stopping_leaves_nothing_and_can_be_done_twice(bench: Bench) -> None:
    world = await bench.start(limits=Limits(pids=64))
    await bench.run(world, "mkdir -p /a/b; chmod 000 /a/b; mkfifo /f; ln -s /nowhere /l")
    running = asyncio.create_task(bench.run(world, "echo begun; sleep 1000"))
    await _grows(bench.folder / "out", 0)
    await world.stop()
    await world.stop()
    assert (await running)[0].signal == signal.SIGKILL
    assert await bench.nothing_left()
    with pytest.raises(Refusal) as refused:
        await bench.run(world, "true")
    assert refused.value.reason is Reason.SANDBOX_LOST


async def test_killing_everything_inside_keeps_the_world(bench: Bench) -> None:
    world = await bench.start()
    ended, said = await bench.run(world, "sleep 1000 & kill -KILL 1; kill -KILL -1; echo sent")
    assert (ended.exit_code, said) == (0, "sent\n")
    assert (await bench.run(world, "echo alive"))[1] == "alive\n"


# --- cancellation


@pytest.mark.parametrize("after", [0.0, 0.002, 0.01, 0.03])
@pytest.mark.parametrize("what", ["start", "exec", "put", "get", "kill", "capture", "fork", "stop"])
async def test_cancelling_leaves_nothing(bench: Bench, what: str, after: float, tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(b"1" * (8 << 20))
    world = await bench.start()
    await world.put([PutItem("/data/big", source=big)])
    snapshot = None
    if what == "fork":
        snapshot = await world.capture()
    forked: list[Sandbox] = []

    async def fork() -> None:
        assert snapshot is not None
        forked.append(await bench.kind.fork(snapshot, bench.spec(), bench.admitted))

    work = {
        "start": lambda: bench.start(),
        "exec": lambda: bench.run(world, "setsid sleep 1000 & sleep 1000"),
        "put": lambda: world.put([PutItem(f"/many/{n}", source=big) for n in range(20)]),
        "get": lambda: world.get(["/data"], tmp_path / "got", cap_bytes=1 << 30, cap_files=10),
        "kill": lambda: world.kill_all(),
        "capture": lambda: world.capture(),
        "fork": fork,
        "stop": lambda: world.stop(),
    }[what]
    task = asyncio.ensure_future(work())
    await asyncio.sleep(after)
    task.cancel()
    result = (await asyncio.gather(task, return_exceptions=True))[0]
    if what in ("exec", "put", "get", "kill") and isinstance(result, asyncio.CancelledError):
        assert await world.kill_all() == 0
    if what == "capture" and not isinstance(result, asyncio.CancelledError):
        bench.kind.release(result, bench.admitted)
    for one in (*forked, *bench.worlds):
        await one.stop()
    if snapshot is not None:
        bench.kind.release(snapshot, bench.admitted)
    assert await bench.nothing_left()
