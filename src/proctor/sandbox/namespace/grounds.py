"""What worlds are started from on this machine, found by trying and kept: launchers, bases, and how files are had."""

from __future__ import annotations

import tempfile
import threading
from dataclasses import replace
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Tier
from proctor.sandbox.namespace import own
from proctor.sandbox.namespace.bases import Bases, in_a_folder
from proctor.sandbox.namespace.channel import Channel, launch
from proctor.sandbox.namespace.ground import Ground, try_world
from proctor.sandbox.namespace.layers import Files
from proctor.sandbox.namespace.probe import Found, look
from proctor.sandbox.namespace.store import Store

# folders that the kernel has for mounts
_HARMLESS = ("/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd")
_UNCOVER = (
    "Parts of /proc are covered, as in a container: start that with a whole /proc (docker run:"
    " --security-opt systempaths=unconfined). Or use another sandbox."
)


class Grounds:
    """The grounds of one process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._launcher: Channel | None = None
        self._store: Store | None = None
        self._bases: Bases | None = None
        self._bases_in_store = False
        self._found: Found | None = None
        self._files: dict[int, Files] = {}

    def look(self, deadline_sec: float) -> Found:
        """What this machine gives, looked at once; `files` is how it is for the temporary folder."""
        with self._lock:
            if self._found is None:
                own.prune_own()
                found = look(self._launched(), deadline_sec)
                self._found = found if found.refusals else self._tried(found, deadline_sec)
            return self._found

    def at(self, scratch: Path, found: Found, deadline_sec: float) -> Ground:
        """The ground of worlds in `scratch`; each file system is tried once.

        Raises:
            Refusal: SANDBOX_UNAVAILABLE when none of them starts.
        """
        device = scratch.stat().st_dev
        with self._lock:
            if device not in self._files:
                self._files[device] = self._best(scratch, found, deadline_sec)
            try:
                return self._ground(self._files[device], found.tier)
            except OSError as fault:
                raise Refusal(Reason.SANDBOX_UNAVAILABLE, "no folder takes layers now", observed=str(fault)) from fault

    def _tried(self, found: Found, deadline_sec: float) -> Found:
        with tempfile.TemporaryDirectory(prefix="s") as folder:
            try:
                ground = self.at(Path(folder), found, deadline_sec)
            except Refusal as refusal:
                return replace(found, refusals=(refusal,))
        return replace(found, files=ground.files, notes=(*found.notes, *_notes(ground)))

    def _best(self, scratch: Path, found: Found, deadline_sec: float) -> Files:
        if found.bwrap is None:
            raise found.refusals[0]
        faults = []
        for files in Files:
            try:
                fault = try_world(self._ground(files, found.tier), found, found.bwrap, scratch, deadline_sec)
            except (OSError, Refusal) as refused:
                fault = str(refused)
            if fault is None:
                return files
            faults.append(f"{files.value}: {fault}")
        raise Refusal(
            Reason.SANDBOX_UNAVAILABLE,
            "a sandbox could not be started",
            observed=faults,
            remedy=_UNCOVER if _proc_is_covered() else None,
        )

    def _ground(self, files: Files, tier: Tier) -> Ground:
        """Raises OSError or Refusal where it cannot be had."""
        bases = self._base(tier)
        store = self._stored(tier) if files is Files.MEMORY or self._bases_in_store else None
        return Ground(files, store.launcher if store else self._launched(), bases, store)

    def _base(self, tier: Tier) -> Bases:
        """Bases in a folder, or in memory of our own where no folder takes them."""
        if self._bases_in_store:
            self._stored(tier)
        if self._bases is None:
            found = in_a_folder()
            if isinstance(found, Bases):
                self._bases = found
            else:
                try:
                    self._bases = Bases(_new(self._stored(tier).folder / "bases"))
                except OSError as fault:
                    raise OSError(
                        f"no folder takes base layers ({'; '.join(found)}), nor does memory: {fault}"
                    ) from fault
                self._bases_in_store = True
        return self._bases

    def _stored(self, tier: Tier) -> Store:
        if self._store is None or not self._store.launcher.alive:
            self._store = None
            if self._bases_in_store:
                self._bases = None
            self._store = Store(tier)
        return self._store

    def _launched(self) -> Channel:
        if self._launcher is None or not self._launcher.alive:
            self._launcher = launch()
        return self._launcher


def _proc_is_covered() -> bool:
    """Whether something is mounted over a part of /proc: no other user namespace may mount one of its own then."""
    table = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape")
    places = [line.split()[4] for line in table.splitlines()]
    return any(place.startswith("/proc/") and place not in _HARMLESS for place in places)


def _notes(ground: Ground) -> list[str]:
    if ground.files is Files.MEMORY and ground.store is not None:
        return [
            "overlays cannot be had in the temporary folder: what worlds write there lies in memory, at most"
            f" {ground.store.size >> 20} MiB for all of them, and kept worlds end with their run"
        ]
    if ground.files is Files.COPIED:
        return ["overlays cannot be had in the temporary folder, nor in memory: worlds there start on copies, slowly"]
    return []


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder
