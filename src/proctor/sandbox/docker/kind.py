"""The docker kind: probing, images, and starting, forking, releasing and pruning worlds that are containers."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.sandboxes import Pull
from proctor.core.tokens import Admitted, Probe
from proctor.sandbox.base import Availability, Image, ImageFacts, SandboxSpec, Snapshot
from proctor.sandbox.docker import building, images, owner, pruning
from proctor.sandbox.docker.config import NETWORKS
from proctor.sandbox.docker.engine import Engine, EngineError, now, unavailable
from proctor.sandbox.docker.probe import KIND, Found, look, none
from proctor.sandbox.docker.starting import Start, start
from proctor.sandbox.docker.world import DockerSandbox

A = TypeVar("A")
T = TypeVar("T")

_PROBE_SEC = 20.0


class DockerKind:
    """Sandboxes that are containers of a Docker engine, made from images."""

    name = KIND

    def __init__(self) -> None:
        self._found: Found | None = None
        self._turns: dict[str, asyncio.Lock] = {}
        self._builds = building.Builds()
        self._leaving: set[asyncio.Task[None]] = set()

    def probe(self, probe: Probe) -> Availability:
        """What the engine gives, as it says itself."""
        try:
            return self._look(probe.deadline_sec).availability()
        except Refusal as refusal:
            return none(refusal)

    def images(self, names: Sequence[str], probe: Probe, *, pull: Pull) -> Mapping[str, Image | Refusal]:
        """What images are, by their names: here, or to be pulled by digest. Raises Refusal (DOCKER_UNAVAILABLE)."""
        found = self._look(probe.deadline_sec)

        async def resolve() -> dict[str, Image | Refusal]:
            async with Engine(found.where) as engine:
                wanted = list(dict.fromkeys(names))
                found_images = await asyncio.gather(*(images.resolve(engine, name, pull) for name in wanted))
                return dict(zip(wanted, found_images, strict=True))

        try:
            return now(resolve())
        except EngineError as fault:
            raise unavailable(fault) from fault

    async def provide(self, image: Image, admitted: Admitted) -> ImageFacts:
        """See that an image is here: pulled or built where it is not. Once for each, whoever asks.

        Raises:
            Refusal: IMAGE_MISSING, IMAGE_MOVED, IMAGE_BUILD_FAILED, BUILD_UNSUPPORTED, DOCKER_UNAVAILABLE.
        """
        name = image.key or image.pull or image.id or image.reference or ""
        async with self._turns.setdefault(name, asyncio.Lock()), self._engine() as engine:
            if image.context is not None:
                return await self._builds.built(engine, image, owner.mark(admitted))
            return await images.present(engine, image)

    async def start(self, spec: SandboxSpec, admitted: Admitted) -> DockerSandbox:
        """Start a fresh world from the spec's image.

        Raises:
            Refusal: DOCKER_UNAVAILABLE, IMAGE_MISSING, NETWORK_UNAVAILABLE, LIMIT_UNENFORCEABLE, BUNDLE_UNUSABLE,
                SANDBOX_START_FAILED.
        """
        if spec.image is None:
            raise Refusal(Reason.SANDBOX_START_FAILED, "a docker sandbox is made from an image, and none is named")
        return await self._start(Start(spec, spec.image, owner.labels(spec.scratch, admitted)))

    async def fork(self, snapshot: Snapshot, spec: SandboxSpec, admitted: Admitted) -> DockerSandbox:
        """Start a world on top of a captured one.

        Raises:
            Refusal: as `start`, and CAPTURE_FAILED when the snapshot is gone or of another kind.
        """
        if snapshot.kind != self.name:
            raise Refusal(
                Reason.CAPTURE_FAILED,
                "the snapshot was made by another kind of sandbox",
                observed=snapshot.kind,
                required=self.name,
            )
        home = snapshot.facts["home"]
        asked = Start(
            spec,
            snapshot.facts["image"],
            owner.labels(spec.scratch, admitted),
            saved=dict(snapshot.facts["volumes"]),
            home=None if home is None else Path(home),
            is_fork=True,
        )
        try:
            return await self._start(asked)
        except Refusal as refusal:
            if refusal.reason is Reason.IMAGE_MISSING:
                raise Refusal(
                    Reason.CAPTURE_FAILED, "the image of the snapshot is gone", observed=snapshot.facts["image"]
                ) from refusal
            raise

    def release(self, snapshot: Snapshot, admitted: Admitted) -> None:
        """Remove what a capture kept. Raises Refusal (DOCKER_UNAVAILABLE)."""
        self._now(pruning.release, snapshot)

    def prune(self, scratch_root: Path, admitted: Admitted) -> list[str]:
        """Remove containers and captured images that dead runs of this machine left on the engine, whichever they were.

        The run below `scratch_root` is dead wherever it ran: its caller has its lock. Nothing where no engine answers.
        """
        try:
            self._look(_PROBE_SEC)
        except Refusal:
            return []
        return self._now(pruning.prune, scratch_root)

    def keep(self, snapshot: Snapshot) -> None:
        """Leave a captured world after the run: `prune` passes it over, `release` still removes it."""
        self._now(pruning.keep, snapshot)

    def enter(self, scratch: Path) -> tuple[str, ...] | None:
        """A command that opens a shell in the world that runs below `scratch`; None where none does."""
        container = self._now(pruning.running_below, scratch)
        if container is None:
            return None
        endpoint = self._look(_PROBE_SEC).where.endpoint
        return ("docker", "-H", endpoint, "exec", "-it" if os.isatty(0) else "-i", container, "sh")

    async def _start(self, asked: Start) -> DockerSandbox:
        found = await asyncio.to_thread(self._look, _PROBE_SEC)
        if asked.spec.network not in NETWORKS:
            raise Refusal(
                Reason.NETWORK_UNAVAILABLE,
                f"this engine's sandboxes have no network {asked.spec.network.value!r} here",
                required=sorted(network.value for network in NETWORKS),
            )
        asked.spec.scratch.mkdir(parents=True, exist_ok=True)
        return await start(asked, found, self._leave)

    def _leave(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    @contextlib.asynccontextmanager
    async def _engine(self) -> AsyncIterator[Engine]:
        found = await asyncio.to_thread(self._look, _PROBE_SEC)
        async with Engine(found.where) as engine:
            yield engine

    def _now(self, ask: Callable[[Engine, A], Coroutine[Any, Any, T]], about: A) -> T:
        where = self._look(_PROBE_SEC).where

        async def work() -> T:
            async with Engine(where) as engine:
                return await ask(engine, about)

        try:
            return now(work())
        except EngineError as fault:
            raise unavailable(fault) from fault

    def _look(self, deadline_sec: float) -> Found:
        """The engine that was found first: one run stays with one. Raises Refusal (DOCKER_UNAVAILABLE)."""
        if self._found is None:
            self._found = look(deadline_sec)
        return self._found
