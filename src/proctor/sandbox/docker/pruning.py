"""What is found by its labels: a running world's container, and what dead runs left."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from proctor.core.waiting import in_thread
from proctor.sandbox.base import Snapshot
from proctor.sandbox.docker import owner
from proctor.sandbox.docker.engine import Engine, EngineError
from proctor.sandbox.linux import tree

# an image that somebody asked to keep has a name of this kind
KEPT = "proctor-kept"
_NAME_CHARS = 32
_CONFLICT = 409
_IN_USE_SEC = 5.0
_REMOVE_SEC = 20.0


async def release(engine: Engine, snapshot: Snapshot) -> None:
    """Remove a captured world's image and its volumes. Raises EngineError.

    What another image or a container still lies on stays, with its labels, for `prune`.
    """
    await _remove_image(engine, snapshot.facts["image"])
    home = snapshot.facts["home"]
    if home is not None:
        await in_thread(tree.remove, Path(home))


async def keep(engine: Engine, snapshot: Snapshot) -> None:
    """Name a captured world's image, so that it is passed over. Raises EngineError."""
    image = snapshot.facts["image"]
    tag = image.removeprefix("sha256:")[:_NAME_CHARS]
    await engine.call("POST", f"images/{image}/tag", params={"repo": KEPT, "tag": tag})


async def running_below(engine: Engine, scratch: Path) -> str | None:
    """A container that runs for a world whose scratch folder is that one or lies below it. Raises EngineError."""
    below = scratch.resolve()
    for row in await _labelled(engine, "containers/json", {"status": ["running"]}):
        said = row["Labels"].get(owner.SCRATCH)
        if said is not None and Path(said).is_relative_to(below):
            return str(row["Id"])
    return None


async def prune(engine: Engine, scratch_root: Path) -> list[str]:
    """Remove what processes that are dead left, of this run and of others; returns what. Raises EngineError."""
    removed = []
    for row in await _labelled(engine, "containers/json", {}, all="1"):
        if owner.is_left(row["Labels"], scratch_root) and await _remove_container(engine, row["Id"]):
            removed.append(f"container {row['Id'][:12]}")
    for row in await _labelled(engine, "images/json", {}):
        kept = any(tag.startswith(f"{KEPT}:") for tag in row.get("RepoTags") or ())
        if not kept and owner.is_left(row["Labels"], scratch_root):
            with contextlib.suppress(EngineError):
                if await _remove_image(engine, row["Id"]):
                    removed.append(f"image {row['Id'][7:19]}")
    return removed + await clear_builds(engine, lambda said: owner.is_left_of_build(said, scratch_root))


async def clear_builds(engine: Engine, goes: Callable[[Mapping[str, str]], bool]) -> list[str]:
    """Remove layers of builds that belong to no image and whose labels say that they may go; returns which.

    Raises EngineError.
    """
    tried: set[str] = set()
    removed: list[str] = []
    while True:
        found = await _labelled(engine, "images/json", {"dangling": ["true"]}, label=owner.BUILDING)
        # captured worlds have the labels of their image too, and an owner of their own
        left = [row for row in found if owner.RUN not in row["Labels"] and goes(row["Labels"])]
        new = [row["Id"] for row in left if row["Id"] not in tried]
        if not new:
            return removed
        for image in new:
            tried.add(image)
            with contextlib.suppress(EngineError):
                if await _remove_image(engine, image, force="0"):
                    removed.append(f"image {image[7:19]}")


async def _labelled(
    engine: Engine, path: str, filters: Mapping[str, list[str]], *, label: str = owner.RUN, **params: str
) -> list[dict[str, Any]]:
    asked = json.dumps({"label": [label], **filters})
    rows = await engine.call("GET", path, params={"filters": asked, **params})
    return [row for row in rows or () if row.get("Labels")]


async def _remove_container(engine: Engine, container: str) -> bool:
    """Whether this removed it. Where something else does, that is waited for: its image is in use until then."""
    path = f"containers/{container}"
    try:
        await engine.call("DELETE", path, params={"force": "1", "v": "1"})
    except EngineError:
        with contextlib.suppress(EngineError):
            await engine.call("POST", f"{path}/wait", params={"condition": "removed"}, deadline_sec=_REMOVE_SEC)
        return False
    return True


async def _remove_image(engine: Engine, image: str, *, force: str = "1") -> bool:
    """Remove an image, if need be once the last container of it is gone; whether it is. Raises EngineError.

    What it lies on stays: an image of somebody's may have lost its name meanwhile.
    """
    deadline = time.monotonic() + _IN_USE_SEC
    while True:
        try:
            await engine.call("DELETE", f"images/{image}", params={"force": force, "noprune": "1"})
        except EngineError as fault:
            if fault.status != _CONFLICT:
                if fault.gone:
                    return True
                raise
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.05)
        else:
            return True
