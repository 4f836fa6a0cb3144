"""The process that keeps a container: it ends when its input does, and ends everything else inside when told.

It is told over its standard input, so a command's end costs no exec. What answers is a child, and PID 1 only waits:
shells take in the zombies of the container only while they wait for a child of their own.
"""

from __future__ import annotations

import asyncio
import math
import secrets

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.docker.engine import Engine
from proctor.sandbox.docker.hijack import Hijacked

# `kill -KILL -1` spares PID 1 and who calls it. The child is started again where an agent ended it; PID 1 ends by 9.
SCRIPT = """while :; do
(
watch=
unwatch() {
  extra=0
  if [ -n "$watch" ] && kill -KILL "$watch" 2>/dev/null; then extra=1; wait "$watch" 2>/dev/null; fi
  watch=
}
while read -r word rest; do
  case $word in
    watch)
      (trap 'kill $nap' TERM; sleep "$rest" & nap=$!; wait "$nap" && kill -KILL -1) </dev/null >/dev/null 2>&1 &
      watch=$! ;;
    unwatch) [ -n "$watch" ] && { kill -TERM "$watch"; kill -CONT "$watch"; wait "$watch"; watch=; } ;;
    end)
      unwatch
      set -- /proc/[0-9]*
      kill -KILL -1 2>/dev/null
      echo "$rest $(($# - 2 - extra)) end" ;;
  esac
done
exit 9
)
[ $? -eq 9 ] && exit 0
done"""
_ANSWER_SEC = 5.0
# how much later than from outside a command is ended from inside
_LATER_SEC = 5
# an agent may write to the keeper's output too
_MOST_BACKLOG = 1 << 20


async def attached(engine: Engine, container: str) -> Keeper:
    """The line to a container's keeper: before it starts, or later. Raises EngineError."""
    return Keeper(await engine.connect(f"containers/{container}/attach?stream=1&stdin=1&stdout=1"))


class Keeper:
    """The line to the keeper. One question at a time."""

    def __init__(self, line: Hijacked) -> None:
        self._line = line
        self._turn = asyncio.Lock()

    async def watch(self, deadline_sec: float) -> None:
        """Have everything inside ended a little after the deadline, also where nobody outside can. Raises Refusal."""
        await self._say(f"watch {math.ceil(deadline_sec) + _LATER_SEC}")

    async def unwatch(self) -> None:
        """Take that back. Raises Refusal (SANDBOX_LOST)."""
        await self._say("unwatch")

    async def end(self) -> int | None:
        """End every process inside but the keeper; how many there were, or None where it does not answer in time.

        Raises:
            Refusal: SANDBOX_LOST when it is gone.
        """
        async with self._turn:
            nonce = secrets.token_hex(8)
            await self._send(f"end {nonce}")
            try:
                async with asyncio.timeout(_ANSWER_SEC):
                    return await self._answer(nonce.encode())
            except TimeoutError:
                return None

    async def close(self) -> None:
        """Hang up: the container ends."""
        await self._line.close()

    async def _say(self, words: str) -> None:
        async with self._turn:
            await self._send(words)

    async def _send(self, words: str) -> None:
        try:
            async with asyncio.timeout(_ANSWER_SEC):
                await self._line.write(f"{words}\n".encode("ascii"))
        except OSError as fault:
            raise _gone() from fault

    async def _answer(self, nonce: bytes) -> int:
        said = b""
        while True:
            try:
                frame = await self._line.read()
            except TimeoutError:
                raise
            except OSError as fault:
                raise _gone() from fault
            if frame is None:
                raise _gone()
            said = said[-_MOST_BACKLOG:] + frame.data
            for line in said.split(b"\n")[:-1]:
                words = line.split()
                if len(words) == 3 and words[0] == nonce and words[2] == b"end":
                    return max(0, int(words[1])) if words[1].isdigit() else 0


def _gone() -> Refusal:
    return Refusal(Reason.SANDBOX_LOST, "the sandbox's container ended, or its engine did")
