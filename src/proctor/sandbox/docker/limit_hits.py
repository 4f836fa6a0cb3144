"""Which limit a command ran into, as far as the engine saw it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from proctor.sandbox.base import LimitInForce
from proctor.sandbox.docker.commands import How
from proctor.sandbox.docker.engine import Engine

_LOOK_SEC = 10.0


async def limit_hit(
    engine: Engine, container: str, limits: Sequence[LimitInForce], how: How, since: float
) -> str | None:
    """ "memory" or "pids" for a command that failed or was still running, else None. `since` is when it began, in s.

    Raises EngineError.
    """
    held = {limit.name for limit in limits if limit.enforced is not None}
    if how.code == 0 or (how.pid == 0 and not how.timed_out):
        return None
    if "memory" in held and await _out_of_memory(engine, container, since):
        return "memory"
    if "pids" in held:
        said = await engine.call(
            "GET",
            f"containers/{container}/stats",
            params={"stream": "0", "one-shot": "1"},
            deadline_sec=_LOOK_SEC,
        )
        pids = (said or {}).get("pids_stats") or {}
        if pids.get("limit") and pids.get("current", 0) >= pids["limit"]:
            return "pids"
    return None


async def _out_of_memory(engine: Engine, container: str, since: float) -> bool:
    asked = {"container": [container], "event": ["oom"]}
    async with engine.answer(
        "GET",
        "events",
        params={"since": f"{since:.9f}", "until": f"{time.time():.9f}", "filters": json.dumps(asked)},
        deadline_sec=_LOOK_SEC,
    ) as response:
        return bool(await response.content.read(1))
