"""A reply on its way to an agent inside: what passes is read, kept, and searched for the run's keys, as it comes."""

from __future__ import annotations

from proctor.core.redact import Redactor
from proctor.gateway.exchange import Recorded
from proctor.gateway.recording import Recording
from proctor.gateway.upstream import Cut, TooLarge
from proctor.gateway.wire.base import Reader, Reply
from proctor.gateway.wire.decoding import Decoder, Undecodable

# What no answer comes near to, decoded: an endless one would fill the disk.
MAX_PASSED = 2**30


class KeyEchoed(Cut):
    """A key came back in an encoding, in which it cannot be taken out."""


class Tee:
    """Of one reply. `echoed` is whether a key came back.

    Args:
        encoding: of the reply, as its header says.

    Raises Undecodable: it is none that is known.
    """

    def __init__(self, reader: Reader, recording: Recording, redactor: Redactor, encoding: str | None) -> None:
        self._reader = reader
        self._recording = recording
        self._decoder = Decoder(encoding)
        self._hidden = redactor.stream()
        self._decoded = 0
        self._held: list[bytes] = []

    @property
    def echoed(self) -> bool:
        """Whether a key came back."""
        return self._hidden.found

    async def take(self, chunk: bytes, at_ns: int) -> bytes:
        """The next bytes from the wire; what of them goes on now.

        Raises:
            SendFailed: they are not of their encoding, there are too many, or a key is in them and cannot be taken out.
            Refusal: the disk's.
        """
        self._recording.chunk(at_ns)
        if self._decoder.plain:
            self._look(chunk)
            if self._recording.full:
                await self._recording.keep()
            return self._hidden.feed(chunk)
        self._held.append(chunk)
        try:
            for piece in self._decoder.feed(chunk):
                self._look(piece)
                self._hidden.feed(piece)
                if self._recording.full:
                    await self._recording.keep()
        except Undecodable as error:
            raise Cut(str(error)) from error
        if self._hidden.found:
            raise KeyEchoed("the reply holds a key, in an encoding in which it cannot be taken out")
        return b"" if self._hidden.pending or self._decoder.waiting else self._release()

    def end(self) -> bytes:
        """What is still to go on: all came. Raises SendFailed: its encoding does not end here."""
        if not self._decoder.whole:
            raise Cut("the reply ends in the middle of its encoding")
        rest = self._hidden.close()
        return rest if self._decoder.plain else self._release()

    def reply(self) -> Reply:
        """The reply, as far as it came."""
        return self._reader.close()

    async def recorded(self, *, chunks: bool, flags: tuple[str, ...]) -> Recorded:
        """What is kept of it. Raises Refusal, the disk's."""
        return await self._recording.close(chunks=chunks, flags=flags)

    def _look(self, data: bytes) -> None:
        self._decoded += len(data)
        if self._decoded > MAX_PASSED:
            raise TooLarge(f"the reply has more than {MAX_PASSED} bytes")
        self._reader.feed(data)
        self._recording.take(data)

    def _release(self) -> bytes:
        data = b"".join(self._held)
        self._held.clear()
        return data
