"""Prebuilt images: what stands under a name here or in its registry, and pulling by digest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.sandboxes import Pull
from proctor.sandbox.base import Image, ImageFacts
from proctor.sandbox.docker.engine import Engine, EngineError, named, unavailable

_REGISTRY_SEC = 60.0
_TAIL_BYTES = 2_000


async def inspect(engine: Engine, name: str) -> dict[str, Any] | None:
    """An image that is here, as the engine describes it. Raises EngineError."""
    try:
        seen: dict[str, Any] = await engine.call("GET", f"images/{named(name)}/json")
    except EngineError as fault:
        # 400 is a name that no image can have
        if fault.gone or fault.status == 400:
            return None
        raise
    return seen


def facts(seen: Mapping[str, Any]) -> ImageFacts:
    """What an image says of worlds that are made from it."""
    config = seen.get("Config") or {}
    env = dict(entry.partition("=")[::2] for entry in config.get("Env") or ())
    return ImageFacts(
        id=seen["Id"],
        workdir=config.get("WorkingDir") or "/",
        user=config.get("User") or None,
        env=env,
        volumes=tuple(sorted(config.get("Volumes") or ())),
        platform=f"{seen.get('Os')}/{seen.get('Architecture')}",
        digests=tuple(sorted(seen.get("RepoDigests") or ())),
    )


async def resolve(engine: Engine, name: str, pull: Pull) -> Image | Refusal:
    """What a name stands for, read-only: an image that is here, or one to be pulled by digest.

    Raises EngineError.
    """
    seen = await inspect(engine, name)
    if pull == Pull.NEVER or (pull == Pull.MISSING and seen is not None) or name.startswith("sha256:"):
        if seen is None:
            return Refusal(Reason.IMAGE_MISSING, "the image is not on this machine", observed=name)
        return Image(reference=name, id=seen["Id"])
    try:
        said = await engine.call("GET", f"distribution/{named(name)}/json", deadline_sec=_REGISTRY_SEC)
    except EngineError as fault:
        return Refusal(
            Reason.IMAGE_MISSING,
            f"the image's registry does not give it: {fault.text}",
            observed={"image": name, "status": fault.status, "here": None if seen is None else seen["Id"]},
        )
    digest = said["Descriptor"]["digest"]
    if seen is not None and any(known.endswith(f"@{digest}") for known in seen.get("RepoDigests") or ()):
        return Image(reference=name, id=seen["Id"])
    return Image(reference=name, pull=f"{repository(name)}@{digest}")


def repository(name: str) -> str:
    """An image's name without tag and digest."""
    bare = name.partition("@")[0]
    head, colon, tag = bare.rpartition(":")
    return head if colon and "/" not in tag else bare


async def present(engine: Engine, image: Image) -> ImageFacts:
    """See that a prebuilt image is here, and pull it where it is not.

    Raises:
        Refusal: IMAGE_MISSING; IMAGE_MOVED where its name stands for another by now; DOCKER_UNAVAILABLE.
    """
    wanted = image.id or image.pull
    if wanted is None:
        raise Refusal(Reason.IMAGE_MISSING, "the image has neither id nor digest", observed=image.reference)
    try:
        seen = await inspect(engine, wanted)
        if seen is None and image.pull is not None:
            await _pull(engine, image.pull, image.timeout_sec)
            seen = await inspect(engine, image.pull)
        if seen is not None:
            return facts(seen)
        other = await inspect(engine, image.reference) if image.reference is not None else None
    except EngineError as fault:
        raise unavailable(fault) from fault
    moved = other is not None
    raise Refusal(
        Reason.IMAGE_MOVED if moved else Reason.IMAGE_MISSING,
        f"{image.reference or wanted} is another image by now" if moved else "the image is not on this machine",
        observed=other["Id"] if other is not None else None,
        required=wanted,
    )


async def _pull(engine: Engine, name: str, deadline_sec: float) -> None:
    try:
        async with engine.answer(
            "POST", "images/create", params={"fromImage": name}, deadline_sec=deadline_sec
        ) as response:
            log = Log()
            async for line in response.content:
                log.add(line)
    except EngineError as fault:
        if fault.status is None:
            raise
        raise Refusal(Reason.IMAGE_MISSING, f"the image cannot be pulled: {fault.text}", observed=name) from fault
    if log.error is not None:
        raise Refusal(Reason.IMAGE_MISSING, f"the image cannot be pulled: {log.error}", observed=name)


class Log:
    """What the engine says while it pulls or builds: the end of it, and its error."""

    def __init__(self) -> None:
        self.tail = b""
        self.error: str | None = None

    def add(self, line: bytes) -> None:
        """One line of JSON."""
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(said, dict):
            return
        for key in ("stream", "error"):
            text = said.get(key)
            if isinstance(text, str):
                self.tail = (self.tail + text.encode("utf-8", "replace"))[-_TAIL_BYTES:]
        if isinstance(said.get("error"), str):
            self.error = said["error"][-_TAIL_BYTES:]
