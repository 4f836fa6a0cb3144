"""What is left when the runner dies, and how it is found. Runs again as an ordinary user."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from namespace_bench import Bench, admitted, bench, kind

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Limits

__all__ = ["admitted", "bench", "kind"]
pytestmark = pytest.mark.real

# no other sleeps as long: the same tests may run beside these, as another user
NAP = str(10**8 + secrets.randbelow(10**8))
RUNNER = """
import asyncio, sys
from pathlib import Path
from proctor.core.tokens import seal_admitted
from proctor.sandbox.base import Exec, Limits, SandboxSpec
from proctor.sandbox.namespace.kind import NamespaceKind

async def main(folder):
    kind = NamespaceKind()
    admitted = seal_admitted(run_id="r", run_dir=folder, design_sha256="0" * 64, label="proctor-dead")
    spec = SandboxSpec(name="w", scratch=folder / "scratch", limits=Limits(pids=60))
    first, second = await kind.start(spec, admitted), await kind.start(spec, admitted)
    await second.capture()
    script = "setsid sleep NAP & sh -c 'trap \\"\\" TERM HUP INT; sleep NAP' & echo begun; sleep NAP"
    await first.exec(Exec(("sh", "-c", script), stdout=folder / "out"))

asyncio.run(main(Path(sys.argv[1])))
""".replace("NAP", NAP)


def sleepers() -> list[int]:
    found = []
    for path in Path("/proc").iterdir():
        try:
            if NAP.encode() in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except (OSError, ValueError):
            continue
    return found


def pruned(bench: Bench, folder: Path) -> list[str]:
    """What is pruned of the test's own; bases of other dead processes of this user may be among the rest."""
    groups = ("/sys/fs/cgroup", str(folder))
    return [path for path in bench.kind.prune(folder, bench.admitted) if path.startswith(groups)]


async def until(what: str, done: Callable[[], object]) -> None:
    for _ in range(20_000):
        if done():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(what)


async def test_a_killed_runner_leaves_no_process_and_prune_finds_the_rest(bench: Bench, tmp_path: Path) -> None:
    assert sleepers() == []
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    runner = await asyncio.create_subprocess_exec(sys.executable, "-c", RUNNER, str(tmp_path), env=environment)
    out = tmp_path / "out"
    await until("the command begins", lambda: out.exists() and out.read_text() == "begun\n" and len(sleepers()) >= 4)
    worlds = list(bench.scratch.iterdir())
    assert len(worlds) == 2
    assert pruned(bench, tmp_path) == []  # the run lives
    groups = [Path(group) for world in worlds for group in json.loads((world / "marker.json").read_text())["groups"]]
    runner.send_signal(signal.SIGKILL)
    await runner.wait()
    await until("everything inside ends", lambda: sleepers() == [])
    removed = pruned(bench, tmp_path)
    assert {str(world) for world in worlds} <= set(removed)
    assert bench.left() == [] and not any(group.exists() for group in groups)
    assert pruned(bench, tmp_path) == []


def test_what_a_runner_left_is_pruned_at_once_after_its_kill_again_and_again(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runner is dying, then dead and not waited for: neither keeps what it left."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        with (tmp_path / "said").open("ab") as said_file:
            command = [sys.executable, "-c", RUNNER, str(folder)]
            runner = subprocess.Popen(command, env=environment, stdout=said_file, stderr=said_file)
        out = folder / "out"
        asyncio.run(until("the command begins", lambda out=out: out.exists() and out.read_text() == "begun\n"))
        worlds = list((folder / "scratch").iterdir())
        said = [json.loads((world / "marker.json").read_text()) for world in worlds]
        groups = [Path(group) for each in said for group in each["groups"]]
        runner.kill()
        with monkeypatch.context() as patch:
            patch.setattr("proctor.sandbox.namespace.kind._DYING_SEC", 600.0)
            removed = pruned(bench, folder)
        assert {str(world) for world in worlds} <= set(removed)
        assert list((folder / "scratch").iterdir()) == [] and not any(group.exists() for group in groups)
        assert sleepers() == []
        runner.wait()
    assert (tmp_path / "said").read_text() == ""  # nor does what served the runner complain


def test_a_living_process_is_waited_for_and_spared(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.scratch / "shell").mkdir(parents=True)
    with subprocess.Popen(["sleep", "1000"]) as process:
        started = int(Path(f"/proc/{process.pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
        said = {
            "label": "other",
            "host": socket.gethostname(),
            "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            "pid": process.pid,
            "started": started,
            "groups": [],
        }
        (bench.scratch / "shell/marker.json").write_text(json.dumps(said))
        assert pruned(bench, tmp_path) == [] and (bench.scratch / "shell").is_dir()
        process.kill()  # and nobody waits for it yet
        monkeypatch.setattr("proctor.sandbox.namespace.kind._DYING_SEC", 600.0)
        assert pruned(bench, tmp_path) == [str(bench.scratch / "shell")]


async def test_a_live_run_and_other_folders_are_not_pruned(bench: Bench, tmp_path: Path) -> None:
    world = await bench.start(limits=Limits(pids=60))
    (bench.scratch / "other").mkdir()
    (bench.scratch / "other" / "marker.json").write_text("{}")
    (bench.scratch / "broken").mkdir()
    (bench.scratch / "broken" / "marker.json").write_text("{")
    (bench.scratch / "link").symlink_to("/")
    assert pruned(bench, tmp_path) == []
    assert (await bench.run(world, "echo alive"))[1] == "alive\n"
    assert (bench.scratch / "other").is_dir() and (bench.scratch / "broken").is_dir()


async def test_a_kept_world_is_not_pruned_and_can_still_be_forked_and_released(bench: Bench, tmp_path: Path) -> None:
    world = await bench.start()
    await bench.run(world, "echo kept > /f")
    snapshot = await world.capture()
    home = Path(snapshot.facts["home"])
    said = json.loads((home / "marker.json").read_text())
    (home / "marker.json").write_text(json.dumps(said | {"boot": "another boot"}))
    bench.kind.keep(snapshot)
    assert pruned(bench, tmp_path) == [] and home.is_dir()
    forked = await bench.kind.fork(snapshot, bench.spec(), bench.admitted)
    bench.worlds.append(forked)
    assert (await bench.run(forked, "cat /f"))[1] == "kept\n"
    await forked.stop()
    bench.kind.release(snapshot, bench.admitted)
    assert bench.left() == []


async def test_a_lost_keeper_is_a_typed_refusal_and_stop_still_cleans_up(bench: Bench) -> None:
    world = await bench.start()
    running = asyncio.create_task(bench.run(world, f"echo begun; sleep {NAP}"))
    out = bench.folder / "out"
    await until("the command begins", lambda: out.exists() and out.read_text() == "begun\n")
    keeper = next(pid for pid in parents_of(NAP.encode()))
    os.kill(keeper, signal.SIGKILL)
    with pytest.raises(Refusal) as refused:
        await running
    assert refused.value.reason is Reason.SANDBOX_LOST
    with pytest.raises(Refusal) as refused:
        await bench.run(world, "true")
    assert refused.value.reason is Reason.SANDBOX_LOST
    await world.stop()
    assert bench.left() == []


def parents_of(word: bytes) -> list[int]:
    """The keepers above processes with `word` in their command line: their supervisor's parent."""
    found = []
    for path in Path("/proc").iterdir():
        try:
            if word in (path / "cmdline").read_bytes() and path.name != str(os.getpid()):
                supervisor = parent(int(path.name))
                if Path(f"/proc/{supervisor}/comm").read_text() == "init\n":
                    found.append(parent(supervisor))
        except (OSError, ValueError):
            continue
    return found


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
