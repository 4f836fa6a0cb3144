"""Folders of an image that are volumes: a commit leaves them out, so they are kept beside it, as archives."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from proctor.core.files import NO_SPACE
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.docker.engine import Engine, EngineError
from proctor.sandbox.docker.tarstream import PIECE

_COPY_SEC = 600.0
# an archive has no holes: a sparse file of an agent would fill the host's disk
_MOST_BYTES = 16 << 30


async def save(engine: Engine, container: str, volumes: Sequence[str], folder: Path) -> dict[str, str]:
    """Keep each volume in a file of `folder`; their names by path inside.

    Raises:
        Refusal: CAPTURE_FAILED, also for more than 16 GiB; DISK_FULL.
    """
    saved: dict[str, str] = {}
    left = _MOST_BYTES
    for number, path in enumerate(volumes):
        name = f"v{number}.tar"
        try:
            async with engine.answer(
                "GET", f"containers/{container}/archive", params={"path": path}, deadline_sec=_COPY_SEC
            ) as response:
                with (folder / name).open("xb") as file:
                    while data := await response.content.read(PIECE):
                        left -= len(data)
                        if left < 0:
                            raise Refusal(
                                Reason.CAPTURE_FAILED,
                                "the image's volumes are too large to be kept",
                                path=path,
                                required=f"at most {_MOST_BYTES:,} bytes",
                            )
                        file.write(data)
        except EngineError as fault:
            raise Refusal(
                Reason.CAPTURE_FAILED, f"a volume could not be kept: {fault.text}", path=path, observed=fault.status
            ) from fault
        except OSError as fault:
            full = fault.errno in NO_SPACE
            reason = Reason.DISK_FULL if full else Reason.CAPTURE_FAILED
            raise Refusal(reason, f"a volume could not be kept: {fault}", path=path) from fault
        saved[path] = name
    return saved


async def restore(engine: Engine, container: str, saved: Mapping[str, str], folder: Path) -> None:
    """Fill empty volumes again. Raises Refusal (CAPTURE_FAILED)."""
    for path, name in saved.items():
        try:
            async with engine.answer(
                "PUT",
                f"containers/{container}/archive",
                params={"path": str(PurePosixPath(path).parent)},
                data=_chunks(folder / name),
                content_type="application/x-tar",
                deadline_sec=_COPY_SEC,
            ):
                pass
        except EngineError as fault:
            raise Refusal(
                Reason.CAPTURE_FAILED, f"a volume could not be restored: {fault.text}", path=path, observed=fault.status
            ) from fault


async def _chunks(file: Path) -> AsyncIterator[bytes]:
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while data := os.read(fd, PIECE):
            yield data
    finally:
        os.close(fd)
