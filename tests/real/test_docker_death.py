"""What is left when the runner, the container or the engine dies, and how it is found."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from docker_bench import BUSYBOX, Bench, admitted, bench, call, image_id, kind

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import Admitted
from proctor.sandbox.base import PutItem, Snapshot
from proctor.sandbox.docker.engine import Engine
from proctor.sandbox.docker.kind import DockerKind
from proctor.sandbox.docker.probe import look
from proctor.sandbox.docker.pruning import KEPT

__all__ = ["admitted", "bench", "kind"]
pytestmark = pytest.mark.real

RUNNER = """
import asyncio, sys
from pathlib import Path
from proctor.core.tokens import seal_admitted
from proctor.sandbox.base import Exec, SandboxSpec
from proctor.sandbox.docker.kind import DockerKind

async def main(folder, image):
    kind = DockerKind()
    admitted = seal_admitted(run_id="r", run_dir=folder, design_sha256="0" * 64, label="proctor-dead")
    spec = SandboxSpec(name="w", scratch=folder / "scratch", image=image)
    first, second, third = [await kind.start(spec, admitted) for _ in range(3)]
    await second.capture()
    await third.freeze()
    script = "setsid sleep 98765 & sh -c 'trap \\"\\" TERM HUP INT; sleep 98765' & echo begun; sleep 98765"
    await first.exec(Exec(("sh", "-c", script), stdout=folder / "out"))

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""

KEEPER = """
import asyncio, json, sys
from pathlib import Path
from proctor.core.tokens import seal_admitted
from proctor.sandbox.base import Exec, SandboxSpec
from proctor.sandbox.docker.kind import DockerKind

async def main(folder, image):
    kind = DockerKind()
    admitted = seal_admitted(run_id="r", run_dir=folder, design_sha256="0" * 64, label="proctor-dead")
    world = await kind.start(SandboxSpec(name="w", scratch=folder / "scratch", image=image), admitted)
    await world.exec(Exec(("sh", "-c", "echo kept > /f"), stdout=folder / "out"))
    snapshot = await world.capture()
    await asyncio.to_thread(kind.keep, snapshot)
    (folder / "facts").write_text(json.dumps(dict(snapshot.facts)))

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


async def until(what: str, done: Callable[[], object]) -> None:
    for _ in range(20_000):
        if done():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(what)


def states(bench: Bench) -> dict[str, str]:
    """States of this test's containers and images, by id."""
    rows = {row["Id"]: row["State"] for row in call("GET", "containers/json", params={"all": "1"})}
    return {left: rows.get(left, "image") for left in bench.left()}


def pruned(bench: Bench, folder: Path) -> list[str]:
    """What is pruned of this test's own: others may have left things too."""
    mine = {left.removeprefix("sha256:")[:12] for left in bench.left()}
    return sorted(words.split()[0] for words in bench.kind.prune(folder, bench.admitted) if words.split()[1] in mine)


async def test_a_killed_runner_leaves_no_process_and_prune_finds_the_rest(bench: Bench, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    image = image_id(bench.kind, BUSYBOX)
    runner = await asyncio.create_subprocess_exec(sys.executable, "-c", RUNNER, str(tmp_path), image, env=environment)
    out = tmp_path / "out"
    await until("the command begins", lambda: out.exists() and out.read_text() == "begun\n")
    await until("the captured one is gone", lambda: sorted(states(bench).values()) == ["image", "paused", "running"])
    assert pruned(bench, tmp_path) == []  # the run lives
    runner.send_signal(signal.SIGKILL)
    await runner.wait()
    # what runs ends by itself, with all that is in it; what is frozen, and the image, wait to be found
    await until("the container ends", lambda: sorted(states(bench).values()) == ["image", "paused"])
    assert pruned(bench, tmp_path / "another") == ["container", "image"]
    assert await bench.nothing_left()


async def test_prune_spares_live_runs_kept_worlds_and_what_is_not_ours(bench: Bench, tmp_path: Path) -> None:
    world = await bench.start(image=BUSYBOX)
    other = call("POST", "containers/create", body={"Image": "busybox:latest", "Labels": {"proctor.run": "x"}})["Id"]
    try:
        assert pruned(bench, tmp_path) == []
        assert (await bench.run(world, "echo alive"))[1] == "alive\n"
        assert call("GET", f"containers/{other}/json")["Id"] == other
    finally:
        call("DELETE", f"containers/{other}")


async def test_a_kept_world_is_not_pruned_and_can_still_be_forked_and_released(bench: Bench, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    image = image_id(bench.kind, BUSYBOX)
    keeper = await asyncio.create_subprocess_exec(sys.executable, "-c", KEEPER, str(tmp_path), image, env=environment)
    assert await keeper.wait() == 0
    assert await bench.only_images_left(1)
    assert pruned(bench, tmp_path) == []
    facts = json.loads((tmp_path / "facts").read_text())
    snapshot = Snapshot("docker", None, (), facts)
    forked = await bench.kind.fork(snapshot, bench.spec(image=None), bench.admitted)
    bench.worlds.append(forked)
    assert (await bench.run(forked, "cat /f"))[1] == "kept\n"
    await forked.stop()
    await asyncio.to_thread(bench.kind.release, snapshot, bench.admitted)
    assert await bench.nothing_left()
    name = f"{KEPT}:{snapshot.facts['image'].removeprefix('sha256:')[:32]}"
    assert not any(name in (row["RepoTags"] or ()) for row in call("GET", "images/json"))


@pytest.mark.parametrize("what", ["exec", "put", "get", "kill_all", "freeze", "capture", "listen"])
async def test_a_container_killed_from_outside_is_a_lost_sandbox(bench: Bench, what: str) -> None:
    world = await bench.start(image=BUSYBOX)
    call("DELETE", f"containers/{world.facts['container']}", params={"force": "1"})
    work = {
        "exec": lambda: bench.run(world, "true"),
        "put": lambda: world.put([PutItem("/f", content=b"")]),
        "get": lambda: world.get(["/f"], bench.folder / "got", cap_bytes=1, cap_files=1),
        "kill_all": world.kill_all,
        "freeze": world.freeze,
        "capture": world.capture,
        "listen": world.listen,
    }[what]
    with pytest.raises(Refusal) as refused:
        await work()
    expected = Reason.NETWORK_UNAVAILABLE if what == "listen" else Reason.SANDBOX_LOST
    assert refused.value.reason is expected
    await world.stop()
    assert await bench.nothing_left()


async def test_a_container_killed_while_a_command_runs_is_a_lost_sandbox(bench: Bench) -> None:
    world = await bench.start(image=BUSYBOX)
    running = asyncio.create_task(bench.run(world, "echo begun; sleep 1000", deadline_sec=1000))
    out = bench.folder / "out"
    await until("the command begins", lambda: out.exists() and out.read_text() == "begun\n")
    call("POST", f"containers/{world.facts['container']}/kill")
    async with asyncio.timeout(600):
        with pytest.raises(Refusal) as refused:
            await running
    assert refused.value.reason is Reason.SANDBOX_LOST


class Proxy:
    """Between us and the engine: what it passes can be cut, or held up for ever."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.open = asyncio.Event()
        self.open.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection(self._engine)
        self._writers += [writer, far_writer]
        for one in (self._pass(reader, far_writer), self._pass(far_reader, writer)):
            task = asyncio.create_task(one)
            self._tasks.add(task)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                await self.open.wait()
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()

    async def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


FIGHT = "import os, signal\nwhile True:\n  try: os.kill(-1, signal.SIGSTOP)\n  except OSError: pass"


@pytest.mark.parametrize("late", [1, 9])
async def test_what_begins_only_when_all_was_ended_is_ended_too(
    bench: Bench, late: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.sandbox.docker.keeper._ANSWER_SEC", 3.0)
    world = await bench.start()
    began = 0

    async def fight(engine: Engine, container: str) -> None:
        asked = {"Cmd": ["python3", "-c", FIGHT], "AttachStdout": True}
        made = await ask(engine, "POST", f"{container}/exec", body=asked)
        await ask(engine, "POST", f"exec/{made['Id']}/start", body={"Detach": True})
        stopped = False  # what answers inside
        while not stopped:
            seen = await ask(engine, "GET", f"{container}/top", params={"ps_args": "-o pid,stat"})
            stopped = any(stat.startswith("T") for _, stat in seen["Processes"])

    async def late_call(engine: Engine, method: str, path: str, **asked: Any) -> Any:
        nonlocal began
        answer = await ask(engine, method, path, **asked)
        if "/restart" in path and began < late:
            began += 1
            await fight(engine, path.split("/restart")[0])
        return answer

    ask = Engine.call
    monkeypatch.setattr(Engine, "call", late_call)
    command = bench.run(world, "", argv=("python3", "-c", FIGHT), deadline_sec=0.5)
    if late > 3:
        with pytest.raises(Refusal) as refused:
            await command
        assert refused.value.reason is Reason.SANDBOX_LOST
    else:
        ended, _ = await command
        assert ended.timed_out and began == late
        assert (await bench.run(world, "echo on"))[1] == "on\n"


@pytest.fixture
async def through(
    kind: DockerKind, admitted: Admitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Bench, Proxy, asyncio.Server]]:
    proxy = Proxy(urlsplit(look(10).where.endpoint).path)
    server = await asyncio.start_unix_server(proxy.serve, tmp_path / "e.sock")
    made = Bench(DockerKind(), admitted, tmp_path)
    image = image_id(kind, BUSYBOX)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/e.sock")
    made.worlds.append(await made.kind.start(made.spec(image=image), admitted))
    monkeypatch.delenv("DOCKER_HOST")
    yield made, proxy, server
    server.close()
    await proxy.cut()
    for world in made.worlds:
        await world.stop()
    assert await made.nothing_left()


@pytest.mark.parametrize("held", [False, True])
async def test_an_engine_that_goes_in_the_middle_of_a_command_is_a_lost_sandbox(
    through: tuple[Bench, Proxy, asyncio.Server], held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, proxy, server = through
    world = bench.worlds[0]
    monkeypatch.setattr("proctor.sandbox.docker.commands._LOOK_SEC", 1.0)
    running = asyncio.create_task(bench.run(world, "echo begun; sleep 1000", deadline_sec=1000))
    out = bench.folder / "out"
    await until("the command begins", lambda: out.exists() and out.read_text() == "begun\n")
    if held:
        proxy.open.clear()
    else:
        server.close()
        await proxy.cut()
    async with asyncio.timeout(600):
        with pytest.raises(Refusal) as refused:
            await running
        assert refused.value.reason is Reason.SANDBOX_LOST
        if not held:
            for work in (world.kill_all, world.freeze, world.capture):
                with pytest.raises(Refusal) as refused:
                    await work()
                assert refused.value.reason is Reason.SANDBOX_LOST
    proxy.open.set()


async def test_an_engine_that_does_not_answer_is_no_sandbox(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(Refusal) as refused:
        await DockerKind().start(bench.spec(image="sha256:" + "0" * 64), bench.admitted)
    assert refused.value.reason is Reason.DOCKER_UNAVAILABLE
    assert DockerKind().prune(tmp_path, bench.admitted) == []
