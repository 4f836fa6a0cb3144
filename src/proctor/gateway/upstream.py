"""One request to a provider and the whole of its reply, bounded in time and size. No retry happens here.

The key is put in here and nowhere above. Redirects are not followed: a key goes to the host that the study names.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from proctor.core.clock import Clock
from proctor.core.tokens import Admitted
from proctor.gateway.wire.base import Call

if TYPE_CHECKING:
    import aiohttp

# No answer of a model comes near: what is larger is a fault or an attack, and is not held in memory.
MAX_DECODED = 64 << 20
MAX_RAW = 100_000_000
# A host that swallows packets must not use up the deadline of a whole answer on each try.
CONNECT_SEC = 30.0
# Providers drop idle connections after a minute or so; a request on one that is just being dropped must be paid for.
KEEP_ALIVE_SEC = 15.0


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
    """There is no whole reply. The subclass says what is known; `status` is the reply's where one began."""

    def __init__(self, message: str, *, status: int | None = None, timing: Mapping[str, int] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.timing = dict(timing or {})


class NotSent(SendFailed):
    """No byte of the request left: no connection was made."""


class Late(SendFailed):
    """The deadline passed after the request may have left."""


class Cut(SendFailed):
    """The connection broke, or the reply breaks the rules of HTTP or of its encoding, after the request left."""


class TooLarge(SendFailed):
    """The reply is larger than any may be."""


class Upstream(Protocol):
    """Where requests go."""

    async def send(self, call: Call, *, deadline_sec: float) -> HttpReply:
        """Send once. Cancelled, the request may have been sent.

        Raises:
            SendFailed: there is no whole reply.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
