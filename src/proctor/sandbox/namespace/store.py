"""Memory of our own for layers, where no folder takes them: in a container every folder lies on an overlay itself."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from proctor.sandbox.base import Tier
from proctor.sandbox.namespace import cgroups, skeleton
from proctor.sandbox.namespace.channel import launch
from proctor.sandbox.namespace.own import OwnFolder

_ANSWER_SEC = 10.0
_PART = 2


class Store:
    """A file system in memory, and the launcher in whose mount namespace it lies; both end together.

    `folder` is where this process finds it. `size` bytes, half of the memory that was free, bound all worlds together.

    Raises:
        OSError: it cannot be mounted, or takes no layers: user attributes in memory need a kernel of 6.6.
        Refusal: SANDBOX_LOST when its launcher does not answer.
    """

    def __init__(self, tier: Tier) -> None:
        self._own = OwnFolder(Path(tempfile.gettempdir()))
        point = self._own.path / "m"
        point.mkdir()
        self.size = _free_bytes() // _PART
        self.launcher = launch(str(point), str(self.size), "many" if tier is Tier.PRIVILEGED else "one")
        answer = self.launcher.call_now({"op": "mounted"}, _ANSWER_SEC)
        if answer["errno"]:
            raise OSError(answer["errno"], answer["text"])
        self._view = f"/proc/{answer['pid']}/root"
        self.folder = Path(f"{self._view}{point}")
        skeleton.try_layer(self.folder)

    def inside(self, path: Path) -> str:
        """A path as the launcher has it."""
        return str(path).removeprefix(self._view)


def _free_bytes() -> int:
    """Memory that can be had now: of the machine, and of the control group that we are in."""
    said = re.search(r"^MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"), re.MULTILINE)
    free = int(said[1]) * 1024 if said else 2**30
    limit = cgroups.own_memory_limit()
    return free if limit is None else min(free, limit)
