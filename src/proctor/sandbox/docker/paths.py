"""Paths inside, and what the engine says of them."""

from __future__ import annotations

import base64
import json
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from proctor.sandbox.docker.engine import Engine, EngineError
from proctor.sandbox.docker.tarstream import Kind

_STAT = "X-Docker-Container-Path-Stat"
# what the engine's files show below is not what stands there inside
KERNEL = ("/proc", "/sys", "/dev")
# how Go writes what a file is
_GO_FOLDER, _GO_LINK, _GO_SPECIAL = 1 << 31, 1 << 27, (1 << 26) | (1 << 25) | (1 << 24) | (1 << 21) | (1 << 19)


@dataclass(frozen=True)
class Seen:
    """What stands at a path itself."""

    kind: Kind
    size: int
    mode: int
    mtime: str
    to: str


def within(path: str, folder: str) -> bool:
    """Whether a plain path is that folder or lies below it, by its words alone."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def parents(path: str) -> list[str]:
    """The folders on the way to a plain path, without `/`."""
    return [str(parent) for parent in reversed(PurePosixPath(path).parents)][1:]


async def look(engine: Engine, container: str, path: str) -> Seen | None:
    """What stands at a path, itself and not what it links to; None for nothing. Raises EngineError."""
    try:
        return await stand(engine, container, path)
    except EngineError as fault:
        if fault.status is None:
            raise
        return None  # something on the way is no folder, or a link without end


async def stand(engine: Engine, container: str, path: str) -> Seen | None:
    """The same, where a way that cannot be gone is an error. Raises EngineError."""
    headers = await engine.head(f"containers/{container}/archive", {"path": path})
    return None if headers is None else _seen(headers)


def _seen(headers: Mapping[str, str]) -> Seen:
    said = json.loads(base64.b64decode(headers[_STAT]))
    mode = said["mode"]
    if mode & _GO_FOLDER:
        kind = Kind.FOLDER
    elif mode & _GO_LINK:
        kind = Kind.LINK
    else:
        kind = Kind.SPECIAL if mode & _GO_SPECIAL else Kind.FILE
    return Seen(kind, said["size"], stat.S_IMODE(mode & 0o777), said["mtime"], said["linkTarget"])
