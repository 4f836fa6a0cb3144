"""A container made, started and read back; nothing of it stays where that fails."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import finish
from proctor.sandbox.base import SandboxSpec, Tier
from proctor.sandbox.docker import images, storage, volumes
from proctor.sandbox.docker.built import Built
from proctor.sandbox.docker.config import CAPABILITIES, Wanted, limits_in_force
from proctor.sandbox.docker.engine import Engine, EngineError, unavailable
from proctor.sandbox.docker.holding import Hold
from proctor.sandbox.docker.keeper import Keeper, attached
from proctor.sandbox.docker.probe import KIND, Found
from proctor.sandbox.docker.storage import StorageWatch
from proctor.sandbox.docker.tables import disarm
from proctor.sandbox.docker.world import DockerSandbox, Leave
from proctor.sandbox.rules import checked, refuse_unenforced

_START_SEC = 120.0
_UNNAMEABLE = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class Start:
    """What is asked for: a world from an image; of a captured one, `saved` volumes are files in `home`."""

    spec: SandboxSpec
    image: str
    labels: Mapping[str, str]
    saved: Mapping[str, str] = field(default_factory=dict)
    home: Path | None = None
    is_fork: bool = False


async def start(asked: Start, found: Found, leave: Leave) -> DockerSandbox:
    """Start it; returns when it can exec. The world hands `leave` what it need not wait for.

    Raises:
        Refusal: IMAGE_MISSING, LIMIT_UNENFORCEABLE, BUNDLE_MISSING, BUNDLE_UNUSABLE, CAPTURE_FAILED for its volumes,
            SANDBOX_START_FAILED, DOCKER_UNAVAILABLE.
    """
    if asked.spec.bundles and not found.local:
        raise Refusal(Reason.BUNDLE_UNUSABLE, "the engine is not on this machine, and sees no folder of it")
    asked = replace(asked, spec=replace(asked.spec, bundles=checked(asked.spec.bundles)))
    engine = Engine(found.where)
    try:
        return await _Starting(asked, found, engine, leave).run()
    except EngineError as fault:
        await engine.close()
        # no answer is no fault of this world's, and every other one would meet the same
        raise (unavailable(fault) if fault.status is None else _failed(fault.text, fault.status)) from fault
    except BaseException:
        await engine.close()
        raise


class _Starting:
    def __init__(self, asked: Start, found: Found, engine: Engine, leave: Leave) -> None:
        self._asked, self._found, self._engine, self._leave = asked, found, engine, leave

    async def run(self) -> DockerSandbox:
        asked = self._asked
        seen = await images.inspect(self._engine, asked.image)
        if seen is None:
            raise Refusal(Reason.IMAGE_MISSING, "the image of the sandbox is not on this machine", observed=asked.image)
        facts = images.facts(seen)
        wanted = Wanted(
            image=facts.id,
            spec=asked.spec,
            facts=facts,
            labels=asked.labels,
            volumes=tuple(asked.saved),
            storage=self._found.storage_why_not is None,
        )
        try:
            return await self._made(wanted, deep=False)
        except EngineError:
            if not asked.is_fork:
                raise
            # what an agent left in the tables of users may keep the engine from starting anything
            return await self._made(wanted, deep=True)

    async def _made(self, wanted: Wanted, *, deep: bool) -> DockerSandbox:
        name = f"proctor-{_UNNAMEABLE.sub('-', self._asked.spec.name)[:40]}-{secrets.token_hex(6)}"
        keeper: Keeper | None = None
        try:
            # to its end, even if cancelled: what the engine makes unheard nobody would remove
            made = await finish(
                self._engine.call(
                    "POST", "containers/create", params={"name": name}, body=wanted.request(), deadline_sec=_START_SEC
                )
            )
            replaced = await disarm(self._engine, made["Id"], deep=deep) if self._asked.is_fork else []
            keeper = await attached(self._engine, made["Id"])
            await self._engine.call("POST", f"containers/{made['Id']}/start", deadline_sec=_START_SEC)
            if await keeper.end() is None:
                raise _failed("its shell does not answer", None)
            return await self._checked(wanted, made["Id"], keeper, replaced)
        except BaseException:
            await finish(self._undo(name, keeper))
            raise

    async def _checked(self, wanted: Wanted, container: str, keeper: Keeper, replaced: list[str]) -> DockerSandbox:
        """Read it back: it is what was asked for, or it is not used."""
        asked = self._asked
        seen = await self._engine.call("GET", f"containers/{container}/json")
        differences = wanted.differences(seen)
        if differences:
            raise Refusal(
                Reason.SANDBOX_START_FAILED,
                f"the engine made another sandbox than was asked for: {'; '.join(differences)}",
                observed=differences,
            )
        limits = asked.spec.limits
        watch = None
        if limits.storage_bytes is not None and self._found.storage_is_watched:
            watch = StorageWatch.of(seen, limits.storage_bytes)
        how = None if watch is None else storage.HOW
        in_force = limits_in_force(limits, seen["HostConfig"], self._found.storage_why_not, how)
        refuse_unenforced(in_force, asked.spec.required_limits)
        if asked.home is not None:
            await volumes.restore(self._engine, container, asked.saved, asked.home)
        built = Built(
            container=container,
            spec=asked.spec,
            image=wanted.image,
            labels=asked.labels,
            volumes=wanted.all_volumes,
            scratch=asked.spec.scratch.resolve(),
            in_force=in_force,
            watch=watch,
            seen=seen,
            replaced=tuple(replaced),
            facts=_facts(wanted, seen, self._found),
        )
        hold = Hold(self._engine, container, seen["State"]["Pid"], keeper)
        return DockerSandbox(built, self._engine, hold, self._leave)

    async def _undo(self, container: str, keeper: Keeper | None) -> None:
        if keeper is not None:
            await keeper.close()
        with contextlib.suppress(EngineError):  # gone by itself; else its labels say whose it is
            await self._engine.call("DELETE", f"containers/{container}", params={"force": "1", "v": "1"})


def _failed(why: str, status: int | None) -> Refusal:
    return Refusal(Reason.SANDBOX_START_FAILED, f"a sandbox could not be started: {why}", observed=status)


def _facts(wanted: Wanted, seen: Mapping[str, Any], found: Found) -> dict[str, Any]:
    spec = wanted.spec
    not_isolated = ["kernel: the host's own, shared with all containers of its engine"]
    if spec.network is Network.PUBLIC:
        not_isolated.append("network: the engine's bridge, with the host's own services that listen on every address")
    if spec.bundles and found.local:
        not_isolated.append("bundles: where they lie on the host can be read inside")
    return {
        "kind": KIND,
        "tier": Tier.PRIVILEGED.value,
        "root": None,
        "image": seen["Image"],
        "container": seen["Id"],
        "engine_version": found.version.get("Version"),
        "storage_driver": found.info.get("Driver"),
        "platform": wanted.facts.platform,
        "network": spec.network.value,
        "network_is": "the engine's bridge" if spec.network is Network.PUBLIC else "loopback only",
        "capabilities": list(CAPABILITIES),
        "no_new_privileges": True,
        "seccomp": "proctor's own filter",
        "volumes": list(wanted.all_volumes),
        "not_isolated": not_isolated,
    }
