"""A running world: what the protocol promises, done through the world's keeper."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from proctor.core.files import NO_SPACE
from proctor.core.network import Network
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.waiting import finish
from proctor.sandbox.base import Ended, Exec, Fetched, LimitInForce, PutItem, SandboxSpec, Snapshot, Tier
from proctor.sandbox.changes import Survey, told
from proctor.sandbox.linux import tree
from proctor.sandbox.namespace import answers, cgroups, changes, layers
from proctor.sandbox.namespace.channel import Channel
from proctor.sandbox.namespace.job import job
from proctor.sandbox.namespace.launcher import wire
from proctor.sandbox.namespace.launcher.listening import ADDRESS
from proctor.sandbox.namespace.limits import LimitPlan
from proctor.sandbox.rules import GATEWAY_PORT, LONGEST_SEC, check_command, plain

T = TypeVar("T")

# Time for what a request does beside running its command: entering, killing what is left, draining pipes.
_MARGIN_SEC = 30.0
_COPY_SEC = 600.0
_FREEZE_SEC = 10.0
_GROUP_SEC = 10.0
_LISTEN_SEC = 10.0
_BACKLOG = 1024


@dataclass(frozen=True)
class Built:
    """How a world was made: what its sandbox needs to know to use, capture and remove it."""

    kind: str
    spec: SandboxSpec
    tier: Tier
    home: layers.Home
    base: Path
    captured: tuple[Path, ...]
    files: layers.Files
    limits: LimitPlan
    group: cgroups.Group | None
    in_force: tuple[LimitInForce, ...]
    facts: Mapping[str, Any]


class NamespaceSandbox:
    """A world of namespaces. Commands run one at a time, for at a command's end everything inside is ended."""

    def __init__(self, built: Built, keeper: Channel) -> None:
        self._built = built
        self._keeper = keeper
        self._turn = asyncio.Lock()
        self._frozen = False
        self._ended = False
        self._ending = asyncio.Lock()
        self._closed = False
        self._captured = False
        self._gateway: str | None = None
        self._apart: tuple[str, ...] = ()
        self._marked: Survey | None = None

    @property
    def facts(self) -> Mapping[str, Any]:
        """For the record; `gateway` is where a listening socket of ours was opened last, or None."""
        return {**self._built.facts, "gateway": self._gateway}

    @property
    def limits_enforced(self) -> tuple[LimitInForce, ...]:
        """Limits as read back after start."""
        return self._built.in_force

    async def exec(self, command: Exec) -> Ended:
        """Run a command inside; nothing of it is left after this returns or raises.

        Raises:
            Refusal: SANDBOX_LOST when the world ended; OUT_UNUSABLE or DISK_FULL when its output cannot be kept;
                SANDBOX_START_FAILED while the world is frozen, or for a command without words or with a deadline
                that is no time.
        """
        check_command(command)
        deadline = min(command.deadline_sec, LONGEST_SEC)
        if self._frozen:
            raise Refusal(Reason.SANDBOX_START_FAILED, "the sandbox is frozen", remedy="Thaw it first.")
        group = self._built.group
        async with self._turn:
            before = group.hits() if group else {}
            answer = await self._ask(
                job(command, deadline, self._built.spec, self._built.limits, group), deadline + _MARGIN_SEC
            )
            after = group.hits() if group else {}
        if answer["leftovers"] is None:
            raise Refusal(Reason.SANDBOX_LOST, "processes inside could not be ended")
        limit = answer["limit_hit"] or next((name for name in after if after[name] > before[name]), None)
        if limit is None and answer["signal"] == signal.SIGXFSZ:
            limit = "storage"
        return Ended(
            exit_code=answer["exit_code"],
            signal=answer["signal"],
            timed_out=answer["timed_out"],
            duration_ns=answer["duration_ns"],
            output_bytes=answer["output_bytes"],
            output_dropped=answer["output_dropped"],
            leftovers=answer["leftovers"],
            limit_hit=limit,
            start_error=answer["start_error"],
        )

    async def put(self, items: Sequence[PutItem]) -> None:
        """Bring files in, all in one go.

        Raises:
            Refusal: PATH_UNSAFE for a target that is no plain absolute path or cannot be made, or a special file in
                a source; FILE_UNREADABLE for a source; INVALID_VALUE for an owner that is not known inside;
                TASK_NEEDS_ROOT for what one user alone cannot do; DISK_FULL; SANDBOX_LOST.
        """
        listed = []
        contents = bytearray()
        for item in items:
            if item.owner is not None and self._built.tier is Tier.ORDINARY and item.owner not in ("root", "0"):
                raise Refusal(Reason.TASK_NEEDS_ROOT, "this sandbox has one user only", observed=item.owner)
            start = len(contents)
            contents += item.content or b""
            listed.append(
                {
                    "target": plain(item.target),
                    "source": str(item.source.absolute()) if item.source is not None else None,
                    "content": (start, len(contents)) if item.content is not None else None,
                    "mode": item.mode,
                    "owner": item.owner,
                    "fresh": item.fresh,
                }
            )
        await self._ask({"op": "put", "items": listed, "data": bytes(contents)}, _COPY_SEC)

    async def get(self, paths: Sequence[str], into: Path, *, cap_bytes: int, cap_files: int) -> list[Fetched]:
        """Bring files out below `into`, at their path inside.

        Raises:
            Refusal: PATH_UNSAFE for a path that is no plain absolute one; DISK_FULL; SANDBOX_LOST.
        """
        into.mkdir(parents=True, exist_ok=True)
        request = {
            "op": "get",
            "paths": [plain(path) for path in paths],
            "into": str(into.absolute()),
            "cap_bytes": cap_bytes,
            "cap_files": cap_files,
        }
        answer = await self._ask(request, _COPY_SEC)
        return [
            Fetched(path, into / path.lstrip("/") if why is None else None, size, why)
            for path, size, why in answer["fetched"]
        ]

    async def listen(self) -> socket.socket:
        """A TCP socket that listens on 127.0.0.1 inside, for connections to be accepted outside.

        Raises:
            Refusal: NETWORK_UNAVAILABLE for a world without network; SANDBOX_LOST.
        """
        network = self._built.spec.network
        self._check_open()
        if network is Network.GATEWAY_ONLY:
            answer, sock = await self._keeper.call_for_socket({"op": "listen", "port": GATEWAY_PORT}, _LISTEN_SEC)
            if sock is None:
                raise self._refusal(answer)
        elif network is Network.PUBLIC:
            sock = socket.create_server((ADDRESS, 0), backlog=_BACKLOG)
        else:
            raise Refusal(
                Reason.NETWORK_UNAVAILABLE,
                "nothing can listen in a sandbox without network",
                observed=network.value,
                required=f"{Network.GATEWAY_ONLY.value} or {Network.PUBLIC.value}",
            )
        sock.setblocking(False)
        self._gateway = "{}:{}".format(*sock.getsockname())
        return sock

    async def freeze(self) -> None:
        """Stop every process inside but PID 1. Raises Refusal (SANDBOX_LOST)."""
        group = self._built.group
        if group is None or not group.can_freeze:
            await self._ask({"op": "signal", "signal": int(signal.SIGSTOP), "wait": False}, _MARGIN_SEC)
        else:
            self._frozen = True
            _kept(group.ask_freeze, True)
            await _until(group.is_frozen, _FREEZE_SEC, "processes inside could not be stopped")
        self._frozen = True

    async def thaw(self) -> None:
        """Let them go on. Raises Refusal (SANDBOX_LOST)."""
        group = self._built.group
        if group is None or not group.can_freeze:
            await self._ask({"op": "signal", "signal": int(signal.SIGCONT), "wait": False}, _MARGIN_SEC)
        else:
            _kept(group.ask_freeze, False)
        self._frozen = False

    async def kill_all(self) -> int:
        """End every process inside but PID 1; how many there were. Raises Refusal (SANDBOX_LOST)."""
        count = 0
        group = self._built.group
        if self._frozen and group is not None and group.can_freeze:
            # Frozen processes take the signal and die when they are let go, before they run anything again.
            answer = await self._ask({"op": "signal", "signal": int(signal.SIGKILL), "wait": False}, _MARGIN_SEC)
            count = answer["count"]
            await self.thaw()
        answer = await self._ask({"op": "signal", "signal": int(signal.SIGKILL), "wait": True}, _MARGIN_SEC)
        if answer["count"] is None:
            raise Refusal(Reason.SANDBOX_LOST, "processes inside could not be ended")
        self._frozen = False
        return max(count, int(answer["count"]))

    async def mark(self, apart: Sequence[str] = ()) -> None:
        """Remember the world as it stands: `capture` tells what changed after it. Raises Refusal (SANDBOX_LOST)."""
        self._apart = tuple(apart)
        async with self._turn:
            try:
                self._marked = await asyncio.to_thread(self._survey)
            except OSError as fault:
                raise Refusal(Reason.SANDBOX_LOST, "the world's folders are gone", observed=str(fault)) from fault

    async def capture(self) -> Snapshot:
        """End this world and keep its layers.

        Raises:
            Refusal: CAPTURE_FAILED when the layers cannot be kept, and then nothing of them is; SANDBOX_LOST.
        """
        try:
            return await finish(self._capture())
        except BaseException as fault:
            self._captured = False
            await self.stop()
            if isinstance(fault, OSError):
                raise Refusal(Reason.CAPTURE_FAILED, "the layers could not be kept", observed=str(fault)) from fault
            raise

    async def stop(self) -> None:
        """End the world and remove what it made."""
        self._ended = True
        await finish(self._remove())

    async def _capture(self) -> Snapshot:
        await self.kill_all()
        self._ended = True
        await self._close()
        built, home = self._built, self._built.home
        changed = await asyncio.to_thread(lambda: told(self._marked, self._survey))
        kept = (home.upper,) if built.files is layers.Files.COPIED else (*built.captured, home.upper)
        await asyncio.to_thread(tree.remove, home.work)
        if len(kept) >= layers.MOST_LAYERS:
            joined = home.files / "f"
            await asyncio.to_thread(layers.flatten, kept, joined)
            await asyncio.to_thread(tree.remove, home.upper)
            kept = (joined,)
        self._captured = True
        facts = {
            "home": str(home.path),
            "layers_in": str(home.files),
            "files": built.files.value,
            "tier": built.tier.value,
            "layers": len(kept),
            **changed,
        }
        return Snapshot(built.kind, built.spec.root, kept, facts)

    def _survey(self) -> Survey:
        built = self._built
        lowers = changes.Lowers(built.captured, built.base, built.spec.root)
        return changes.survey(built.home.upper, lowers, self._apart)

    async def _remove(self) -> None:
        # Where a group stays, so does the folder that names it: `prune` tries again.
        await self._close()
        if not self._captured:
            await asyncio.to_thread(self._built.home.remove)

    async def _close(self) -> None:
        """End every process, and remove what of the world is not files. Done once, whoever asks."""
        group = self._built.group
        async with self._ending:
            if self._closed:
                return
            if self._frozen and group is not None and group.can_freeze:
                with contextlib.suppress(OSError):
                    group.ask_freeze(False)
            await self._keeper.close()
            if group is not None:
                await remove_group(group)
            self._closed = True

    async def _ask(self, request: wire.Message, deadline_sec: float) -> wire.Message:
        self._check_open()
        answer = await self._keeper.call(request, deadline_sec)
        if "refused" in answer:
            raise self._refusal(answer)
        return answer

    def _check_open(self) -> None:
        if self._ended:
            raise Refusal(Reason.SANDBOX_LOST, "the sandbox was stopped before")

    def _refusal(self, answer: wire.Message) -> Refusal:
        number, text = answer["errno"], answer["text"]
        reason = answers.REFUSED[answer["refused"]]
        if number in NO_SPACE:
            reason = Reason.DISK_FULL
        elif answer["refused"] == "place" and number in (errno.EACCES, errno.EPERM):
            # What belongs to another user below cannot be written by the one user of this tier.
            reason = Reason.TASK_NEEDS_ROOT if self._built.tier is Tier.ORDINARY else Reason.PATH_UNSAFE
        return Refusal(reason, f"the sandbox could not do it: {text}", observed=answer["refused"])


async def remove_group(group: cgroups.Group) -> None:
    """Remove a world's groups once the last of its processes is gone. Raises Refusal (SANDBOX_LOST)."""
    folders = group.folders
    await _until(lambda: cgroups.remove(folders), _GROUP_SEC, "a control group could not be removed")


async def _until(done: Any, deadline_sec: float, what: str) -> None:
    """Wait for what the kernel does on its own and has no event for. Raises Refusal (SANDBOX_LOST)."""
    pause = 0.0005
    try:
        async with asyncio.timeout(deadline_sec):
            while not done():
                await asyncio.sleep(pause)
                pause = min(pause * 2, 0.05)
    except (TimeoutError, OSError) as fault:
        raise Refusal(Reason.SANDBOX_LOST, what, observed=str(fault)) from fault


def _kept(write: Any, value: bool) -> None:
    try:
        write(value)
    except OSError as fault:
        raise Refusal(Reason.SANDBOX_LOST, "the control group is gone", observed=str(fault)) from fault
