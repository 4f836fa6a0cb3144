"""Server-sent events, in pieces of any size."""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event. `data` are the bytes of its data lines, joined by line feeds; `type` is empty where none was named."""

    type: str
    data: bytes


class EventParser:
    """Turns bytes into events; comments are passed over."""

    def __init__(self) -> None:
        self._first_line = True
        self._after_cr = False
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._type = ""

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete."""
        if not data:
            return []
        if data.endswith(b"\n\n") and self._between and b"\r" not in data:
            plain = _plain(data)
            if plain is not None:
                self._first_line = False
                return plain
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
            self._after_cr = False
            if not data:
                return []
        self._after_cr = data.endswith(b"\r")
        *complete, rest = _LINE_END.split(data)
        events: list[Event] = []
        for end in complete:
            self._line.append(end)
            self._end_line(events)
        if rest:
            self._line.append(rest)
        return events

    @property
    def _between(self) -> bool:
        """Whether nothing of an event, of a line or of a line's end is open."""
        return not (self._after_cr or self._line or self._data or self._type)

    def close(self) -> Event | None:
        """The event that no blank line ended, where the last one is such."""
        events: list[Event] = []
        if self._line:
            self._end_line(events)
        self._dispatch(events)
        return events[0] if events else None

    def _end_line(self, events: list[Event]) -> None:
        line = b"".join(self._line)
        self._line.clear()
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if not line:
            self._dispatch(events)
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._type = value.decode("utf-8", "replace")

    def _dispatch(self, events: list[Event]) -> None:
        data = b"\n".join(self._data)
        if data:
            events.append(Event(self._type, data))
        self._data.clear()
        self._type = ""


def _plain(data: bytes) -> list[Event] | None:
    """Whole events of one data line each, behind their type or not, as nearly all providers send them; else None."""
    events: list[Event] = []
    for block in data[:-2].split(b"\n\n"):
        name = b""
        if block[:7] == b"event: ":
            name, _, block = block[7:].partition(b"\n")
        if block[:6] != b"data: " or b"\n" in block:
            return None
        if len(block) > 6:
            events.append(Event(name.decode("utf-8", "replace"), block[6:]))
    return events
