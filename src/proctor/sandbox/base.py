"""What every sandbox promises: start, exec, put, get, freeze, kill, capture, fork, stop.

A kind (namespace, docker …) is one class with this protocol. Everything that acts takes an `Admitted`; what only
looks takes a `Probe`. Paths inside are absolute strings, paths on the host are `Path`s.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from proctor.core.network import Network
from proctor.core.refusal import Refusal
from proctor.core.sandboxes import Pull
from proctor.core.tokens import Admitted, Probe

# The file in a world's folder that says whose it is: while it stands, `prune` comes back for what it could not remove.
MARKER = "marker.json"


class Tier(StrEnum):
    """How much the sandbox can do here: with root, or as an ordinary user."""

    PRIVILEGED = "privileged"
    ORDINARY = "ordinary"


@dataclass(frozen=True)
class Limits:
    """Limits wanted for a sandbox; None is no limit asked for."""

    cpus: float | None = None
    memory_bytes: int | None = None
    storage_bytes: int | None = None
    pids: int | None = None


@dataclass(frozen=True)
class LimitInForce:
    """One limit as read back: `enforced` is what is really in force, `how` by which means; else `why_not`."""

    name: str
    wanted: float | int | None
    enforced: float | int | None
    how: str | None
    why_not: str | None


@dataclass(frozen=True)
class Capabilities:
    """What a kind can do on this machine. `gateway` is whether a socket of ours can listen in a world's network."""

    networks: frozenset[Network]
    many_users: bool
    freeze: bool
    capture: bool
    builds_images: bool
    limits: frozenset[str]
    gateway: bool = True


@dataclass(frozen=True)
class Availability:
    """What a probe found. `refusals` is empty iff `available`; `notes` are disclosed facts for people."""

    kind: str
    available: bool
    tier: Tier
    capabilities: Capabilities
    refusals: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Bundle:
    """A host folder that is seen at `target` inside, read-only, and is no part of what a capture keeps."""

    source: Path
    target: str


@dataclass(frozen=True)
class Image:
    """What a world is made from, where a kind has images: a prebuilt one, or a folder that says how to build it.

    `reference` is the image as the task writes it, `id` the one that admission found under it (None: it has to be
    pulled first, by `pull`). Of a build, `context` is the folder of the files that it may copy, and `dockerfile` the
    text that says how; `stages` are the last lines, from 1, of each FROM in it, `base_ids` has the ids of the images
    that it starts from, by name as written, and `key` names the result: equal keys build the same.
    """

    reference: str | None = None
    id: str | None = None
    pull: str | None = None
    context: Path | None = None
    dockerfile: str = ""
    base_ids: Mapping[str, str] = field(default_factory=dict)
    stages: tuple[int, ...] = ()
    key: str | None = None
    timeout_sec: float = 600.0


@dataclass(frozen=True)
class ImageFacts:
    """An image that is on this machine: its id (`sha256:…`), and what it says of worlds made from it."""

    id: str
    workdir: str
    user: str | None
    env: Mapping[str, str]
    volumes: tuple[str, ...]
    platform: str
    digests: tuple[str, ...] = ()


@dataclass(frozen=True)
class SandboxSpec:
    """One world to start.

    `scratch` is a host folder for layers (short path, on a real file system), `root` a root file system folder that
    is the lowest layer instead of the host's `/usr`, `hidden` host paths that must not be seen inside. `image` is the
    id of an image, for a kind that has them. `tmp_bytes` bounds what lies in memory (`/dev/shm`, lost at a capture);
    `/tmp` lies with all other files, counts as storage and is captured, for solutions write there and verifiers look
    there. `bundles` are no part of what is captured.
    """

    name: str
    scratch: Path
    limits: Limits = Limits()
    network: Network = Network.NONE
    root: Path | None = None
    hidden: tuple[Path, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    tmp_bytes: int = 256 * 2**20
    image: str | None = None
    bundles: tuple[Bundle, ...] = ()
    required_limits: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Exec:
    """One command: raw output goes to host files, at most `output_cap` bytes each; stderr joins stdout if None.

    With `leave_running` processes that it started stay when it ends by itself; at its deadline nothing stays.
    """

    argv: tuple[str, ...]
    stdout: Path
    stderr: Path | None = None
    cwd: str = "/"
    env: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    stdin: bytes = b""
    output_cap: int = 16 * 2**20
    deadline_sec: float = 600.0
    leave_running: bool = False


@dataclass(frozen=True)
class Ended:
    """How a command ended. Exactly one of `exit_code` and `signal` is set, unless `start_error` says it never ran.

    After it nothing of that exec is left; `leftovers` counts the processes that had to be ended. `output_dropped`
    counts bytes beyond the cap. `limit_hit` names a limit that ended it ("memory", "pids", "storage"), if seen.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    duration_ns: int
    output_bytes: int = 0
    output_dropped: int = 0
    leftovers: int = 0
    limit_hit: str | None = None
    start_error: str | None = None

    def as_record(self) -> dict[str, Any]:
        """For the journal, where `duration_ns` stands beside it."""
        return {name: value for name, value in asdict(self).items() if name != "duration_ns"}


@dataclass(frozen=True)
class PutItem:
    """A host file or folder to bring in (or, with `content`, bytes): a folder's content lands in `target`.

    With `source` and `content` both None an empty folder is made. `mode` applies to the target itself. `fresh` first
    removes whatever stands at the target, without following links.
    """

    target: str
    source: Path | None = None
    content: bytes | None = None
    mode: int | None = None
    owner: str | None = None
    fresh: bool = False


@dataclass(frozen=True)
class Fetched:
    """One path brought out: regular files only; `skipped` says why a thing was not taken."""

    path: str
    host_path: Path | None
    size: int
    skipped: str | None = None


@dataclass(frozen=True)
class Snapshot:
    """A captured world: layers on the host, lowest first; it lives as long as its scratch folder.

    `facts` say what changed since the world was marked: `changed` counts files for `/usr`, `/etc`, `/opt`, `/var`,
    `/root` and others of the system that have any, and under `/` for all else, but for `/tmp`, `/logs`, `/tests`,
    `/solution`, `/agent`, `/skills` and what was said to be apart; what is removed counts. `changed_at_least` tells
    that there may be more, `changed_paths` names the first five. Where it cannot be told `changed` is None, and
    `changed_why_not` says why.
    """

    kind: str
    root: Path | None
    layers: tuple[Path, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)


class Sandbox(Protocol):
    """A running world. Every method may raise `Refusal` (SANDBOX_LOST, CAPTURE_FAILED, PATH_UNSAFE …)."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """For the record: kind, tier, root, network as it really is, limits in force, what is not isolated."""
        ...

    @property
    def limits_enforced(self) -> tuple[LimitInForce, ...]:
        """Limits as read back after start."""
        ...

    async def exec(self, command: Exec) -> Ended:
        """Run a command inside with no privileges beyond its user's. Nothing of it is left after this returns."""
        ...

    async def put(self, items: Sequence[PutItem]) -> None:
        """Bring files in, in order. Links inside a source folder stay links and never lead the copy elsewhere."""
        ...

    async def get(self, paths: Sequence[str], into: Path, *, cap_bytes: int, cap_files: int) -> list[Fetched]:
        """Bring files or folders out below `into`, at their path inside.

        Skipped, and said: special files, links, empty folders below a wanted one, names that are no UTF-8, paths of
        over 2,048 bytes.
        """
        ...

    async def listen(self) -> socket.socket:
        """A TCP socket that listens on 127.0.0.1 inside this world, and is ours: connections are accepted outside.

        For a world whose network is gateway-only or public. Raises Refusal (NETWORK_UNAVAILABLE, SANDBOX_LOST).
        """
        ...

    async def freeze(self) -> None:
        """Stop every process inside but the keeper."""
        ...

    async def thaw(self) -> None:
        """Let them go on."""
        ...

    async def kill_all(self) -> int:
        """End every process inside but the keeper; returns how many there were."""
        ...

    async def mark(self, apart: Sequence[str] = ()) -> None:
        """Remember the world as it stands: `capture` tells what changed after it.

        `apart` are folders that are expected to change, as the working folder.
        """
        ...

    async def capture(self) -> Snapshot:
        """End this world and keep its layers, from which any number of worlds can be forked."""
        ...

    async def stop(self) -> None:
        """End the world and remove what it made, unless captured. Never raises for what is already gone."""
        ...


class SandboxKind(Protocol):
    """A way to make sandboxes."""

    name: str

    def probe(self, probe: Probe) -> Availability:
        """Look, read-only, what can be had here."""
        ...

    def images(self, names: Sequence[str], probe: Probe, *, pull: Pull) -> Mapping[str, Image | Refusal]:
        """What prebuilt images are, by name, read-only: here, or to be pulled; empty for a kind without images."""
        ...

    async def provide(self, image: Image, admitted: Admitted) -> ImageFacts:
        """See that an image is here: pulled or built where it is not. Once for each, whoever asks.

        Raises:
            Refusal: IMAGE_MISSING, IMAGE_BUILD_FAILED, DOCKER_UNAVAILABLE; SANDBOX_UNAVAILABLE from a kind without.
        """
        ...

    async def start(self, spec: SandboxSpec, admitted: Admitted) -> Sandbox:
        """Start a world; returns when it can exec."""
        ...

    async def fork(self, snapshot: Snapshot, spec: SandboxSpec, admitted: Admitted) -> Sandbox:
        """Start a world on top of a captured one."""
        ...

    def release(self, snapshot: Snapshot, admitted: Admitted) -> None:
        """Remove the layers of a captured world."""
        ...

    def keep(self, snapshot: Snapshot) -> None:
        """Leave a captured world where it lies after the run: `prune` passes it over."""
        ...

    def enter(self, scratch: Path) -> tuple[str, ...] | None:
        """A host command that opens an operator's shell in the world that runs below `scratch`; None: none does."""
        ...

    def prune(self, scratch_root: Path, admitted: Admitted) -> list[str]:
        """Remove what dead runs left below `scratch_root` (processes, mounts, cgroups, layers); returns what.

        Whatever else dead runs of this machine left where all runs share one place, as on an engine, goes as well.
        """
        ...
