"""Where a request goes, and what can come of sending it once: a whole reply, or one of four ways of having none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from proctor.gateway.wire.base import Call


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A whole reply. `headers` have lower-case names; `body` is decoded.

    `timing` has monotonic ns by phase (`sent`, `first_byte`, `last_byte`), and is empty where nothing crossed a wire.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    timing: Mapping[str, int] = field(default_factory=dict)


class SendFailed(Exception):
    """There is no whole reply. The class says what is known; `status` is the reply's where one began."""

    def __init__(self, message: str, *, status: int | None = None, timing: Mapping[str, int] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.timing = dict(timing or {})


class NotSent(SendFailed):
    """No byte of the request left: there was no connection."""


class Late(SendFailed):
    """The deadline passed after the request may have left."""


class Cut(SendFailed):
    """The connection broke, or the reply breaks the rules of HTTP or of its encoding, after the request left."""


class TooLarge(SendFailed):
    """The reply is larger than any answer of a model."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request of an agent's own, as it goes on.

    `target` is path and query as they came; `headers` are in their order, without hop-by-hop ones and credentials.
    `stream`: a stream is asked for, whose deadline counts between bytes.
    """

    target: str
    headers: Sequence[tuple[str, str]]
    body: bytes
    stream: bool


class Incoming(Protocol):
    """A reply that is coming: bytes as they are on the wire, in their content encoding. `timing` as in `HttpReply`."""

    @property
    def status(self) -> int:
        """From 200 to 999."""
        ...

    @property
    def headers(self) -> Sequence[tuple[str, str]]:
        """In their order."""
        ...

    @property
    def timing(self) -> Mapping[str, int]:
        """Complete once all was read."""
        ...

    async def read(self) -> bytes:
        """The next bytes, as they come; none at the end. Raises SendFailed."""
        ...


class Upstream(Protocol):
    """Where requests go."""

    def open(self, out: Outgoing, *, deadline_sec: float) -> AbstractAsyncContextManager[Incoming]:
        """Send once, and read while the block runs: what is not read then is cut off.

        Args:
            deadline_sec: from here to the reply's head; then to its end, or, of a stream, between two pieces of it.

        Raises SendFailed: no reply began.
        """
        ...

    async def send(self, call: Call, *, deadline_sec: float) -> HttpReply:
        """Send once. Cancelled, the request may have been sent all the same.

        Raises:
            SendFailed: there is no whole reply.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
