"""A folder as an anchor: each checkpoint is copied below it, under the run's id, and never changed again.

The folder must be there: where a share is not mounted, to make it would keep the proof on this machine.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from proctor.core.reasons import Reason
from proctor.core.tokens import Admitted, Probe
from proctor.evidence.anchors.apart import Apart
from proctor.evidence.anchors.base import AnchorFailed, CheckpointFile, Pushed
from proctor.evidence.anchors.places import Place
from proctor.evidence.checkpoints import name_of
from proctor.evidence.disk import Disk, open_regular
from proctor.evidence.notes import MAX_NOTE_BYTES
from proctor.evidence.runfolder import FileRef, run_around

T = TypeVar("T")

# a network file system may never answer: what waits for it is left alone then
DEADLINE_SEC = 30.0

# the place itself is not there, or does not answer
_GONE = frozenset(
    {
        *(errno.ENOENT, errno.ENOTDIR, errno.EIO, errno.ENXIO, errno.ENODEV, errno.ESTALE, errno.ETIMEDOUT),
        *(errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH, errno.ENOTCONN, errno.ECONNREFUSED),
        *(errno.ECONNRESET, errno.ECONNABORTED, errno.EREMOTEIO),
    }
)
# file systems without a second name for a file
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class DropAnchor:
    """One folder, for one run."""

    def __init__(self, place: Place, admitted: Admitted, *, disk: Disk | None = None) -> None:
        """Touches nothing yet."""
        self.place = place
        self._root = Path(place.address)
        self._run_id = admitted.run_id
        self._disk = disk if disk is not None else Disk()
        self._apart = Apart()

    def push(self, checkpoint: CheckpointFile, at: str) -> Pushed:
        """As `Anchor.push`; nothing is dated here but by the folder itself."""
        return self._apart.within(DEADLINE_SEC, lambda: self._typed(lambda: self._push(checkpoint)), self._silent)

    def stands(self, checkpoint: CheckpointFile) -> bool:
        """As `Anchor.stands`: a file that is gone is put there again by a push."""
        return self._apart.within(DEADLINE_SEC, lambda: self._typed(lambda: self._stands(checkpoint)), self._silent)

    def cancel(self) -> None:
        """As `Anchor.cancel`."""
        self._apart.leave()

    def close(self) -> None:
        """Nothing is kept."""

    def _push(self, checkpoint: CheckpointFile) -> Pushed:
        folder = self._root / self._run_id
        if (inside := _inside(folder)) is not None:
            raise AnchorFailed(Reason.ANCHOR_REJECTED, inside)
        if not folder.is_dir():
            self._make(folder)
        path = folder / name_of(checkpoint.size)
        if not os.path.lexists(path):
            self._put(path, checkpoint.data)
        self._compare(path, checkpoint)
        return Pushed(0, FileRef.of(self._relative(path), checkpoint.data).as_record())

    def _stands(self, checkpoint: CheckpointFile) -> bool:
        # an OSError where the folder is gone
        self._root.stat()
        path = self._root / self._run_id / name_of(checkpoint.size)
        if not os.path.lexists(path):
            return False
        self._compare(path, checkpoint)
        return True

    def _compare(self, path: Path, checkpoint: CheckpointFile) -> None:
        if self._read(path) != checkpoint.data:
            raise AnchorFailed(Reason.ANCHOR_DIFFERS, f"another file stands there ({self._relative(path)})", 0)

    def _make(self, folder: Path) -> None:
        # not those above: the anchor itself must be there
        try:
            self._disk.make_dir(folder)
        except FileExistsError:
            if not folder.is_dir():
                raise
        self._disk.sync_dir(folder.parent)

    def _put(self, path: Path, data: bytes) -> None:
        try:
            self._disk.put_new(path, data)
        except FileExistsError:
            return
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            self._disk.put(path, data)

    def _read(self, path: Path) -> bytes:
        if path.is_symlink() or not path.is_file():
            raise AnchorFailed(Reason.ANCHOR_DIFFERS, f"no file stands there ({self._relative(path)})", 0)
        with open_regular(path) as file:
            return file.read(MAX_NOTE_BYTES + 1)

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    def _typed(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except OSError as error:
            words = error.strerror or str(error)
            if error.errno in _GONE:
                raise AnchorFailed(Reason.ANCHOR_UNREACHABLE, f"the folder cannot be reached: {words}") from error
            raise AnchorFailed(Reason.ANCHOR_REJECTED, f"the folder does not take a file: {words}") from error

    def _silent(self) -> AnchorFailed:
        return AnchorFailed(Reason.ANCHOR_UNREACHABLE, f"the folder did not answer within {DEADLINE_SEC:.0f} seconds")


def look(place: Place, probe: Probe) -> str | None:
    """Whether the folder is there and may be written, with a deadline: None where it is, else why not."""
    silent = TimeoutError(f"the folder did not answer within {probe.deadline_sec:.0f} seconds")
    try:
        return Apart().within(probe.deadline_sec, lambda: _looked(Path(place.address)), lambda: silent)
    except TimeoutError as error:
        return str(error)


def _looked(folder: Path) -> str | None:
    if not folder.is_dir():
        return f"{folder} is {'no folder' if folder.exists() else 'not there'}"
    if (folder / ".git").exists() or all((folder / name).exists() for name in ("HEAD", "objects", "refs")):
        # the verifier takes it for one, and looks for a ref
        return f"{folder} is a git repository: name it as git, or a folder below it"
    if not os.access(folder, os.W_OK | os.X_OK):
        return "the folder may not be written"
    # what would be made there
    return _inside(folder / "of a run")


def _inside(folder: Path) -> str | None:
    """Why nothing is put there: it would be a stray file of that run, and whoever has a run has all that is in it."""
    around = run_around(folder)
    return None if around is None else f"the folder lies inside the run {around}"
