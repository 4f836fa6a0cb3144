"""Images built from a folder, by the engine's own builder; each is built once and known by its key."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Image, ImageFacts
from proctor.sandbox.docker import context, images
from proctor.sandbox.docker.engine import Engine, EngineError, unavailable

KEY = "proctor.key"
_REPOSITORY = "proctor-build"
_CHUNK = 1 << 20


async def built(engine: Engine, image: Image) -> ImageFacts:
    """See that what the folder builds is here. Of a build that fails or is cancelled no container stays.

    Raises:
        Refusal: IMAGE_MOVED for a base, IMAGE_BUILD_FAILED with the end of the log, DOCKER_UNAVAILABLE;
            FILE_UNREADABLE or PATH_UNSAFE for the folder.
    """
    if image.context is None or image.key is None:
        raise Refusal(Reason.IMAGE_BUILD_FAILED, "a build needs a folder and a key", observed=image.reference)
    tag = f"{_REPOSITORY}:{image.key[:32]}"
    try:
        seen = await images.inspect(engine, tag)
        if seen is not None and ((seen.get("Config") or {}).get("Labels") or {}).get(KEY) == image.key:
            return images.facts(seen)
        await _check_bases(engine, image)
        await _build(engine, image, image.context, tag)
        seen = await images.inspect(engine, tag)
    except EngineError as fault:
        raise unavailable(fault) from fault
    if seen is None:
        raise Refusal(Reason.IMAGE_BUILD_FAILED, "the image is gone right after it was built", observed=tag)
    return images.facts(seen)


async def _check_bases(engine: Engine, image: Image) -> None:
    """The builder looks names up by itself: what they stand for now must be what the run began with."""
    for name, wanted in image.base_ids.items():
        seen = await images.inspect(engine, name)
        if seen is None or seen["Id"] != wanted:
            raise Refusal(
                Reason.IMAGE_MOVED,
                f"the base image {name} is another by now, or gone",
                observed=None if seen is None else seen["Id"],
                required=wanted,
            )


async def _build(engine: Engine, image: Image, folder: Path, tag: str) -> None:
    params = {
        "t": tag,
        "rm": "1",
        "forcerm": "1",
        "labels": json.dumps({KEY: image.key}),
    }
    log = images.Log()
    body = _Body(folder)
    try:
        async with engine.answer(
            "POST",
            "build",
            params=params,
            data=body.chunks(),
            content_type="application/x-tar",
            deadline_sec=image.timeout_sec,
        ) as response:
            async for line in response.content:
                log.add(line)
    except EngineError as fault:
        if body.fault is not None:
            raise body.fault from fault
        raise _failed(image, log, fault.text) from fault
    if log.error is not None:
        raise _failed(image, log, log.error)


def _failed(image: Image, log: images.Log, why: str) -> Refusal:
    end = log.tail.decode("utf-8", "replace")
    return Refusal(
        Reason.IMAGE_BUILD_FAILED,
        f"the image could not be built: {why[-500:]}\n{end}",
        path=str(image.context),
        observed=end,
        required=f"within {image.timeout_sec:g} s",
    )


class _Body:
    """The context's bytes; `fault` is why they broke off."""

    def __init__(self, folder: Path) -> None:
        self._pieces = context.archive(folder)
        self.fault: Refusal | None = None

    async def chunks(self) -> AsyncIterator[bytes]:
        """All of them, once. Raises Refusal."""
        try:
            while chunk := await asyncio.to_thread(self._chunk):
                yield chunk
        except Refusal as refusal:
            self.fault = refusal
            raise

    def _chunk(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while size < _CHUNK:
            piece = next(self._pieces, b"")
            if not piece:
                break
            parts.append(piece)
            size += len(piece)
        return b"".join(parts)
