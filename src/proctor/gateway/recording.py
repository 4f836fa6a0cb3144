"""What is kept of a reply: its decoded bytes without secrets, small ones in memory, and when its chunks came."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

from proctor.core.redact import Redactor
from proctor.core.waiting import in_thread
from proctor.evidence.disk import write_refusal
from proctor.evidence.packs import MAX_FRAME_CONTENT
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.spool import Spool
from proctor.gateway.exchange import Recorded

P = ParamSpec("P")
T = TypeVar("T")

# A map of more chunks would not fit into a frame of a pack.
MAX_CHUNKS = 32_768
# Secrets are looked for in pieces of about this size.
_PIECE = 256 * 2**10
# No secret, and no variable with its value, goes on over one of these: the end of an event, of a line, of a member.
_ENDS = (b"\n\n", b"\n", b'",', b"},", b"],")
# longer than all that looks like one
_MOST_SECRET = 8 * 2**10
_IN_TOKENS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=.%\\-")


class Recording:
    """Of one reply. `take` its bytes as they are decoded, `keep` now and then, and `close` at the end."""

    def __init__(self, run: RunFolder, redactor: Redactor) -> None:
        self._redactor = redactor
        self._run = run
        self._spool: Spool | None = None
        self._waiting: list[bytes] = []
        self._rest = b""
        self._known = redactor.stream()
        self._size = 0
        self._changed = False
        self._offset = 0
        self._offsets = array("Q")
        self._times = array("Q")

    @property
    def full(self) -> bool:
        """Whether `keep` has something to do."""
        return self._size > (MAX_FRAME_CONTENT if self._spool is None else _PIECE)

    def chunk(self, at_ns: int) -> None:
        """What is taken from here on came in one piece, at that time."""
        if len(self._offsets) < MAX_CHUNKS and (not self._offsets or self._offset > self._offsets[-1]):
            self._offsets.append(self._offset)
            self._times.append(at_ns)
        elif self._offsets and self._offset == self._offsets[-1]:
            # nothing came of the piece before
            self._times[-1] = at_ns

    def take(self, data: bytes) -> None:
        """The next bytes."""
        self._waiting.append(data)
        self._size += len(data)
        self._offset += len(data)

    async def keep(self) -> None:
        """Write what is waiting to disk, as far as it can be cut. Raises Refusal `disk_full`, `write_failed`."""
        self._spool = self._spool or Spool(self._run)
        await self._blocking(self._write, self._spool, False)

    async def close(self, *, chunks: bool, flags: tuple[str, ...] = ()) -> Recorded:
        """All of it.

        Args:
            chunks: whether the map of chunks is kept, where it is that of what is recorded.
            flags: of ours.

        Raises Refusal `disk_full`, `write_failed`.
        """
        if self._spool is not None:
            await self._blocking(self._write, self._spool, True)
            content = await self._blocking(self._spool.finish)
        else:
            content = self._clean(b"".join(self._waiting))
        kept = self._map() if chunks and self._offset and not self._changed else None
        return Recorded(content, kept, flags)

    def discard(self) -> None:
        """Nothing of it is kept."""
        # what cannot be removed now, is when the run is taken up
        with suppress(OSError):
            if self._spool is not None:
                self._spool.discard()

    async def _blocking(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await in_thread(work, *args, **kwargs)
        except OSError as error:
            raise write_refusal(error, "blobs") from error

    def _map(self) -> bytes:
        if self._offsets[-1] == self._offset:
            # nothing came of the last piece
            self._offsets.pop()
        first = self._times[0]
        pairs = zip(self._offsets, self._times, strict=False)
        # of whole numbers alone, this is canonical JSON
        return b"[%b]" % b",".join(b"[%d,%d]" % (offset, at - first) for offset, at in pairs)

    def _write(self, spool: Spool, all_of_it: bool) -> None:
        # known values are found over every border, so that only what looks like a secret must not be cut
        data = self._rest + b"".join(map(self._known.feed, self._waiting))
        self._waiting, self._size = [], 0
        if all_of_it:
            data += self._known.close()
        self._changed = self._changed or self._known.found
        at = 0
        while len(data) - at > _PIECE:
            end = _cut(data, at, at + _PIECE)
            spool.write(self._clean(data[at:end]))
            at = end
        self._rest = data[at:]
        if all_of_it:
            spool.write(self._clean(self._rest))

    def _clean(self, data: bytes) -> bytes:
        clean = self._redactor.bytes(data)
        self._changed = self._changed or clean != data
        return clean


def _cut(data: bytes, start: int, end: int) -> int:
    """Where a piece from `start` ends, at the latest at `end`: where no secret goes on, if that can be."""
    for ending in _ENDS:
        at = data.rfind(ending, start, end)
        if at > start:
            return at + len(ending)
    for at in range(end, end - _MOST_SECRET, -1):
        if data[at - 1] not in _IN_TOKENS:
            return at
    return end
