"""The namespace kind: probing, starting, forking, releasing and pruning worlds made of Linux namespaces."""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.sandboxes import Pull, SandboxChoice
from proctor.core.tokens import Admitted, Probe
from proctor.core.waiting import finish, in_thread
from proctor.sandbox.base import (
    Availability,
    Capabilities,
    Image,
    ImageFacts,
    PutItem,
    SandboxSpec,
    Snapshot,
    Tier,
)
from proctor.sandbox.namespace import cgroups, layers, limits, marker, skeleton
from proctor.sandbox.namespace.building import Plan, prepare
from proctor.sandbox.namespace.channel import Channel, shell_command
from proctor.sandbox.namespace.command import covered, words
from proctor.sandbox.namespace.ground import Ground
from proctor.sandbox.namespace.grounds import Grounds
from proctor.sandbox.namespace.layers import Files
from proctor.sandbox.namespace.own import prune_own
from proctor.sandbox.namespace.probe import Found
from proctor.sandbox.namespace.sandbox import Built, NamespaceSandbox, remove_group
from proctor.sandbox.rules import checked, refuse_unenforced

_START_SEC = 60.0
_PROBE_SEC = 20.0
# what a killed process takes at most to give its memory back
_DYING_SEC = 3.0
_NETWORKS = frozenset({Network.NONE, Network.GATEWAY_ONLY, Network.PUBLIC})


class NamespaceKind:
    """Sandboxes of Linux namespaces, with no daemon and no image. One launcher process serves all of its worlds."""

    name = SandboxChoice.NAMESPACE.value

    def __init__(self) -> None:
        self._grounds = Grounds()

    def probe(self, probe: Probe) -> Availability:
        """What this machine gives, found by trying once."""
        found = self._grounds.look(probe.deadline_sec)
        usable = not found.refusals
        capabilities = Capabilities(
            networks=_NETWORKS if usable else frozenset(),
            many_users=found.tier is Tier.PRIVILEGED,
            freeze=usable,
            capture=usable,
            builds_images=False,
            limits=limits.holdable(frozenset(found.places)) if usable else frozenset(),
        )
        facts = {
            "bwrap_version": found.bwrap_version,
            "overlay": found.files in (Files.OVERLAY, Files.MEMORY),
            "files": found.files.value if found.files else None,
            "groups": {name: f"v{place.version}" for name, place in found.places.items()},
            "groups_missing": dict(found.missing),
            "shown_of_host": [f"/{top}" for top in skeleton.host_tops()],
            "usr_local": "shown",
            "usr_src": "hidden",
        }
        return Availability(self.name, usable, found.tier, capabilities, found.refusals, found.notes, facts)

    async def start(self, spec: SandboxSpec, admitted: Admitted) -> NamespaceSandbox:
        """Start a fresh world.

        Raises:
            Refusal: what the machine lacks, or NETWORK_UNAVAILABLE, LIMIT_UNENFORCEABLE, ROOTFS_INVALID,
                BUNDLE_MISSING, PATH_UNSAFE, SANDBOX_START_FAILED, DISK_FULL.
        """
        return await self._start(spec, admitted, None)

    async def fork(self, snapshot: Snapshot, spec: SandboxSpec, admitted: Admitted) -> NamespaceSandbox:
        """Start a world on top of a captured one.

        Raises:
            Refusal: as `start`, and CAPTURE_FAILED when the snapshot is gone or was made in another way.
        """
        found = await asyncio.to_thread(self._grounds.look, _PROBE_SEC)
        facts = snapshot.facts
        if snapshot.kind != self.name or facts.get("tier") != found.tier.value:
            raise Refusal(
                Reason.CAPTURE_FAILED,
                "the snapshot was made by another kind or tier of sandbox",
                observed={"kind": snapshot.kind, "tier": facts.get("tier")},
                required={"kind": self.name, "tier": found.tier.value},
            )
        for layer in snapshot.layers:
            if not layer.is_dir():
                why = ": it lay in memory, and ended with its run" if facts["files"] == Files.MEMORY else ""
                raise Refusal(Reason.CAPTURE_FAILED, f"a layer of the snapshot is gone{why}", path=str(layer))
        return await self._start(replace(spec, root=snapshot.root), admitted, snapshot)

    def images(self, names: Sequence[str], probe: Probe, *, pull: Pull) -> Mapping[str, Image | Refusal]:
        """There are none."""
        return {}

    async def provide(self, image: Image, admitted: Admitted) -> ImageFacts:
        """Raises Refusal (SANDBOX_UNAVAILABLE): there are no images here."""
        raise Refusal(Reason.SANDBOX_UNAVAILABLE, "the namespace sandbox has no images", observed=image.reference)

    def release(self, snapshot: Snapshot, admitted: Admitted) -> None:
        """Remove what a capture kept. Snapshots captured on top of it lose their ground: release those first."""
        layers.Home(Path(snapshot.facts["home"]), Path(snapshot.facts["layers_in"])).remove()

    def prune(self, scratch_root: Path, admitted: Admitted) -> list[str]:
        """Remove what dead runs left below `scratch_root`: processes, control groups and layers.

        Nobody else may be starting worlds there. A process that did is dying, and is waited for; where it stays it is
        an operator's shell, and its world is left alone.
        """
        return [*marker.prune(scratch_root, _DYING_SEC), *prune_own()]

    def keep(self, snapshot: Snapshot) -> None:
        """Leave a captured world where it lies: `prune` passes it over, `release` still removes it."""
        marker.keep(Path(snapshot.facts["home"]))

    def enter(self, scratch: Path) -> tuple[str, ...] | None:
        """A host command that opens a shell in the world that runs below `scratch`; None where none does."""
        pid = marker.live_init(scratch)
        if pid is None:
            return None
        return shell_command(pid)

    async def _start(self, spec: SandboxSpec, admitted: Admitted, snapshot: Snapshot | None) -> NamespaceSandbox:
        found = await asyncio.to_thread(self._grounds.look, _PROBE_SEC)
        if found.refusals or found.bwrap is None:
            raise found.refusals[0]
        if spec.network not in _NETWORKS:
            raise Refusal(
                Reason.NETWORK_UNAVAILABLE,
                f"the namespace sandbox has no network {spec.network.value!r}",
                required=sorted(network.value for network in _NETWORKS),
            )
        root, bundles = _checked_root(spec.root), checked(spec.bundles)
        spec.scratch.mkdir(parents=True, exist_ok=True)
        scratch = spec.scratch.resolve()
        ground = await asyncio.to_thread(self._grounds.at, scratch, found, _PROBE_SEC)
        if snapshot is not None and snapshot.facts["files"] != ground.files:
            raise Refusal(Reason.CAPTURE_FAILED, "the snapshot was made with another kind of layers")
        home = ground.home(scratch / secrets.token_hex(4))
        chosen = limits.plan(spec.limits, found.tier, frozenset(found.places))
        group = cgroups.Group(found.places, f"s{home.path.name}") if found.places else None
        base = await in_thread(ground.bases.base, found.tier, root, spec.hidden)
        plan = Plan(home, found.tier, root, base, snapshot.layers if snapshot else (), ground.files, bundles)
        cover = covered(found.bwrap.parent)
        request = _request(spec, found, ground, plan, cover) | {"pids": chosen.namespace_pids}
        keeper: Channel | None = None
        try:
            home.make()
            marker.write(home.path, admitted.label, group.folders if group else ())
            await in_thread(prepare, plan)
            if group is not None:
                group.make(chosen.group_memory, chosen.group_cpus, chosen.group_pids)
            in_force = limits.read_back(
                spec.limits,
                chosen,
                group.in_force() if group else {},
                found.missing,
                files_in_memory=ground.files is Files.MEMORY,
            )
            refuse_unenforced(in_force, spec.required_limits)
            answer, keeper = await ground.launcher.open(request, _START_SEC)
            if "failed" in answer:
                raise Refusal(
                    Reason.SANDBOX_START_FAILED, f"a sandbox could not be started: {answer['text']}", observed=answer
                )
            marker.note_init(home.path, answer["pid"])
            built = Built(
                kind=self.name,
                spec=spec,
                tier=found.tier,
                home=home,
                base=base,
                captured=plan.captured,
                files=ground.files,
                limits=chosen,
                group=group,
                in_force=in_force,
                facts=_facts(spec, found, root, ground, len(plan.captured)),
            )
            sandbox = NamespaceSandbox(built, keeper)
            if spec.network is Network.PUBLIC:
                await sandbox.put([PutItem("/etc/resolv.conf", content=_resolvers(), mode=0o644)])
            return sandbox
        except BaseException as fault:
            await finish(_undo(home, group, keeper))
            if isinstance(fault, OSError):
                reason = Reason.DISK_FULL if fault.errno == errno.ENOSPC else Reason.SANDBOX_START_FAILED
                raise Refusal(reason, f"a sandbox could not be made: {fault}") from fault
            raise


def _request(spec: SandboxSpec, found: Found, ground: Ground, plan: Plan, cover: str) -> dict[str, Any]:
    """What the launcher is told of a world; the folder `cover` is covered while it starts."""
    mounts, shared = plan.mounts(cover), spec.network is Network.PUBLIC
    inside = [bundle.target for bundle in plan.bundles]
    return {
        "op": "start",
        "bwrap": str(found.bwrap),
        "args": words(mounts, base=cover, share_net=shared, shm_bytes=spec.tmp_bytes, bundles=inside),
        "holder": ground.seen(ground.bases.holder),
        "base": cover,
        "points": ground.seen(ground.bases.folder),
        "home": ground.seen(plan.home.files),
        "layers": [ground.seen(path) for path in plan.bound],
        "bundles": [str(bundle.source) for bundle in plan.bundles],
        "many_users": found.tier is Tier.PRIVILEGED,
        "share_net": shared,
        "uppers": [ground.seen(plan.home.upper / mount.name) for mount in mounts],
    }


async def _undo(home: layers.Home, group: cgroups.Group | None, keeper: Channel | None) -> None:
    if keeper is not None:
        await keeper.close()
    if group is not None:
        try:
            await remove_group(group)
        except Refusal:
            return  # the folder names the group: `prune` tries again
    await asyncio.to_thread(home.remove)


def _checked_root(root: Path | None) -> Path | None:
    if root is None:
        return None
    given = root.resolve()
    if not (given / "usr").is_dir() or not os.path.lexists(given / "bin" / "sh"):
        raise Refusal(
            Reason.ROOTFS_INVALID, "the root has no usr or no bin/sh", path=str(root), required="a root file system"
        )
    return given


def _resolvers() -> bytes:
    try:
        return Path("/etc/resolv.conf").read_bytes()
    except OSError:
        return b""


def _facts(spec: SandboxSpec, found: Found, root: Path | None, ground: Ground, captured: int) -> dict[str, Any]:
    not_isolated = []
    in_memory = ground.files is Files.MEMORY
    if spec.network is Network.PUBLIC:
        not_isolated.append("network: the host's own, with what listens there and its abstract sockets")
    if found.tier is Tier.PRIVILEGED:
        not_isolated.append("user ids: the same numbers inside and outside, without powers outside")
    if spec.bundles and ground.files is Files.COPIED:
        not_isolated.append("bundles: the mount table inside names the folders of the host that they are")
    return {
        "kind": NamespaceKind.name,
        "tier": found.tier.value,
        "root": str(root) if root else "host-usr",
        "usr_local": "of the root" if root else "shown",
        "usr_src": "of the root" if root else "hidden",
        "files": ground.files.value,
        "files_in_memory_bytes_at_most": ground.store.size if in_memory and ground.store else None,
        "layers": captured,
        "bundles": [bundle.target for bundle in spec.bundles],
        "network": spec.network.value,
        "network_is": "shared with the host" if spec.network is Network.PUBLIC else "loopback only",
        "gateway": None,
        "not_isolated": not_isolated,
    }
