"""Who runs in a container, as it is seen from outside: nobody inside can answer for it."""

from __future__ import annotations

from pathlib import Path

from proctor.core.waiting import in_thread
from proctor.sandbox.docker.engine import Engine

_GROUPS = Path("/sys/fs/cgroup")
_TOP_SEC = 10.0


async def processes(engine: Engine, container: str, pid: int) -> int:
    """How many processes run in it, PID 1 among them; those that are dead and not waited for do not.

    `pid` is its PID 1 as the engine's machine counts. Raises EngineError.
    """
    seen = await in_thread(_in_group, container, pid)
    if seen is not None:
        return seen
    # not our machine, or not for us to see: the engine looks, which takes a hundred times as long
    path = f"containers/{container}/top"
    said = await engine.call("GET", path, params={"ps_args": "-o pid,stat"}, deadline_sec=_TOP_SEC)
    return sum(not row[1].startswith(("Z", "X")) for row in said["Processes"])


def _in_group(container: str, pid: int) -> int | None:
    try:
        for line in Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if container in path and (not controllers or "pids" in controllers.split(",")):
                group = _GROUPS / ("pids" if controllers else "") / path.lstrip("/")
                return len((group / "cgroup.procs").read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return None
    return None
