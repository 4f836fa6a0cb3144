"""The lock: one process writes a run, and any other can tell a dead writer from a live one."""

from __future__ import annotations

import fcntl
import os
import platform
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import proctor
from proctor.core import strictjson
from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.disk import is_regular, unreadable, write_refusal
from proctor.evidence.runfolder import RunFolder

# A reader holds the lock for the moment in which it looks; a writer that meets one tries again.
_TRIES = 50
_BETWEEN_TRIES_SEC = 0.002
_MAX_BYTES = 65_535
_OPEN = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True)
class LockInfo:
    """What the lock says. A field is None where there is no lock file, or it does not say."""

    live: bool
    pid: int | None = None
    boot_id: str | None = None
    host: str | None = None
    control: str | None = None
    same_boot: bool | None = None


class Lock:
    """The right to write a run, held until `release` or the end of the process."""

    def __init__(self, run: RunFolder, descriptor: int) -> None:
        self._path = run.lock_path
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, run: RunFolder, *, extra: Mapping[str, Any]) -> Lock:
        """Take the lock, or refuse within a tenth of a second.

        Args:
            extra: further facts for readers, such as `control`: the path of the control socket.

        Raises:
            Refusal: `run_locked` names who holds it; `out_unusable` where something else than a file stands there;
                `disk_full`, `write_failed`.
        """
        try:
            if os.path.lexists(run.lock_path) and not is_regular(run.lock_path):
                raise _no_file(Reason.OUT_UNUSABLE)
            # never to wait, whatever took the file's place since
            descriptor = os.open(run.lock_path, _OPEN | os.O_RDWR | os.O_CREAT, 0o644)
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise _no_file(Reason.OUT_UNUSABLE)
                if not _try_exclusive(descriptor):
                    raise _locked(run.lock_path, descriptor)
                content = encode({**dict(extra), **opening()})
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, content, 0)
            except BaseException:
                os.close(descriptor)
                raise
        except OSError as error:
            raise write_refusal(error, run.lock_path.name) from error
        return cls(run, descriptor)

    def holds(self, run: RunFolder) -> bool:
        """Whether this is the lock of `run`, still held."""
        return self._descriptor >= 0 and self._path == run.lock_path

    def release(self) -> None:
        """Let go, once or more. The file stays: it says who wrote last."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


def opening() -> dict[str, Any]:
    """`{boot_id, host, pid, version}` of this process, as it stands in `run.admitted` and `run.resumed`."""
    return {"boot_id": _boot_id(), "host": platform.node(), "pid": os.getpid(), "version": proctor.__version__}


def read_lock(run: RunFolder) -> LockInfo:
    """Who writes the run now, or wrote it last.

    Raises:
        Refusal: `evidence_unreadable` where it is no file, or may not be read.
    """
    try:
        # asked before opening: to open a device is to act on it
        if not is_regular(run.lock_path):
            raise _no_file(Reason.EVIDENCE_UNREADABLE)
        descriptor = os.open(run.lock_path, _OPEN | os.O_RDONLY)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _no_file(Reason.EVIDENCE_UNREADABLE)
            return _info(descriptor, live=not _try(descriptor, fcntl.LOCK_SH))
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return LockInfo(live=False)
    except OSError as error:
        raise unreadable("the lock", "lock", error) from error


def _no_file(reason: Reason) -> Refusal:
    return Refusal(reason, "what stands in the lock's place is no file", path="lock", remedy="Remove it.")


def _try_exclusive(descriptor: int) -> bool:
    for _ in range(_TRIES):
        if _try(descriptor, fcntl.LOCK_EX):
            return True
        time.sleep(_BETWEEN_TRIES_SEC)
    return False


def _try(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _locked(path: Path, descriptor: int) -> Refusal:
    holder = _info(descriptor, live=True)
    who = "a process that does not say its name" if holder.pid is None else f"process {holder.pid} on {holder.host}"
    return Refusal(
        Reason.RUN_LOCKED,
        f"{who} writes this run",
        path=str(path),
        observed={"pid": holder.pid, "host": holder.host, "boot_id": holder.boot_id},
    )


def _info(descriptor: int, *, live: bool) -> LockInfo:
    try:
        content = strictjson.loads(os.pread(descriptor, _MAX_BYTES, 0))
    except Refusal:
        content = None
    said = content if isinstance(content, dict) else {}
    boot_id, own = _text(said.get("boot_id")), _boot_id()
    pid = said.get("pid")
    return LockInfo(
        live=live,
        pid=pid if type(pid) is int else None,
        boot_id=boot_id,
        host=_text(said.get("host")),
        control=_text(said.get("control")),
        same_boot=None if boot_id is None or own is None else boot_id == own,
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _boot_id() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return None
