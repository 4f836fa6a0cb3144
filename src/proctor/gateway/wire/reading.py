"""From bytes to values: one reader for all formats, around what a format makes of each value."""

from __future__ import annotations

import re
from typing import Any, Protocol

from proctor.core import strictjson
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.gateway.wire.base import Flag, Reply
from proctor.gateway.wire.notes import Notes
from proctor.gateway.wire.sse import Event, EventParser

MAX_REPLY_BYTES = 64 * 2**20
# Empty objects take twenty times their bytes in memory; no answer has nearly as many values as this.
MAX_VALUES = 10**6

# Of a stream that is not read whole, what comes after this is read only where it may say a usage, an end or an error.
_MOST_KEPT = 4 * 2**20
_OF_ITS_END = re.compile(
    rb"usage|error|message_|content_block_st|output_item|response\.(?:completed|incomplete|failed)"
    rb'|"finish_?[rR]eason"\s*:\s*"|promptFeedback'
)

_DONE = b"[DONE]"
_BLANK = b" \t\r\n"


class Assembly(Protocol):
    """A reply of one format in the making."""

    @property
    def notes(self) -> Notes:
        """Where what does not fit is noted."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the answer was said to be at its end, or an error to have ended it."""
        ...

    def take(self, value: dict[str, Any]) -> None:
        """The whole body, or the next event of a stream. Never raises for what is in it."""
        ...

    def reply(self) -> Reply:
        """What it amounts to."""
        ...


class BodyReader:
    """Reads one reply. Of a stream the body says by its first byte whether it is JSON or events.

    More than `MAX_REPLY_BYTES` are not read. Args: whole: as `Wire.reader` takes it.
    """

    def __init__(self, assembly: Assembly, *, stream: bool, whole: bool = True) -> None:
        self._assembly = assembly
        self._kept_until = 0 if whole else MAX_REPLY_BYTES - _MOST_KEPT
        self._stream = stream
        self._room = MAX_REPLY_BYTES
        self._too_large = False
        self._head: list[bytes] = []
        self._body: list[bytes] | None = None if stream else self._head
        self._events: EventParser | None = None
        self._done = False

    def feed(self, data: bytes) -> None:
        """The next bytes."""
        if len(data) > self._room:
            self._too_large = True
            data = data[: self._room]
        self._room -= len(data)
        if not data:
            return
        if self._events is not None:
            self._take_events(self._events.feed(data))
            return
        self._head.append(data)
        if self._body is None and data.strip(_BLANK):
            self._begin(b"".join(self._head))

    def close(self) -> Reply:
        """No more bytes come."""
        if self._too_large:
            self._assembly.notes.add(Flag.TOO_LARGE)
        if self._events is not None:
            self._close_events(self._events)
        elif not self._too_large:
            self._close_body()
        return self._assembly.reply()

    def _begin(self, head: bytes) -> None:
        if head.lstrip(_BLANK)[:1] in (b"{", b"["):
            self._body = self._head
            return
        self._head = []
        self._events = EventParser()
        self._take_events(self._events.feed(head))

    def _take_events(self, events: list[Event]) -> None:
        for event in events:
            self._take_event(event, Flag.UNREADABLE)

    def _take_event(self, event: Event, unread: Flag) -> None:
        if event.data.strip() == _DONE:
            self._done = True
            return
        if self._room < self._kept_until and _OF_ITS_END.search(event.data) is None:
            return
        try:
            value = json_value(event.data)
        except Refusal:
            self._assembly.notes.add(unread)
            return
        if isinstance(value, dict):
            self._assembly.take(value)
        else:
            self._assembly.notes.add(Flag.MALFORMED)

    def _close_events(self, events: EventParser) -> None:
        last = events.close()
        if last is not None:
            self._take_event(last, Flag.TRUNCATED)
        if not self._done and not self._assembly.ended:
            self._assembly.notes.add(Flag.TRUNCATED)

    def _close_body(self) -> None:
        body = b"".join(self._head)
        self._head.clear()
        try:
            value = json_value(body)
        except Refusal:
            self._assembly.notes.add(Flag.UNREADABLE)
            return
        values = value if isinstance(value, list) else [value]
        for each in values:
            if isinstance(each, dict):
                self._assembly.take(each)
            else:
                self._assembly.notes.add(Flag.MALFORMED)
        if not self._assembly.ended and isinstance(value, list):
            self._assembly.notes.add(Flag.TRUNCATED)


def json_value(data: bytes) -> Any:
    """The JSON value of a body, bounded in bytes, depth and number of values. Raises Refusal `json_invalid`."""
    if len(data) > MAX_VALUES and sum(map(data.count, (b"{", b"[", b","))) > MAX_VALUES:
        raise Refusal(Reason.JSON_INVALID, "JSON has too many values", required={"values": MAX_VALUES})
    return strictjson.loads(data, max_bytes=MAX_REPLY_BYTES)
