"""What a command writes, on its way to files of the host."""

from __future__ import annotations

import os
import select

_PIECE = 1 << 18
# what a pipe holds at most, unless the host's root lets it hold more
_PIPE_BYTES = 1 << 20


class Output:
    """One stream on its way to a host file: what is beyond the cap is read and dropped."""

    def __init__(self, target: int, cap: int) -> None:
        self.source, self.writer = os.pipe()
        # A command can read its own output away between our poll and our read.
        os.set_blocking(self.source, False)
        self._target, self._room = target, cap
        self.kept = self.dropped = 0

    def pump(self) -> bool:
        """Move what is there; False at the end."""
        try:
            data = os.read(self.source, _PIECE)
        except BlockingIOError:
            return True
        keep = data[: self._room]
        self._room -= len(keep)
        self.kept += len(keep)
        self.dropped += len(data) - len(keep)
        while keep:
            keep = keep[os.write(self._target, keep) :]
        return bool(data)

    def pump_out(self) -> bool:
        """Move what is there now, and not what somebody writes meanwhile; False at the end."""
        for _ in range(_PIPE_BYTES // _PIECE):
            if not _is_readable(self.source):
                return True
            if not self.pump():
                return False
        return True

    def seal(self) -> None:
        """Keep nothing more: the host's file stays as it is now."""
        self._room = 0
        os.close(self._target)


def drop(held: list[Output], *, until: int) -> None:
    """Read away what comes from `held` until nobody can write there any more, or the descriptor `until` is readable."""
    sources = {output.source: output for output in held}
    poller = select.poll()
    for fd in (*sources, until):
        poller.register(fd, select.POLLIN)
    while sources:
        for fd, _ in poller.poll():
            if fd == until:
                return
            if not sources[fd].pump():
                poller.unregister(fd)
                del sources[fd]


def _is_readable(fd: int) -> bool:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(0))
