"""The hold on a container: everything inside frozen, let go on, or ended, whatever fights that."""

from __future__ import annotations

import asyncio
import time

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.docker import outside
from proctor.sandbox.docker.engine import Engine, EngineError, lost
from proctor.sandbox.docker.keeper import Keeper, attached

# what killed processes take at most to be gone, with all their memory
_DYING_SEC = 5.0
_PAUSE_SEC = 0.001
_MOST_STARTS = 3
# PID 1, and its child that answers
_KEEPERS = 2


class Hold:
    """One container's, from its start on. `pid` is its PID 1, as the engine's machine counts."""

    def __init__(self, engine: Engine, container: str, pid: int, keeper: Keeper) -> None:
        self._engine = engine
        self._path = f"containers/{container}"
        self._container = container
        self._keeper = keeper
        self._ending = asyncio.Lock()
        self.pid = pid
        self.frozen = False

    async def freeze(self) -> None:
        """Stop every process inside. Raises Refusal (SANDBOX_LOST)."""
        if not self.frozen:
            await self._ask("pause")
            self.frozen = True

    async def thaw(self) -> None:
        """Let them go on. Raises Refusal (SANDBOX_LOST)."""
        if self.frozen:
            await self._ask("unpause")
            self.frozen = False

    async def watch(self, deadline_sec: float) -> None:
        """Have everything ended from inside a little after the deadline. Raises Refusal (SANDBOX_LOST)."""
        await self._keeper.watch(deadline_sec)

    async def unwatch(self) -> None:
        """Take that back. Raises Refusal (SANDBOX_LOST)."""
        await self._keeper.unwatch()

    async def end(self) -> int:
        """End every process inside but the keeper; how many there were. Raises Refusal (SANDBOX_LOST).

        Where something keeps the keeper from answering, or answers for it, the container is started anew on its files;
        more than once where what the engine was asked to begin before comes only then.
        """
        async with self._ending:
            await self.thaw()
            first, over = await self._sweep()
            starts = 0
            while not over:
                if starts == _MOST_STARTS:
                    raise Refusal(Reason.SANDBOX_LOST, "processes inside could not be ended")
                starts += 1
                await self._restart()
                _, over = await self._sweep()
            return 1 if first is None else first

    async def end_unheard(self) -> None:
        """The same where the engine does not answer: what the keeper can do alone. Raises Refusal (SANDBOX_LOST)."""
        await self._keeper.end()

    async def let_go(self) -> None:
        """Hang up: the container ends by itself."""
        await self._keeper.close()

    async def _sweep(self) -> tuple[int | None, bool]:
        """Have the keeper end what is inside until nothing is: how many it saw at first, and whether they are gone."""
        first = count = await self._keeper.end()
        deadline = time.monotonic() + _DYING_SEC
        while count is not None and (count or await self._has_others()):
            if time.monotonic() >= deadline:
                return first, False
            await asyncio.sleep(_PAUSE_SEC)
            count = await self._keeper.end()
        return first, count is not None

    async def _restart(self) -> None:
        await self._ask("restart?t=0")
        await self._keeper.close()
        try:
            self._keeper = await attached(self._engine, self._container)
            self.pid = (await self._engine.call("GET", f"{self._path}/json"))["State"]["Pid"]
        except EngineError as fault:
            raise lost(fault) from fault

    async def _has_others(self) -> bool:
        """Whether more runs than the keeper, as it is seen from outside."""
        try:
            return await outside.processes(self._engine, self._container, self.pid) > _KEEPERS
        except EngineError as fault:
            raise lost(fault) from fault

    async def _ask(self, what: str) -> None:
        try:
            await self._engine.call("POST", f"{self._path}/{what}")
        except EngineError as fault:
            raise lost(fault) from fault
