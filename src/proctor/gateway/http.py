"""One request to a provider over HTTP, and its reply: whole, or as it comes. No retry happens here.

The key is put in here and nowhere above. Redirects are not followed: it goes to the host that the study names.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from proctor.core.clock import Clock
from proctor.core.tokens import Admitted
from proctor.gateway.inbound import encoding_of
from proctor.gateway.upstream import Cut, HttpReply, Late, NotSent, Outgoing, TooLarge
from proctor.gateway.wire.base import Call, endpoint
from proctor.gateway.wire.decoding import Decoder, Undecodable

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, ClientTimeout, TCPConnector

# No answer of a model comes near: what is larger is a fault or an attack, and is not held in memory.
MAX_DECODED = 64 << 20
MAX_RAW = 100_000_000
# A host that swallows packets must not use up the deadline of a whole answer on each try.
CONNECT_SEC = 30.0
# Servers drop idle connections; a request that meets one that is just being dropped has to be paid for.
KEEP_ALIVE_SEC = 15.0
_LONG = 2**20
# What ends a reply has three digits, and the first is neither zero nor one; the client's own reader takes others.
MIN_STATUS = 200

_OWN_HEADERS = {"accept-encoding": "gzip", "user-agent": "proctor"}
# what the client would add where an agent's request has none
_NOT_ADDED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


class HttpUpstream:
    """A provider at its base URL. Proxies and credentials that the environment names are not used.

    Args:
        base_url: as `endpoint` takes it.
        auth: name and value of the header that carries the key; None where there is none.

    Raises ValueError: the base URL is none.
    """

    def __init__(self, admitted: Admitted, base_url: str, auth: tuple[str, str] | None, clock: Clock) -> None:
        self._base_url = base_url
        self._host = urlsplit(base_url).hostname
        self._auth = [auth] if auth is not None else []
        self._clock = clock
        self._session: ClientSession | None = None

    async def send(self, call: Call, *, deadline_sec: float) -> HttpReply:
        """Send once; the deadline covers connecting, sending and all of the reply. Raises SendFailed."""
        headers = tuple({**_OWN_HEADERS, **call.headers}.items())
        out = Outgoing(call.path, headers, call.body, stream=False)
        async with self.open(out, deadline_sec=deadline_sec) as coming:
            named = {name.lower(): value for name, value in coming.headers}
            body = await _whole(coming, encoding_of(coming.headers) or "identity")
            return HttpReply(coming.status, named, body, coming.timing)

    @asynccontextmanager
    async def open(self, out: Outgoing, *, deadline_sec: float) -> AsyncIterator[HttpIncoming]:
        """See `Upstream.open`."""
        timing: dict[str, int] = {}
        failing = _Failing(self._host, deadline_sec, timing)
        _TIMING.set(timing)
        path, _, query = out.target.partition("?")
        url = endpoint(self._base_url, path)
        if query:
            # a base URL may have a query of its own, such as a version
            url += ("&" if "?" in url else "?") + query
        response: ClientResponse | None = None
        try:
            try:
                # where a whole reply is asked for, the client's own limit says the same
                async with asyncio.timeout(deadline_sec) if out.stream else nullcontext():
                    response = await self._open().post(
                        url,
                        # bytes go out in one piece with the head; aiohttp warns of long ones
                        data=out.body if len(out.body) <= _LONG else io.BytesIO(out.body),
                        headers=[*out.headers, *self._auth],
                        skip_auto_headers=_NOT_ADDED,
                        allow_redirects=False,
                        timeout=_limits(deadline_sec, out.stream),
                    )
            except failing.kinds as error:
                failing.say(error)
            timing["first_byte"] = self._clock.mono_ns()
            if response.status < MIN_STATUS:
                raise Cut("the reply has a status that ends none", timing=timing)
            failing.status = response.status
            yield HttpIncoming(response, timing, failing, self._clock)
        finally:
            if response is not None:
                response.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> ClientSession:
        if self._session is None:
            # not at import: a run without such a model, and every other command, does without the time that takes
            import aiohttp

            self._session = aiohttp.ClientSession(
                connector=_connector(self._clock),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            )
        return self._session


@lru_cache(maxsize=64)
def _limits(deadline_sec: float, stream: bool) -> ClientTimeout:
    from aiohttp import ClientTimeout

    return ClientTimeout(
        total=None if stream else deadline_sec,
        sock_connect=CONNECT_SEC,
        sock_read=deadline_sec if stream else None,
    )


# of the request that this task sends
_TIMING: ContextVar[dict[str, int]] = ContextVar("_TIMING")


def _connector(clock: Clock) -> TCPConnector:
    """One that notes when a request has its connection; a trace of aiohttp's does so at ten times the cost."""
    from aiohttp import ClientRequest, TCPConnector
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

    class Connector(TCPConnector):
        async def connect(self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout) -> Connection:
            connection = await super().connect(req, traces, timeout)
            # from here on bytes may leave: before it, nothing can be owed
            _TIMING.get()["sent"] = clock.mono_ns()
            return connection

    return Connector(limit=0, keepalive_timeout=KEEP_ALIVE_SEC)


class _Failing:
    """What a fault of the connection means, by how far the request came; `status` is None before the reply's head.

    `kinds` are those faults.
    """

    def __init__(self, host: str | None, deadline_sec: float, timing: Mapping[str, int]) -> None:
        from aiohttp import ClientError

        self.status: int | None = None
        # aiohttp raises ValueError for a reply, or a URL, that it cannot take apart
        self.kinds: tuple[type[Exception], ...] = (TimeoutError, ClientError, OSError, ValueError)
        self._host = host
        self._deadline_sec = deadline_sec
        self._timing = timing

    def say(self, error: Exception) -> NoReturn:
        """Raises SendFailed."""
        said, timing = type(error).__name__, self._timing
        if "sent" not in timing:
            raise NotSent(f"no connection to {self._host}: {said}") from error
        if isinstance(error, TimeoutError):
            raise Late(f"no whole reply within {self._deadline_sec:g} s", status=self.status, timing=timing) from error
        raise Cut(f"the reply broke off: {said}", status=self.status, timing=timing) from error


class HttpIncoming:
    """An `Incoming` over HTTP."""

    def __init__(self, response: ClientResponse, timing: dict[str, int], failing: _Failing, clock: Clock) -> None:
        """For `HttpUpstream.open`."""
        self.status = response.status
        self.timing: Mapping[str, int] = timing
        self._timing = timing
        self._response = response
        self._failing = failing
        self._clock = clock

    @property
    def headers(self) -> Sequence[tuple[str, str]]:
        """As they came, in their order."""
        return tuple(self._response.headers.items())

    async def read(self) -> bytes:
        """See `Incoming.read`."""
        try:
            data = await self._response.content.readany()
        except self._failing.kinds as error:
            self._failing.say(error)
        if not data:
            self._timing["last_byte"] = self._clock.mono_ns()
        return data


async def _whole(coming: HttpIncoming, encoding: str) -> bytes:
    """All of a reply, decoded. Raises SendFailed."""
    encoding = encoding.strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", ""):
        raise Cut("the reply has an encoding that was not asked for", status=coming.status, timing=coming.timing)
    decoder = Decoder(encoding)
    chunks: list[bytes] = []
    raw = decoded = 0
    try:
        while chunk := await coming.read():
            raw += len(chunk)
            for piece in decoder.feed(chunk):
                decoded += len(piece)
                if decoded > MAX_DECODED:
                    break
                chunks.append(piece)
            if raw > MAX_RAW or decoded > MAX_DECODED:
                message = f"the reply has more than {MAX_RAW} bytes, or {MAX_DECODED} decoded"
                raise TooLarge(message, status=coming.status, timing=coming.timing)
    except Undecodable as error:
        raise Cut("the reply is not gzip", status=coming.status, timing=coming.timing) from error
    if not decoder.whole:
        raise Cut("the reply ends in the middle of its gzip data", status=coming.status, timing=coming.timing)
    return b"".join(chunks)
