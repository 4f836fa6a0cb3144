"""One way to start worlds, and a trial of it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from proctor.sandbox.base import Tier
from proctor.sandbox.namespace import layers, skeleton
from proctor.sandbox.namespace.bases import Bases
from proctor.sandbox.namespace.channel import Channel
from proctor.sandbox.namespace.command import Mount, covered, words
from proctor.sandbox.namespace.layers import Files
from proctor.sandbox.namespace.probe import Found
from proctor.sandbox.namespace.store import Store

_SHM_BYTES = 4096


@dataclass(frozen=True)
class Ground:
    """From what a world is started. The launcher is that of `store` where there is one."""

    files: Files
    launcher: Channel
    bases: Bases
    store: Store | None

    def home(self, path: Path) -> layers.Home:
        """The folders of a world whose own is `path`."""
        if self.files is Files.MEMORY and self.store is not None:
            return layers.Home(path, self.store.folder / path.name)
        return layers.Home(path, path)

    def seen(self, path: Path) -> str:
        """A path as the launcher has it."""
        return self.store.inside(path) if self.store else str(path)


def try_world(ground: Ground, found: Found, bwrap: Path, scratch: Path, deadline_sec: float) -> str | None:
    """Start and end a world of the host's /usr in a new folder below `scratch`; what failed, or None.

    Where files are copied the host's folders are bound as they are, and nothing but the holder runs there.

    Raises:
        OSError: the folder does not take layers.
        Refusal: SANDBOX_LOST.
    """
    home = ground.home(scratch / f"t{secrets.token_hex(4)}")
    overlay = ground.files is not Files.COPIED
    try:
        home.make()
        if overlay:
            skeleton.try_layer(home.files)
        for folder in (home.upper, home.work):
            folder.mkdir()
        for name in ("root", *skeleton.host_tops()):
            (home.upper / name).mkdir()
            (home.work / name).mkdir()
        for name in ("dev", "proc", *skeleton.host_tops()):
            (home.upper / "root" / name).mkdir()
        mounts = [Mount("root", "/", ())]
        if overlay:
            mounts += [Mount(name, f"/{name}", (f"/{name}",)) for name in skeleton.host_tops()]
        base = covered(bwrap.parent)
        answer = ground.launcher.call_now(
            {
                "op": "start",
                "bwrap": str(bwrap),
                "args": words(mounts, base=base, share_net=False, shm_bytes=_SHM_BYTES),
                "holder": ground.seen(ground.bases.holder),
                "base": base,
                "points": ground.seen(ground.bases.folder),
                "home": ground.seen(home.files),
                "layers": [],
                "bundles": [],
                "many_users": found.tier is Tier.PRIVILEGED,
                "share_net": False,
                "pids": None,
                "uppers": [],
            },
            deadline_sec,
        )
        return None if "pid" in answer else f"{answer['failed']}: {answer['text']}"
    finally:
        home.remove()
