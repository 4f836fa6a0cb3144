"""Worker processes: a study's Python functions, run where they can hang, crash or print without harm to a run.

A pool of processes for each function and model; each call has a deadline, and a worker that reaches it, dies or is
left by a cancelled caller is killed with its process group and replaced at the next call. Workers see this process's
environment without the variables that hold keys. They die with this process, even if it is killed; a process that a
function starts in a session of its own does not.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.strictjson import loads
from proctor.core.tokens import Admitted
from proctor.core.waiting import finish, in_thread
from proctor.rollout import worker as program
from proctor.tasks.functions import Function, find_function

START_SEC = 60.0
MAX_REQUEST_BYTES = 64 << 20

_MAX_REPLY_BYTES = program.MAX_VALUE_BYTES + 1_024
_NUMBERS = 1 << 32
# a killed process that does not end is one that the kernel holds
_KILLED_SEC = 10.0
_ENDING_SEC = 2.0


class FaultKind(StrEnum):
    """Why a call gave no value."""

    RAISED = "raised"
    TIMEOUT = "timeout"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class Returned:
    """What a function returned, as JSON."""

    value: Any


@dataclass(frozen=True, slots=True)
class WorkerError:
    """Why there is no value; `message` is bounded, and of an exception its type and text."""

    kind: FaultKind
    message: str


class _Broken(Exception):
    """The worker ended, or what it sent is no answer."""


class _Worker:
    """One process and the socket to it."""

    def __init__(
        self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._asked = 0
        self._killing = asyncio.Lock()

    async def ask(self, request: Mapping[str, Any]) -> Returned | WorkerError:
        """One request, one answer. Raises _Broken."""
        data = json.dumps(request).encode()
        if len(data) > MAX_REQUEST_BYTES:
            return WorkerError(FaultKind.RAISED, f"the arguments have {len(data)} bytes")
        self._asked = (self._asked + 1) % _NUMBERS
        try:
            self._writer.write(program.HEAD.pack(len(data), self._asked) + data)
            await self._writer.drain()
            size, number = program.HEAD.unpack(await self._reader.readexactly(program.HEAD.size))
            if size > _MAX_REPLY_BYTES or number != self._asked:
                raise _Broken("it sent what is no answer")
            reply = await self._reader.readexactly(size)
        except (ConnectionError, EOFError) as error:
            raise _Broken(await self._ending()) from error
        try:
            answer = loads(reply, max_bytes=_MAX_REPLY_BYTES)
        except Refusal as refusal:
            return WorkerError(FaultKind.RAISED, f"the result is not plain JSON: {refusal.message}")
        if "raised" in answer:
            return WorkerError(FaultKind.RAISED, answer["raised"])
        return Returned(answer["value"])

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether the process is no more; it stays unreaped, so that its id is not another's."""
        return _ended(self.pid) is not None

    async def _ending(self) -> str:
        """How it ended."""
        try:
            await self._gone()
            found = _ended(self.pid)
        except (ProcessLookupError, ChildProcessError):  # reaped meanwhile
            return "it was ended"
        if found is None:
            return "it closed its socket"
        how = "with status" if found.si_code == os.CLD_EXITED else "by signal"
        return f"it ended {how} {found.si_status}"

    async def _gone(self) -> None:
        """Wait until the process is no more: its socket closes a moment before."""
        loop, gone = asyncio.get_running_loop(), asyncio.Event()
        pidfd = os.pidfd_open(self.pid)
        try:
            loop.add_reader(pidfd, gone.set)
            with suppress(TimeoutError):
                await asyncio.wait_for(gone.wait(), _ENDING_SEC)
        finally:
            loop.remove_reader(pidfd)
            os.close(pidfd)

    async def kill(self) -> None:
        """End it and its process group, and wait until it is gone; again is no harm."""
        self._writer.transport.abort()
        # one at a time: once the other has reaped it, its number may be another's
        async with self._killing:
            if self._process.returncode is None:
                os.killpg(self.pid, signal.SIGKILL)
                with suppress(subprocess.TimeoutExpired):
                    await in_thread(self._process.wait, _KILLED_SEC)


def _ended(pid: int) -> os.waitid_result | None:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)


class Pool:
    """Processes for one function; calls beyond their number wait, each no longer than those before it may take."""

    def __init__(self, owner: Workers, function: Function, size: int) -> None:
        self._owner = owner
        self._function = function
        self._idle: list[_Worker] = []
        self._free = asyncio.Semaphore(size)
        self._unusable: WorkerError | None = None

    async def call(
        self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *, deadline_sec: float
    ) -> Returned | WorkerError:
        """Call the function with JSON values; the deadline counts from when a worker has it."""
        request = {"ask": "call", "args": list(args), "kwargs": dict(kwargs or {})}
        return await self._ask(request, deadline_sec)

    async def describe(self, *, deadline_sec: float) -> Returned | WorkerError:
        """`{description, parameters}` of the function, as a model is told."""
        return await self._ask({"ask": "describe"}, deadline_sec)

    async def _ask(self, request: Mapping[str, Any], deadline_sec: float) -> Returned | WorkerError:
        async with self._free:
            worker = await self._take()
            if isinstance(worker, WorkerError):
                return worker
            whole = False
            try:
                async with asyncio.timeout(deadline_sec):
                    answer = await worker.ask(request)
                whole = True
            except TimeoutError:
                return WorkerError(FaultKind.TIMEOUT, f"no answer within {deadline_sec:g} s")
            except _Broken as broken:
                return WorkerError(FaultKind.DIED, f"the worker process failed: {broken}")
            finally:
                if whole and not self._owner.closed:
                    self._idle.append(worker)
                else:
                    await finish(self._owner.discard(worker))
            return answer

    async def _take(self) -> _Worker | WorkerError:
        if self._owner.closed:
            return WorkerError(FaultKind.DIED, "the workers were closed")
        while self._idle:
            worker = self._idle.pop()
            if not worker.ended:
                return worker
            await self._owner.discard(worker)
        if self._unusable is not None:
            return self._unusable
        try:
            worker = await self._owner.start()
        except OSError as error:
            return WorkerError(FaultKind.DIED, f"no worker process can be started: {error.strerror}")
        ready = False
        try:
            async with asyncio.timeout(START_SEC):
                answer = await worker.ask(self._owner.first_request(self._function))
            ready = isinstance(answer, Returned)
        except TimeoutError:
            return WorkerError(FaultKind.TIMEOUT, f"the module was not imported within {START_SEC:g} s")
        except _Broken as broken:
            return WorkerError(FaultKind.DIED, f"the worker process failed while it imported: {broken}")
        finally:
            if not ready:
                await finish(self._owner.discard(worker))
        if isinstance(answer, WorkerError):
            # what an import raises it raises again: not another process for each row
            self._unusable = WorkerError(answer.kind, f"it cannot be imported: {answer.message}")
            return self._unusable
        return worker


class Workers:
    """All worker processes of one run. `async with`, or `close`, ends them all.

    Args:
        admitted: permission to run a study's code.
        base: the study's folder, where modules are looked for first, and in which workers run.
        withheld: variables that workers are not shown: those that hold keys.
    """

    def __init__(self, admitted: Admitted, base: Path, *, withheld: frozenset[str] = frozenset()) -> None:
        self._base = base.resolve()
        self._withheld = withheld
        self._pools: dict[tuple[str, str | None], Pool] = {}
        self._alive: dict[_Worker, None] = {}
        self.closed = False

    def pool(self, name: str, sha256: str | None, *, size: int, model: str | None = None) -> Pool:
        """The pool of a function for a model, made when it is first asked for.

        Args:
            name: `module:function`, or the name of an installed scorer.
            sha256: of its module's file as it was admitted; None for functions of proctor's own.
            size: processes at most.
            model: whose pool; None for one that all share.

        Raises:
            Refusal: TOOL_INVALID (it cannot be found), TASK_CHANGED (not the file that was admitted).
        """
        key = (name, model)
        if key not in self._pools:
            function = find_function(name, self._base, name)
            if sha256 is not None and function.sha256 != sha256:
                raise Refusal(
                    Reason.TASK_CHANGED,
                    f"the module of {name!r} is not what was admitted",
                    path=str(function.path),
                    observed=function.sha256,
                    required=sha256,
                )
            self._pools[key] = Pool(self, function, size)
        return self._pools[key]

    @property
    def processes(self) -> list[int]:
        """The processes that run, as their ids in order of start."""
        return [worker.pid for worker in self._alive]

    async def start(self) -> _Worker:
        """A new process. Raises OSError."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                reader, writer = await asyncio.open_connection(sock=ours)
            except asyncio.CancelledError:
                ours.close()
                raise
            try:
                process = self._spawned(theirs.fileno())
            except OSError:
                writer.transport.abort()
                raise
        worker = _Worker(process, reader, writer)
        self._alive[worker] = None
        return worker

    def _spawned(self, descriptor: int) -> subprocess.Popen[bytes]:
        """In this thread, not in another: a worker dies with the thread that started it."""
        if self.closed:
            raise OSError(errno.ESHUTDOWN, "the workers are being closed")
        return subprocess.Popen(
            [sys.executable, "-P", "-X", "utf8", program.__file__, str(descriptor), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[descriptor],
            cwd=self._base,
            env=self._environment(),
            start_new_session=True,
        )

    def first_request(self, function: Function) -> dict[str, Any]:
        """What a worker is told before anything else."""
        return {
            "path": [str(self._base), *(each or str(Path.cwd()) for each in sys.path)],
            "module": function.module,
            "function": function.function,
            "file": str(function.path),
            "sha256": function.sha256,
        }

    async def discard(self, worker: _Worker) -> None:
        """End one process."""
        await worker.kill()
        self._alive.pop(worker, None)

    async def close(self) -> None:
        """End all of them; calls in flight fail as if their workers had died."""
        self.closed = True
        await finish(asyncio.gather(*(self.discard(worker) for worker in list(self._alive))))

    async def __aenter__(self) -> Workers:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _environment(self) -> dict[str, str]:
        """Ours without keys; sets iterate in the same order in each worker, so that grades can be had again."""
        kept = {name: value for name, value in os.environ.items() if name not in self._withheld}
        return {**kept, "PYTHONHASHSEED": "0"}
