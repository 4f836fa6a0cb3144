"""A limit on what a container writes, where its engine holds none: looked at from outside while a command runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from proctor.core.waiting import in_thread
from proctor.sandbox.linux.watch import Watch

T = TypeVar("T")

HOW = "a watcher, by walking what was written"


class StorageWatch:
    """Looks at the folders of this machine in which a container's files and those of its volumes lie."""

    def __init__(self, folders: tuple[str, ...], limit_bytes: int) -> None:
        self._folders, self._limit_bytes = folders, limit_bytes

    @classmethod
    def of(cls, seen: Mapping[str, Any], limit_bytes: int) -> StorageWatch | None:
        """That of a container as the engine describes it; None where its files cannot be seen from here."""
        upper = ((seen.get("GraphDriver") or {}).get("Data") or {}).get("UpperDir")
        volumes = [each["Source"] for each in seen.get("Mounts") or () if each.get("Type") == "volume"]
        folders = (upper, *volumes)
        if not all(isinstance(folder, str) and os.access(folder, os.R_OK | os.X_OK) for folder in folders):
            return None
        return cls(folders, limit_bytes)

    async def beside(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What the work comes to; None once more is written than may be, and then it is cancelled."""
        working = asyncio.create_task(work)
        try:
            with contextlib.ExitStack() as stack:
                watch = Watch(None, self._limit_bytes, None, tuple(_opened(folder, stack) for folder in self._folders))
                while not working.done():
                    if await in_thread(watch.over) is not None:
                        return None
                    await asyncio.wait({working}, timeout=watch.interval_sec)
            return working.result()
        except FileNotFoundError:
            # the container is gone, as the work is about to say
            return await working
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


def _opened(folder: str, stack: contextlib.ExitStack) -> int:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    stack.callback(os.close, fd)
    return fd
