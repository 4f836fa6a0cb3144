"""How a container was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.sandbox.base import LimitInForce, SandboxSpec
from proctor.sandbox.docker.storage import StorageWatch

# files that the engine mounts in every container
ENGINE_FILES = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")


@dataclass(frozen=True)
class Built:
    """How a container was made: what its sandbox needs to know to use, capture and remove it."""

    container: str
    spec: SandboxSpec
    image: str
    labels: Mapping[str, str]
    volumes: tuple[str, ...]
    scratch: Path
    in_force: tuple[LimitInForce, ...]
    watch: StorageWatch | None
    seen: Mapping[str, Any]
    replaced: tuple[str, ...]
    facts: Mapping[str, Any]

    @property
    def home(self) -> str | None:
        """Root's home for its commands, unless the image names one: tables may be traps."""
        named = any(entry.startswith("HOME=") for entry in self.seen["Config"]["Env"] or ())
        return None if named else "/root"

    @property
    def mounts(self) -> tuple[str, ...]:
        """Paths inside that cannot be replaced."""
        return ("/", *ENGINE_FILES, *self.volumes, *(bundle.target for bundle in self.spec.bundles))
