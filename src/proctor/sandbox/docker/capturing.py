"""Keeping a world: its container committed to an image, its volumes beside it, and what changed in it since a mark."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import in_thread
from proctor.sandbox.base import Snapshot
from proctor.sandbox.changes import Survey, told
from proctor.sandbox.docker import changes, volumes
from proctor.sandbox.docker.engine import Engine, EngineError, lost
from proctor.sandbox.docker.probe import KIND
from proctor.sandbox.docker.pruning import release
from proctor.sandbox.linux import tree

_COMMIT_SEC = 600.0
# what a commit leaves out, and a fork begins without
_LEFT_OUT = ("/dev/shm", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf")


class Capturing:
    """What one container was like when it was marked, and its capture."""

    def __init__(self, engine: Engine, container: str, seen: Mapping[str, Any]) -> None:
        self._engine = engine
        self._container = container
        self._uppers = changes.Uppers.of(seen)
        self._apart: tuple[str, ...] = ()
        self._marked: Survey | None = None
        self._taken: Snapshot | None = None

    async def mark(self, apart: Sequence[str]) -> None:
        """Remember it as it stands. Raises Refusal (SANDBOX_LOST)."""
        self._apart = tuple(apart)
        try:
            self._marked = await self._survey()
        except (OSError, EngineError) as fault:
            raise lost(EngineError(None, f"its files cannot be looked at: {fault}")) from fault

    async def take(
        self, labels: Mapping[str, str], volume_paths: Sequence[str], scratch: Path, more: Mapping[str, Any]
    ) -> Snapshot:
        """Keep it; nothing inside runs any more. Raises Refusal (CAPTURE_FAILED, DISK_FULL)."""
        home = scratch / secrets.token_hex(4) if volume_paths else None
        saved: dict[str, str] = {}
        if home is not None:
            home.mkdir(parents=True)
        try:
            if home is not None:
                saved = await volumes.save(self._engine, self._container, volume_paths, home)
            await self._check_holes()
            survey = asyncio.ensure_future(self._survey()) if self._marked is not None else None
            made = await self._engine.call(
                "POST",
                "commit",
                params={"container": self._container, "pause": "0"},
                body={"Labels": dict(labels)},
                deadline_sec=_COMMIT_SEC,
            )
            now = await survey if survey is not None else None
        except BaseException as fault:
            if home is not None:
                await in_thread(tree.remove, home)
            if isinstance(fault, EngineError | OSError):
                raise Refusal(Reason.CAPTURE_FAILED, f"the container could not be kept: {fault}") from fault
            raise
        changed = told(self._marked, lambda: now if now is not None else Survey({}, frozenset(), frozenset(), True))
        if volume_paths and changed.get("changed") is not None:
            changed["changed_at_least"] = True  # what is in volumes is not compared
        facts = {
            "image": made["Id"],
            "home": None if home is None else str(home),
            "volumes": saved,
            "left_out": list(_LEFT_OUT),
            **more,
            **changed,
        }
        self._taken = Snapshot(KIND, None, (), facts)
        return self._taken

    async def undo(self) -> None:
        """Remove what was kept, if anything was: nobody took it."""
        if self._taken is None:
            return
        with contextlib.suppress(EngineError):  # its labels say whose it is: `prune` tries again
            async with Engine(self._engine.where) as engine:
                await release(engine, self._taken)

    async def _check_holes(self) -> None:
        holes = None if self._uppers is None else await in_thread(self._uppers.holes_too_large)
        if holes is not None:
            raise Refusal(
                Reason.CAPTURE_FAILED,
                "files with holes are too large to be kept: in the copy they would be full",
                observed={"bytes": holes},
            )

    async def _survey(self) -> Survey:
        if self._uppers is not None:
            return await in_thread(self._uppers.survey, self._apart)
        return await changes.listed(self._engine, self._container, self._apart)
