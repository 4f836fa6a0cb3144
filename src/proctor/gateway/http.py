"""One request to a provider over HTTP and the whole of its reply, bounded in time and size. No retry happens here.

The key is put in here and nowhere above. Redirects are not followed: it goes to the host that the study names.
"""

from __future__ import annotations

import asyncio
import io
import zlib
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from proctor.core.clock import Clock
from proctor.core.tokens import Admitted
from proctor.gateway.upstream import Cut, HttpReply, Late, NotSent, TooLarge
from proctor.gateway.wire.base import Call, endpoint

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

# No answer of a model comes near: what is larger is a fault or an attack, and is not held in memory.
MAX_DECODED = 64 << 20
MAX_RAW = 100_000_000
# A host that swallows packets must not use up the deadline of a whole answer on each try.
CONNECT_SEC = 30.0
# Servers drop idle connections; a request that meets one that is just being dropped has to be paid for.
KEEP_ALIVE_SEC = 15.0
# A status has three digits, the first of them no zero; the client's own reader takes others.
MIN_STATUS = 100

_OWN_HEADERS = {"accept-encoding": "gzip", "user-agent": "proctor"}


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
        self._auth = dict([auth] if auth is not None else [])
        self._clock = clock
        self._session: ClientSession | None = None

    async def send(self, call: Call, *, deadline_sec: float) -> HttpReply:
        """Send once; the deadline covers connecting, sending and all of the reply. Raises SendFailed."""
        from aiohttp import ClientError

        timing: dict[str, int] = {}
        status: list[int] = []
        try:
            async with asyncio.timeout(deadline_sec):
                return await self._exchange(call, timing, status)
        except (TimeoutError, ClientError, OSError, ValueError) as error:
            # aiohttp raises ValueError for a reply, or a URL, that it cannot take apart
            said = type(error).__name__
            seen = status[0] if status else None
            if "sent" not in timing:
                raise NotSent(f"no connection to {self._host}: {said}") from error
            if isinstance(error, TimeoutError):
                raise Late(f"no whole reply within {deadline_sec:g} s", status=seen, timing=timing) from error
            raise Cut(f"the reply broke off: {said}", status=seen, timing=timing) from error

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _exchange(self, call: Call, timing: dict[str, int], status: list[int]) -> HttpReply:
        posted = self._open().post(
            endpoint(self._base_url, call.path),
            # a file, because aiohttp warns of long bytes
            data=io.BytesIO(call.body),
            headers={**_OWN_HEADERS, **call.headers, **self._auth},
            allow_redirects=False,
            trace_request_ctx=timing,
        )
        async with posted as response:
            timing["first_byte"] = self._clock.mono_ns()
            if response.status < MIN_STATUS:
                raise Cut("the reply has a status that HTTP does not know", timing=timing)
            status.append(response.status)
            body = await self._body(response, timing)
            timing["last_byte"] = self._clock.mono_ns()
            headers = {name.lower(): value for name, value in response.headers.items()}
            return HttpReply(response.status, headers, body, timing)

    async def _body(self, response: ClientResponse, timing: dict[str, int]) -> bytes:
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip", "x-gzip", ""):
            raise Cut("the reply has an encoding that was not asked for", status=response.status, timing=timing)
        decoder = _Gunzip() if "gzip" in encoding else None
        chunks: list[bytes] = []
        raw = decoded = 0
        async for chunk in response.content.iter_any():
            raw += len(chunk)
            try:
                data = chunk if decoder is None else decoder.feed(chunk, MAX_DECODED + 1 - decoded)
            except zlib.error as error:
                raise Cut("the reply is not gzip", status=response.status, timing=timing) from error
            decoded += len(data)
            if raw > MAX_RAW or decoded > MAX_DECODED:
                message = f"the reply has more than {MAX_RAW} bytes, or {MAX_DECODED} decoded"
                raise TooLarge(message, status=response.status, timing=timing)
            chunks.append(data)
        if decoder is not None and not decoder.whole:
            raise Cut("the reply ends in the middle of its gzip data", status=response.status, timing=timing)
        return b"".join(chunks)

    def _open(self) -> ClientSession:
        if self._session is None:
            # not at import: a run without such a model, and every other command, does without the time that takes
            import aiohttp

            tracing = aiohttp.TraceConfig()
            tracing.on_connection_create_end.append(self._connected)
            tracing.on_connection_reuseconn.append(self._connected)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_SEC),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SEC),
                auto_decompress=False,
                trust_env=False,
                trace_configs=[tracing],
            )
        return self._session

    async def _connected(self, session: ClientSession, context: Any, params: Any) -> None:
        # from here on bytes may leave: before it, nothing can be owed
        context.trace_request_ctx["sent"] = self._clock.mono_ns()


class _Gunzip:
    """Gunzip in pieces, several members too, never more than asked for."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)
        self._begun = False

    @property
    def whole(self) -> bool:
        """Whether the last member has ended (or none began)."""
        return self._member.eof or not self._begun

    def feed(self, data: bytes, at_most: int) -> bytes:
        """The next bytes decoded, `at_most` of them: who gets as many stops. Raises zlib.error."""
        pieces: list[bytes] = []
        while data and at_most > 0:
            if self._member.eof:
                self._member = zlib.decompressobj(wbits=31)
            self._begun = True
            pieces.append(self._member.decompress(data, at_most))
            at_most -= len(pieces[-1])
            data = self._member.unused_data
        return b"".join(pieces)
