"""What every wire format answers to: a conversation becomes a request, the bytes that come back become a reply.

Replies are hostile input. A reader never raises for what a provider sent: what does not fit is a flag, and what the
provider says went wrong is a `WireError`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

from proctor.core.models import Finish, Message, ToolCall, ToolSpec
from proctor.core.usage import Usage
from proctor.study.actors import ModelDesign

_VERSION_SEGMENT = re.compile(r"v[0-9]+(?:(?:alpha|beta)[0-9]*)?", re.ASCII)


class Flag(StrEnum):
    """What of a reply, or of its usage, does not fit together."""

    TOO_LARGE = "too_large"
    UNREADABLE = "unreadable"
    TRUNCATED = "truncated"
    MALFORMED = "malformed"
    NO_ANSWER = "no_answer"
    NO_FINISH = "no_finish"
    SEVERAL_CHOICES = "several_choices"
    RESTARTED = "restarted"
    USAGE_INVALID = "usage_invalid"
    USAGE_SHRANK = "usage_shrank"
    PART_EXCEEDS_WHOLE = "part_exceeds_whole"
    TOTAL_DIFFERS = "total_differs"
    TOTAL_FILLED = "total_filled"
    SEVERAL_MODELS = "several_models"
    UNPRICED_UNITS = "unpriced_units"


_NOT_WHOLE = frozenset({Flag.TOO_LARGE, Flag.UNREADABLE, Flag.TRUNCATED, Flag.MALFORMED, Flag.NO_ANSWER})


@dataclass(frozen=True, slots=True)
class Call:
    """A request, as it is to be sent by POST to `endpoint(base_url, path)`; the key is put in by the upstream."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class WireError:
    """What a provider says went wrong: in a body of status 4xx or 5xx, in one of 200, or in the middle of a stream.

    `kind` is the provider's word for the class of error, `code` its code (a number as text), `status` the HTTP status
    that the body names, `retry_after_sec` the wait that it asks for. `message` is for people, at most 1,000 characters.
    """

    kind: str | None = None
    code: str | None = None
    message: str = ""
    status: int | None = None
    retry_after_sec: float | None = None


@dataclass(frozen=True, slots=True)
class Native:
    """An assistant's message in a provider's own form, to be sent back as it came by the wire of that name alone."""

    api: str
    value: Any


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back.

    `usage` is None where the provider gave none, or none that can be used. `thoughts` is the reasoning that is shown,
    never part of `text`. `calls` are those that the caller must make; what the provider ran by itself is not in it.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: Finish = Finish.OTHER
    usage: Usage | None = None
    model: str | None = None
    error: WireError | None = None
    flags: tuple[Flag, ...] = ()
    native: Native | None = None
    raw_finish: str | None = None
    thoughts: str = ""

    @property
    def whole(self) -> bool:
        """Whether this can be used as an answer: all of it came, could be read, and no error is in it."""
        return self.error is None and _NOT_WHOLE.isdisjoint(self.flags)


class Reader(Protocol):
    """Reads one reply from its decoded bytes, in pieces of any size: the same reply for every split."""

    def feed(self, data: bytes) -> None:
        """The next bytes."""
        ...

    def close(self) -> Reply:
        """No more bytes come."""
        ...


class Wire(Protocol):
    """One wire format."""

    @property
    def api(self) -> str:
        """Its name in `ModelDesign.api`."""
        ...

    @property
    def efforts(self) -> Collection[str]:
        """Its words for efforts of reasoning."""
        ...

    def request(
        self,
        model: ModelDesign,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        max_output_tokens: int | None = None,
    ) -> Call:
        """The request, not streaming, that sends a conversation; no more output than the model's own maximum.

        Raises:
            Refusal: `json_invalid` for text that has no JSON form (half of a surrogate pair); `invalid_value` for
                an effort that is no word of the format.
        """
        ...

    def auth_header(self, key: str) -> tuple[str, str]:
        """Name and value of the header that carries the key."""
        ...

    def reader(self, stream: bool = False, *, whole: bool = True) -> Reader:
        """A reader for one reply; of a `stream` the body may be server-sent events, a JSON array or one JSON object.

        One that is not read `whole` keeps no more than some megabytes of the text of a stream, however long that is.
        """
        ...

    def digest(self, body: bytes | dict[str, Any]) -> str:
        """SHA-256 (hex) of the canonical JSON of `{messages, tools}` of a request's body, in the provider's own words.

        Args:
            body: or what `read_request` made of it, where it was read already.

        Raises:
            Refusal: `json_invalid` where the body is not a JSON object.
        """
        ...

    def conversation(self, body: bytes) -> list[Message]:
        """The messages of a recorded request's body, as far as they can be read."""
        ...


def endpoint(base_url: str, path: str) -> str:
    """The URL of a path at a provider; a version that ends `base_url` stands in for the one that starts `path`."""
    parts = urlsplit(base_url)
    base = parts.path.rstrip("/")
    first, _, rest = path.lstrip("/").partition("/")
    if _VERSION_SEGMENT.fullmatch(base.rpartition("/")[2]) and _VERSION_SEGMENT.fullmatch(first):
        path = f"/{rest}"
    return urlunsplit((parts.scheme, parts.netloc, base + path, parts.query, ""))
