"""Functions of a study's in worker processes: values, faults, deadlines, deaths, and what workers are not shown."""

from __future__ import annotations

import asyncio
import os
import select
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import Admitted, seal_admitted
from proctor.rollout.workers import FaultKind, Returned, WorkerError, Workers

SOURCE = '''
"""Functions of a study."""
import asyncio, json, os, signal, struct, sys, time

def echo(*args, **kwargs): return [list(args), kwargs]
def pid(): return os.getpid()
def boom(): raise ValueError("no such luck")
def hang(fifo):
    with open(fifo, "w") as told: told.write(str(os.getpid()))
    time.sleep(3600)
def crash(): os._exit(7)
def killed(): os.kill(os.getpid(), signal.SIGKILL)
def leave(): sys.exit("bye")
def prints():
    print("x" * 100_000); sys.stdout.flush(); os.write(1, b"\\0\\0\\0\\5hello"); os.write(2, b"y" * 100_000)
    return "said"
def reads(): return sys.stdin.read()
asked = 1
def twice(x):
    """As one that forks and returns in both processes."""
    global asked
    asked += 1
    answer = json.dumps({"value": x}).encode()
    channel = int(sys.argv[1])
    os.write(channel, struct.pack(">II", len(answer), asked) + answer)
    return x
def big(): return "x" * (2 << 20)
def strange(kind):
    return {"nan": float("nan"), "set": {1}, "lone": "\\ud800", "long": 10**60, "deep": eval("[" * 70 + "]" * 70)}[kind]
def environment(): return dict(os.environ)
async def later(x):
    await asyncio.sleep(0)
    return x + 1
class Bad(Exception):
    def __str__(self): raise RuntimeError("not even that")
def bad(): raise Bad
def nested(): return echo(1)
not_callable = 3
def child_that_hangs(fifo):
    import subprocess
    child = subprocess.Popen(["sleep", "3600"])
    with open(fifo, "w") as told: told.write(str(child.pid))
    time.sleep(3600)
'''


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "calc.py").write_text(SOURCE)
    return tmp_path


@pytest.fixture
def admitted(tmp_path: Path) -> Admitted:
    return seal_admitted(run_id="a" * 26, run_dir=tmp_path, design_sha256="0" * 64, label="proctor-test")


@pytest.fixture
async def workers(study: Path, admitted: Admitted) -> AsyncIterator[Workers]:
    async with Workers(admitted, study, withheld=frozenset({"WITHHELD_KEY"})) as made:
        yield made


async def call(workers: Workers, function: str, *args: Any, deadline_sec: float = 30) -> Returned | WorkerError:
    return await workers.pool(f"calc:{function}", None, size=1).call(args, deadline_sec=deadline_sec)


async def value(workers: Workers, function: str, *args: Any) -> Any:
    found = await call(workers, function, *args)
    assert isinstance(found, Returned), found
    return found.value


async def fault(workers: Workers, function: str, *args: Any, deadline_sec: float = 30) -> WorkerError:
    found = await call(workers, function, *args, deadline_sec=deadline_sec)
    assert isinstance(found, WorkerError), found
    return found


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """Where a function that will hang says of which process."""
    os.mkfifo(tmp_path / "told")
    return tmp_path / "told"


def runs(pid: int, within_sec: float = 0) -> bool:
    """Whether that process still runs after so long at most."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        return not select.select([pidfd], [], [], within_sec)[0]
    finally:
        os.close(pidfd)


async def told(fifo: Path) -> int:
    """The number that is said there; 0 where nothing is."""
    return int(await asyncio.wait_for(asyncio.to_thread(fifo.read_text), 600) or "0")


async def told_by(fifo: Path, calling: asyncio.Task[WorkerError]) -> int:
    """As `told`, of a call that may be over before anything was said."""
    saying = asyncio.create_task(told(fifo))
    await asyncio.wait([saying, calling], return_when=asyncio.FIRST_COMPLETED)
    while calling.done() and not (await asyncio.wait([saying], timeout=0.01))[0]:
        with suppress(OSError):  # nobody reads yet
            os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    return await saying


async def test_values_go_in_and_come_out(workers: Workers) -> None:
    assert await value(workers, "echo", 1, "é\u2028", None, [1.5], {"a": True}) == [
        [1, "é\u2028", None, [1.5], {"a": True}],
        {},
    ]
    found = await workers.pool("calc:echo", None, size=1).call(kwargs={"x": 2}, deadline_sec=600)
    assert found == Returned([[], {"x": 2}])
    assert await value(workers, "later", 2) == 3
    assert len((await value(workers, "echo", "z" * 900_000))[0][0]) == 900_000


async def test_one_process_serves_all_calls(workers: Workers) -> None:
    pids = {await value(workers, "pid") for _ in range(3)}
    assert len(pids) == 1 and pids != {os.getpid()}


async def test_a_pool_has_no_more_processes_than_its_size_and_each_model_has_its_own(workers: Workers) -> None:
    pools = [workers.pool("calc:pid", None, size=2, model=model) for model in ("luna", "sol")]
    assert pools[0] is workers.pool("calc:pid", None, size=2, model="luna")
    found = await asyncio.gather(*(pool.call(deadline_sec=600) for pool in pools for _ in range(6)))
    pids = [{each.value for each in part if isinstance(each, Returned)} for part in (found[:6], found[6:])]
    assert 1 <= len(pids[0]) <= 2 and 1 <= len(pids[1]) <= 2 and not pids[0] & pids[1]


@pytest.mark.parametrize(
    ("function", "text"), [("boom", "ValueError: no such luck"), ("leave", "SystemExit: bye"), ("bad", "Bad")]
)
async def test_an_exception_is_text_and_the_worker_lives_on(workers: Workers, function: str, text: str) -> None:
    found = await fault(workers, function)
    assert found.kind is FaultKind.RAISED and text in found.message
    assert (await fault(workers, function)).kind is FaultKind.RAISED
    assert len(workers.processes) == 1


@pytest.mark.parametrize("kind", ["nan", "set", "lone", "long", "deep"])
async def test_what_is_no_plain_json_is_a_fault_of_the_function(workers: Workers, kind: str) -> None:
    assert (await fault(workers, "strange", kind)).kind is FaultKind.RAISED
    assert len(workers.processes) == 1


async def test_a_result_has_a_bound(workers: Workers) -> None:
    found = await fault(workers, "big")
    assert found.kind is FaultKind.RAISED and "2097" in found.message


async def test_what_is_printed_is_no_answer(workers: Workers) -> None:
    assert await value(workers, "prints") == "said"
    assert await value(workers, "reads") == ""


async def test_an_answer_that_nobody_waits_for_is_not_that_of_the_next_call(workers: Workers) -> None:
    pool = workers.pool("calc:twice", None, size=1)
    assert await pool.call(["first"], deadline_sec=600) == Returned("first")
    second = await pool.call(["second"], deadline_sec=600)
    assert isinstance(second, WorkerError) and second.kind is FaultKind.DIED
    assert await pool.call(["third"], deadline_sec=600) == Returned("third")


async def test_a_hung_worker_is_killed_with_what_it_started_and_replaced(workers: Workers, fifo: Path) -> None:
    for function in ("child_that_hangs", "hang"):
        for deadline in (0.5, 5.0, 60.0):  # in which it says who it is
            calling = asyncio.create_task(fault(workers, function, str(fifo), deadline_sec=deadline))
            hung = await told_by(fifo, calling)
            assert (await calling).kind is FaultKind.TIMEOUT
            if hung:
                break
        assert hung and not runs(hung, 600) and workers.processes == []
    found = await workers.pool("calc:hang", None, size=1).call(["/nowhere/at/all"], deadline_sec=600)
    assert isinstance(found, WorkerError) and found.kind is FaultKind.RAISED


@pytest.mark.parametrize(("function", "text"), [("crash", "status 7"), ("killed", "signal 9")])
async def test_a_worker_that_dies_is_said_and_replaced(workers: Workers, function: str, text: str) -> None:
    for _ in range(2):
        found = await fault(workers, function)
        assert found.kind is FaultKind.DIED and text in found.message


async def test_a_worker_that_died_between_two_calls_is_replaced_unseen(workers: Workers) -> None:
    first = await value(workers, "pid")
    os.kill(first, 9)
    assert not runs(first, 20)
    assert await value(workers, "pid") != first


async def test_a_cancelled_call_leaves_no_worker_behind(workers: Workers, fifo: Path) -> None:
    calling = asyncio.create_task(call(workers, "hang", str(fifo), deadline_sec=600))
    hung = await told(fifo)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert workers.processes == [] and not runs(hung)


async def test_closing_ends_calls_in_flight(study: Path, admitted: Admitted, fifo: Path) -> None:
    workers = Workers(admitted, study)
    idle = await value(workers, "pid")
    calling = asyncio.create_task(fault(workers, "hang", str(fifo), deadline_sec=600))
    hung = await told(fifo)
    await workers.close()
    assert (await calling).kind is FaultKind.DIED
    assert workers.processes == [] and not runs(idle) and not runs(hung)
    assert (await fault(workers, "pid")).kind is FaultKind.DIED


async def test_workers_die_with_a_process_that_is_killed(study: Path, fifo: Path) -> None:
    script = f"""
import asyncio
from pathlib import Path
from proctor.core.tokens import seal_admitted
from proctor.rollout.workers import Workers
token = seal_admitted(run_id="a" * 26, run_dir=Path("."), design_sha256="0" * 64, label="proctor-test")
async def main():
    async with Workers(token, Path({str(study)!r})) as workers:
        await workers.pool("calc:hang", None, size=1).call([{str(fifo)!r}], deadline_sec=600)
asyncio.run(main())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", script, env=environment)
    hung = await told(fifo)
    owner.kill()
    await owner.wait()
    assert not runs(hung, 20)


async def test_workers_do_not_see_what_is_withheld(
    study: Path, admitted: Admitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WITHHELD_KEY", "sk-planted")
    monkeypatch.setenv("SHOWN", "yes")
    async with Workers(admitted, study, withheld=frozenset({"WITHHELD_KEY"})) as workers:
        seen = await value(workers, "environment")
    assert "WITHHELD_KEY" not in seen and "sk-planted" not in seen.values() and seen["SHOWN"] == "yes"


async def test_calls_leave_nothing_beside_the_study(workers: Workers, study: Path) -> None:
    await value(workers, "nested")
    assert [path.name for path in study.iterdir()] == ["calc.py"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("raise RuntimeError('not today')\ndef f(): ...", "not today"),
        ("import no_such_module_at_all\ndef f(): ...", "no_such_module_at_all"),
        ("f = 3", "cannot be called"),
        ("import os\ndef f(): ...\nos._exit(3)", "status 3"),
    ],
)
async def test_a_module_that_cannot_be_imported(workers: Workers, study: Path, body: str, text: str) -> None:
    (study / "broken.py").write_text(body)
    found = await workers.pool("broken:f", None, size=1).call(deadline_sec=600)
    assert isinstance(found, WorkerError) and text in found.message
    assert workers.processes == []


async def test_a_module_of_a_name_that_python_took_already_is_said(workers: Workers, study: Path) -> None:
    (study / "json.py").write_text("def f(): return 1")
    found = await workers.pool("json:f", None, size=1).call(deadline_sec=600)
    assert isinstance(found, WorkerError) and "rename one of them" in found.message


async def test_a_module_that_changed_since_it_was_admitted_is_not_run(workers: Workers, study: Path) -> None:
    with pytest.raises(Refusal) as refused:
        workers.pool("calc:pid", "0" * 64, size=1)
    assert refused.value.reason is Reason.TASK_CHANGED
    pool = workers.pool("calc:echo", None, size=1)
    (study / "calc.py").write_text(SOURCE + "\n# another\n")
    found = await pool.call(deadline_sec=600)
    assert isinstance(found, WorkerError) and "not what was admitted" in found.message


async def test_a_function_that_is_not_there_is_refused(workers: Workers) -> None:
    with pytest.raises(Refusal) as refused:
        workers.pool("calc:ecko", None, size=1)
    assert refused.value.reason is Reason.TOOL_INVALID and "'echo'" in refused.value.message
