"""Host files that take a command's output, each up to a cap."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from proctor.core.files import NO_SPACE
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.docker.hijack import STDERR, Frame


class Sinks:
    """Where standard output and error go: both into one file where there is no second."""

    def __init__(self, stdout: Path, stderr: Path | None, cap: int) -> None:
        """Raises Refusal (OUT_UNUSABLE, DISK_FULL)."""
        self._cap = cap
        self._out = self._open(stdout)
        try:
            self._err = self._open(stderr) if stderr is not None else self._out
        except Refusal:
            os.close(self._out)
            raise
        self._sizes = {self._out: 0, self._err: 0}
        self.dropped = 0

    @property
    def size(self) -> int:
        """Bytes that were kept."""
        return sum(self._sizes.values())

    def take(self, frame: Frame) -> None:
        """Keep a piece, or what of it the cap allows. Raises Refusal (OUT_UNUSABLE, DISK_FULL)."""
        fd = self._err if frame.stream == STDERR else self._out
        room = self._cap - self._sizes[fd]
        view = memoryview(frame.data)[: max(0, room)]
        self.dropped += len(frame.data) - len(view)
        self._sizes[fd] += len(view)
        try:
            while view:
                view = view[os.write(fd, view) :]
        except OSError as fault:
            raise _unusable(fault) from fault

    def clear(self) -> None:
        """Forget what was kept: it is no output of a command."""
        for fd in self._sizes:
            with contextlib.suppress(OSError):  # no file, but a device
                os.lseek(fd, 0, os.SEEK_SET)
                os.ftruncate(fd, 0)
            self._sizes[fd] = 0
        self.dropped = 0

    def close(self) -> None:
        """Close the files."""
        for fd in self._sizes:
            os.close(fd)

    def _open(self, path: Path) -> int:
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        except OSError as fault:
            raise _unusable(fault) from fault


def _unusable(fault: OSError) -> Refusal:
    full = fault.errno in NO_SPACE
    return Refusal(Reason.DISK_FULL if full else Reason.OUT_UNUSABLE, f"a command's output cannot be kept: {fault}")
