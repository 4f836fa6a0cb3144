"""What takes its time before any attempt, such as the building of an image, is shown for as long as it does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from proctor.report.progress import Progress, Wait

# an image that is here already is found in less: that is nothing to tell
SOON_SEC = 1.0
EVERY_SEC = 30.0


@contextlib.asynccontextmanager
async def shown(
    progress: Progress, doing: str, *, soon_sec: float = SOON_SEC, every_sec: float = EVERY_SEC
) -> AsyncIterator[None]:
    """While it is entered, progress shows what is done, once that takes longer than `soon_sec`."""
    waits: list[Wait] = []

    async def tell() -> None:
        await asyncio.sleep(soon_sec)
        waits.append(progress.waits(doing))
        while True:
            await asyncio.sleep(every_sec)
            progress.still(waits[0])

    teller = asyncio.create_task(tell())
    try:
        yield
    finally:
        teller.cancel()
        await asyncio.gather(teller, return_exceptions=True)
        for wait in waits:
            progress.waited(wait)
