"""The gate in front of all that starts: shut by each required anchor that lacks what it should have."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from proctor.evidence.anchors.places import AnchorKind


class Gate:
    """Whether something new may start: open once each required anchor has what it should."""

    def __init__(self, shut: Iterable[AnchorKind]) -> None:
        self._shut = set(shut)
        self._opened = asyncio.Event()
        self._look()

    @property
    def is_open(self) -> bool:
        """Whether it is, now."""
        return not self._shut

    def waits_for(self, anchor: AnchorKind) -> bool:
        """Whether that anchor keeps it shut."""
        return anchor in self._shut

    async def passed(self) -> None:
        """Wait until it is open. It is when this returns, until the caller waits for something else."""
        while self._shut:
            await self._opened.wait()

    def shut(self, anchor: AnchorKind) -> None:
        """That anchor lacks something."""
        self._shut.add(anchor)
        self._look()

    def open(self, anchor: AnchorKind) -> None:
        """That anchor has what it should."""
        self._shut.discard(anchor)
        self._look()

    def _look(self) -> None:
        if self._shut:
            self._opened.clear()
        else:
            self._opened.set()
