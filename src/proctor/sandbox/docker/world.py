"""A container that runs: what the protocol promises, done through the engine and the container's keeper."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import finish, in_thread, wait_through
from proctor.sandbox.base import Ended, Exec, Fetched, LimitInForce, PutItem, Snapshot
from proctor.sandbox.docker import commands, getting, listening, putting
from proctor.sandbox.docker.built import Built
from proctor.sandbox.docker.capturing import Capturing
from proctor.sandbox.docker.engine import Engine, EngineError, lost
from proctor.sandbox.docker.holding import Hold
from proctor.sandbox.docker.limit_hits import limit_hit
from proctor.sandbox.docker.merged import Merged
from proctor.sandbox.docker.sinks import Sinks
from proctor.sandbox.docker.tables import disarm
from proctor.sandbox.rules import LONGEST_SEC, check_command, plain

_REMOVE_SEC = 20.0
# what a container takes at most to end by itself, once its keeper has nothing to listen to
_HANG_UP_SEC = 5.0
# takes work that is done to its end without anybody waiting for it
Leave = Callable[[Coroutine[Any, Any, None]], None]


class DockerSandbox:
    """A container. Commands run one at a time, for at a command's end everything inside is ended."""

    def __init__(self, built: Built, engine: Engine, hold: Hold, leave: Leave) -> None:
        self._built = built
        self._engine = engine
        self._hold = hold
        self._turn = asyncio.Lock()
        self._ended = False
        self._removed = False
        self._gateway: str | None = None
        self._replaced: list[str] = []
        self._leave = leave
        self._staying: list[commands.Running] = []
        self._merged = Merged(built.seen)
        self._capturing = Capturing(engine, built.container, built.seen)

    @property
    def facts(self) -> Mapping[str, Any]:
        """For the record; `gateway` is where a listening socket of ours was opened last, or None."""
        return {
            **self._built.facts,
            "gateway": self._gateway,
            "tables_replaced": [*self._built.replaced, *self._replaced],
        }

    @property
    def limits_enforced(self) -> tuple[LimitInForce, ...]:
        """Limits as read back after start."""
        return self._built.in_force

    async def exec(self, command: Exec) -> Ended:
        """Run a command inside; nothing of it is left after this returns or raises, unless it may leave it.

        Raises:
            Refusal: SANDBOX_LOST when the world ended; OUT_UNUSABLE or DISK_FULL when its output cannot be kept;
                SANDBOX_START_FAILED while the world is frozen, or for a command without words or with a deadline
                that is no time.
        """
        # not part of the container, for a capture would keep it
        command = replace(command, env={**self._built.spec.env, **command.env})
        check_command(command)
        why = commands.never_starts(command)
        if self._hold.frozen:
            raise Refusal(Reason.SANDBOX_START_FAILED, "the sandbox is frozen", remedy="Thaw it first.")
        async with self._turn:
            self._alive()
            sinks = Sinks(command.stdout, command.stderr, command.output_cap)
            try:
                if why is not None:
                    return commands.never(why)
                ended = await self._run(command, sinks)
                if ended.start_error is not None and await self._disarm(deep=True):
                    ended = await self._run(command, sinks)
                return ended
            finally:
                sinks.close()

    async def _run(self, command: Exec, sinks: Sinks) -> Ended:
        since = time.time()
        running: commands.Running | None = None
        try:
            await self._disarm()
            if not self._staying:
                # what was left may have used up the processes, and a keeper that cannot have one more ends
                await self._hold.watch(min(command.deadline_sec, LONGEST_SEC))
            # to its end, even if cancelled: what the engine starts unheard nobody would end
            beginning = asyncio.ensure_future(
                commands.begin(self._engine, self._built.container, command, sinks, self._built.home)
            )
            cancelled = await wait_through(beginning)
            running = beginning.result()
            if cancelled is not None:
                raise cancelled
            how, hit = await self._what_becomes_of(running, since)
            if command.leave_running and not how.timed_out and hit != "storage":
                await self._hold.unwatch()
                await running.settle(None)
                left = 0
                self._staying.append(running)
            else:
                left = await self._end()
                await running.settle(self._hold.end)
            return running.ended(how, leftovers=left, limit_hit=hit)
        except BaseException as fault:
            await finish(self._abandon(running, isinstance(fault, EngineError) and fault.status is None))
            if self._ended and running is not None and isinstance(fault, EngineError | Refusal):
                return running.stopped()
            if isinstance(fault, EngineError):
                raise lost(fault) from fault
            raise
        finally:
            if running is not None and running not in self._staying:
                await finish(running.close())

    async def _what_becomes_of(self, running: commands.Running, since: float) -> tuple[commands.How, str | None]:
        """How it ends by itself, by its deadline or by its limit on storage, and the limit that it hit."""
        watch, waiting = self._built.watch, running.wait()
        how = await (waiting if watch is None else watch.beside(waiting))
        if how is None:
            return commands.KILLED, "storage"
        return how, await limit_hit(self._engine, self._built.container, self._built.in_force, how, since)

    async def _disarm(self, *, deep: bool = False) -> bool:
        """Whether tables inside were traps, and are none any more. Raises EngineError."""
        found = await disarm(self._engine, self._built.container, deep=deep)
        self._replaced += found
        return bool(found)

    async def put(self, items: Sequence[PutItem]) -> None:
        """Bring files in, all in one go.

        Raises:
            Refusal: PATH_UNSAFE for a target that is no plain absolute path or cannot be made, or a special file in
                a source; FILE_UNREADABLE for a source; INVALID_VALUE for an owner that is not known inside;
                SANDBOX_LOST.
        """
        self._alive()
        if not items:
            return
        try:
            await putting.put(
                self._engine, self._built.container, items, mounts=self._built.mounts, now=int(time.time())
            )
        except EngineError as fault:
            raise lost(fault) from fault

    async def get(self, paths: Sequence[str], into: Path, *, cap_bytes: int, cap_files: int) -> list[Fetched]:
        """Bring files out below `into`, at their path inside. Sockets are not told of.

        Raises:
            Refusal: PATH_UNSAFE for a path that is no plain absolute one; DISK_FULL; SANDBOX_LOST.
        """
        self._alive()
        wanted = [plain(path) for path in paths]
        into.mkdir(parents=True, exist_ok=True)
        try:
            return await getting.get(
                self._engine,
                self._built.container,
                wanted,
                into,
                merged=self._merged,
                cap_bytes=cap_bytes,
                cap_files=cap_files,
            )
        except EngineError as fault:
            raise lost(fault) from fault

    async def listen(self) -> socket.socket:
        """A TCP socket that listens on 127.0.0.1 inside, for connections to be accepted outside.

        Raises:
            Refusal: NETWORK_UNAVAILABLE for a world without network, or where its network cannot be entered from
                here; SANDBOX_LOST.
        """
        self._alive()
        if self._built.spec.network is Network.NONE:
            raise Refusal(
                Reason.NETWORK_UNAVAILABLE,
                "nothing can listen in a sandbox without network",
                required=[Network.GATEWAY_ONLY.value, Network.PUBLIC.value],
            )
        made = await in_thread(listening.listening_socket, self._built.container, self._hold.pid)
        host, port = made.getsockname()
        self._gateway = f"{host}:{port}"
        return made

    async def freeze(self) -> None:
        """Stop every process inside. Raises Refusal (SANDBOX_LOST)."""
        self._alive()
        await self._hold.freeze()

    async def thaw(self) -> None:
        """Let them go on. Raises Refusal (SANDBOX_LOST)."""
        self._alive()
        await self._hold.thaw()

    async def kill_all(self) -> int:
        """End every process inside but PID 1; how many there were. Raises Refusal (SANDBOX_LOST)."""
        self._alive()
        return await self._end()

    async def mark(self, apart: Sequence[str] = ()) -> None:
        """Remember the world as it stands: `capture` tells what changed after it. Raises Refusal (SANDBOX_LOST)."""
        self._alive()
        await self._capturing.mark(apart)

    async def capture(self) -> Snapshot:
        """End this world and keep it as an image.

        Raises:
            Refusal: CAPTURE_FAILED when it cannot be kept, and then nothing of it is; SANDBOX_LOST.
        """
        self._alive()
        try:
            return await finish(self._capture())
        except BaseException:
            await self.stop()
            await finish(self._capturing.undo())
            raise

    async def stop(self) -> None:
        """End the world and remove what it made. A captured one is on its way out already, and not waited for."""
        self._ended = True
        await finish(self._remove())

    async def _capture(self) -> Snapshot:
        built = self._built
        await self._end()
        snapshot = await self._capturing.take(
            built.labels, built.volumes, built.scratch, {"tier": built.facts["tier"], "base": built.image}
        )
        self._ended = True
        self._leave(self._remove())
        return snapshot

    async def _end(self) -> int:
        """End every process inside but the keeper; how many there were, without those that hold outputs of servers."""
        held, self._staying = self._staying, []
        try:
            return max(0, await self._hold.end() - len(held))
        finally:
            for running in held:
                await finish(running.close())

    async def _abandon(self, running: commands.Running | None, unheard: bool) -> None:
        """End what a command that nobody waits for any more began; `unheard` where the engine does not answer."""
        try:
            if unheard:
                await self._hold.end_unheard()
                return
            await self._end()
            if running is not None:
                await running.settle(self._hold.end)
        except (Refusal, EngineError):
            return  # whatever was the matter is being told

    async def _remove(self) -> None:
        if self._removed:
            return
        self._removed = True
        container = f"containers/{self._built.container}"
        await self._hold.let_go()
        try:
            if self._hold.frozen:
                await self._force_removal(container)
            await self._engine.call(
                "POST", f"{container}/wait", params={"condition": "removed"}, deadline_sec=_HANG_UP_SEC
            )
        except EngineError as fault:
            if not fault.gone:
                await self._force_removal(container)
        finally:
            for running in self._staying:
                await running.close()
            async with self._turn:  # a command that still runs is told that it ended
                await self._engine.close()

    async def _force_removal(self, container: str) -> None:
        try:
            await self._engine.call("DELETE", container, params={"force": "1", "v": "1"}, deadline_sec=_REMOVE_SEC)
        except EngineError:
            return  # its labels say whose it is: `prune` tries again

    def _alive(self) -> None:
        if self._ended:
            raise Refusal(Reason.SANDBOX_LOST, "the sandbox was stopped before")
