"""A request of an agent inside, as it came: who sends it, what of it goes on, and its body, no larger than allowed."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote_plus

from proctor.core.reasons import Reason
from proctor.core.redact import Redactor
from proctor.core.refusal import Refusal
from proctor.gateway.wire.decoding import acceptable
from proctor.gateway.wire.requests import MAX_REQUEST_BYTES

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest

# of one connection, by RFC 9110; those that `Connection` names come on top
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_CREDENTIALS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
# some servers take another method from these than that of the request line
_OVERRIDES = ("x-http-method", "x-http-method-override", "x-method-override")
# what is about this side alone, or is said anew for the other
_OWN = ("host", "content-length", "expect", "cookie", "accept-encoding")
_NOT_SENT = _HOP_BY_HOP | {*_CREDENTIALS, *_OVERRIDES, *_OWN}
_NOT_PASSED = _HOP_BY_HOP | {"content-length", "set-cookie", "alt-svc"}
_QUERY_KEY = "key"
# Many bodies at once, each of which is allowed, could be more than there is memory for.
MAX_BODIES_BYTES = 4 * MAX_REQUEST_BYTES


def is_from(request: BaseRequest, token: str) -> bool:
    """Whether a request brings this token, in one of the places in which SDKs put a key."""
    headers = request.headers
    said = [given for name in _CREDENTIALS if (given := headers.get(name)) is not None]
    if request.query_string:
        said.append(dict(parse_qsl(request.query_string)).get(_QUERY_KEY, ""))
    wanted = token.encode()
    found = False
    for each in said:
        scheme, _, rest = each.partition(" ")
        given = rest.strip() if scheme.lower() == "bearer" else each
        found |= hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted)
    return found


def target_of(request: BaseRequest, path: str) -> str:
    """Path and query as they go on: as they came, but for a key."""
    query = "&".join(
        part for part in _raw_query(request).split("&") if unquote_plus(part.partition("=")[0]) != _QUERY_KEY
    )
    return f"{path}?{query}" if query else path


def _raw_query(request: BaseRequest) -> str:
    return request.raw_path.partition("?")[2].partition("#")[0]


def sent_headers(request: BaseRequest, *, encoded: bool) -> list[tuple[str, str]]:
    """The headers that go on, in their order.

    Args:
        encoded: whether the body goes on in the encoding in which it came.
    """
    left_out = _NOT_SENT if encoded else _NOT_SENT | {"content-encoding"}
    kept = list(_kept(request.headers.items(), left_out))
    return [*kept, ("Accept-Encoding", acceptable(request.headers.get("accept-encoding")))]


def encoding_of(headers: Iterable[tuple[str, str]]) -> str | None:
    """The encodings of a body, in the order in which they were applied, of all headers that say some; else None."""
    said = [value for name, value in headers if name.lower() == "content-encoding"]
    return ", ".join(said) if said else None


def passed_headers(headers: Iterable[tuple[str, str]], redactor: Redactor) -> list[tuple[str, str]]:
    """The headers of a reply that go on to the agent, in their order, without the run's keys.

    One that has a key in its name does not: with a mark in its place it would be no header.
    """
    kept = list(_kept(headers, _NOT_PASSED))
    every = "\n".join(text for pair in kept for text in pair)
    if _clean(redactor, every) == every:
        return kept
    return [(name, _clean(redactor, value)) for name, value in kept if _clean(redactor, name) == name]


def _clean(redactor: Redactor, text: str) -> str:
    return redactor.certain(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def _kept(headers: Iterable[tuple[str, str]], left_out: frozenset[str]) -> Iterator[tuple[str, str]]:
    pairs = list(headers)
    named = {word.strip().lower() for name, value in pairs if name.lower() == "connection" for word in value.split(",")}
    return ((name, value) for name, value in pairs if (low := name.lower()) not in left_out and low not in named)


class Bodies:
    """How many bytes of requests one agent may have standing in memory at once."""

    def __init__(self) -> None:
        self._bytes = 0

    @contextmanager
    def room(self) -> Iterator[Callable[[int], None]]:
        """For one request, while the block runs: what takes more of it, or raises Refusal `request_too_large`."""
        own = 0

        def take(more: int) -> None:
            nonlocal own
            if self._bytes + more > MAX_BODIES_BYTES:
                raise Refusal(
                    Reason.REQUEST_TOO_LARGE,
                    "the bodies of all requests that are under way are larger than what is kept at once",
                    required={"bytes": MAX_BODIES_BYTES},
                )
            own += more
            self._bytes += more

        try:
            yield take
        finally:
            self._bytes -= own


async def read_body(request: BaseRequest, take: Callable[[int], None]) -> bytes:
    """The body as it came.

    Args:
        take: of `Bodies`.

    Raises Refusal `request_too_large`; ConnectionError: the client is gone.
    """
    if (request.content_length or 0) > MAX_REQUEST_BYTES:
        raise _too_large(request.content_length)
    if request.headers.get("expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # what was written is not of the answer
        request.writer.output_size = 0
    pieces: list[bytes] = []
    size = 0
    while piece := await request.content.readany():
        size += len(piece)
        if size > MAX_REQUEST_BYTES:
            raise _too_large(None)
        take(len(piece))
        pieces.append(piece)
    return b"".join(pieces)


def _too_large(observed: int | None) -> Refusal:
    return Refusal(
        Reason.REQUEST_TOO_LARGE,
        "the request's body is larger than any that is sent",
        observed={"bytes": observed},
        required={"bytes": MAX_REQUEST_BYTES},
    )
