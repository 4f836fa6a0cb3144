"""Images built from a folder, by the engine's own builder; each is built once and known by its key."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import finish, in_thread
from proctor.sandbox.base import Image, ImageFacts
from proctor.sandbox.docker import context, images, owner, pruning
from proctor.sandbox.docker.engine import Engine, EngineError, unavailable

KEY = "proctor.key"
_REPOSITORY = "proctor-build"
_CHUNK = 1 << 20
_IGNORE = ".dockerignore"


class Builds:
    """The builds of one run. They share layers, and so those that came to no image go when the last one ends."""

    def __init__(self) -> None:
        self._at_work = 0
        self._clearing = asyncio.Lock()

    async def built(self, engine: Engine, image: Image, mark: str) -> ImageFacts:
        """See that what the folder builds is here. Of a build that fails or is cancelled nothing stays.

        `mark` is what the run's builds carry.

        Raises:
            Refusal: IMAGE_MOVED for a base, IMAGE_BUILD_FAILED with the end of the log, DOCKER_UNAVAILABLE;
                FILE_UNREADABLE or PATH_UNSAFE for the folder.
        """
        if image.context is None or image.key is None or not image.stages:
            raise Refusal(Reason.IMAGE_BUILD_FAILED, "a build needs a folder, stages and a key", observed=image.key)
        tag = f"{_REPOSITORY}:{image.key[:32]}"
        try:
            seen = await images.inspect(engine, tag)
            if seen is not None and ((seen.get("Config") or {}).get("Labels") or {}).get(KEY) == image.key:
                return images.facts(seen)
            await _check_bases(engine, image)
            async with self._one(engine, mark):
                await _build(engine, image, image.context, tag, mark)
            seen = await images.inspect(engine, tag)
        except EngineError as fault:
            raise unavailable(fault) from fault
        if seen is None:
            raise Refusal(Reason.IMAGE_BUILD_FAILED, "the image is gone right after it was built", observed=tag)
        return images.facts(seen)

    @contextlib.asynccontextmanager
    async def _one(self, engine: Engine, mark: str) -> AsyncIterator[None]:
        async with self._clearing:
            self._at_work += 1
        try:
            yield
        finally:
            self._at_work -= 1
            await finish(self._clear(engine, mark))

    async def _clear(self, engine: Engine, mark: str) -> None:
        def goes(said: Mapping[str, str]) -> bool:
            # a result that lost its name to a build of the same by another run is in use all the same
            return said[owner.BUILDING] == mark and KEY not in said

        async with self._clearing:
            if self._at_work == 0:
                # an engine that does not answer now: `prune` finds them
                with contextlib.suppress(EngineError):
                    await pruning.clear_builds(engine, goes)


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


async def _build(engine: Engine, image: Image, folder: Path, tag: str, mark: str) -> None:
    label = f"LABEL {owner.BUILDING}={mark}"
    # a file of its own, which no COPY sees: what is inside an image tells nothing of who made it
    file = f".proctor-{tag.rpartition(':')[2]}"
    instead = await in_thread(_instead, image, folder, file, label)
    params = {
        "dockerfile": file,
        "t": tag,
        "rm": "1",
        "forcerm": "1",
        "labels": json.dumps({KEY: image.key}),
    }
    log = images.Log()
    body = _Body(folder, instead)
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
                if label.encode() not in line:
                    log.add(line)
    except EngineError as fault:
        if body.fault is not None:
            raise body.fault from fault
        raise _failed(image, log, fault.text) from fault
    if log.error is not None:
        raise _failed(image, log, log.error)


def _instead(image: Image, folder: Path, file: str, label: str) -> dict[str, bytes]:
    """The Dockerfile with the label in each of its stages, and ignored. Raises Refusal (FILE_UNREADABLE)."""
    lines = image.dockerfile.split("\n")
    for last in sorted(image.stages, reverse=True):
        lines.insert(last, label)
    ignore = folder / _IGNORE
    try:
        ignored = ignore.read_bytes() if ignore.exists() else _IGNORE.encode()
    except OSError as fault:
        raise Refusal(
            Reason.FILE_UNREADABLE, f"a file of a build cannot be read: {fault}", path=str(fault.filename)
        ) from fault
    return {file: "\n".join(lines).encode(), _IGNORE: ignored + f"\n{file}\n".encode()}


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

    def __init__(self, folder: Path, instead: Mapping[str, bytes]) -> None:
        self._pieces = context.archive(folder, instead)
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
