"""Known secrets taken out of bytes that pass by in pieces: what comes out is the same for every split."""

from __future__ import annotations

import re
from collections.abc import Iterable

MARK = b"[redacted:secret]"
# JSON in JSON in JSON doubles the backslashes of an escape each time.
_MOST_SLASHES = 16
_HIDDEN = re.compile(rb"\\u00[2-7]")
_UNIT = re.compile(rb"\\{1,16}u00([2-7][0-9a-fA-F])|\\{0,16}([^\\])|(\\)", re.DOTALL)
_CUT_ESCAPE = re.compile(rb"\\{1,16}(?:u(?:0(?:0(?:[2-7])?)?)?)?\Z")
_IN_ESCAPES = b"\\u0123456789abcdefABCDEF"


class Spellings:
    """Secrets as they may be written, made ready once for any number of streams.

    Args:
        forms: all spellings that are looked for.
        values: those of which any character may be written as a JSON escape, ASCII alone.
    """

    def __init__(self, forms: Iterable[bytes], values: Iterable[bytes]) -> None:
        literal = sorted({form for form in forms if form}, key=lambda form: (-len(form), form))
        self.forms = tuple(literal)
        self.values = tuple(value for value in values if value.isascii() and value)
        self.literal = re.compile(b"|".join(map(re.escape, literal)))
        escaped = [b"".join(map(_maybe_escaped, value)) for value in self.values]
        self.any = re.compile(b"|".join([*escaped, *map(re.escape, literal)]))
        self.starts = frozenset(form[:end] for form in literal for end in range(1, len(form)))
        self.value_starts = frozenset(value[:end] for value in self.values for end in range(1, len(value)))
        self.firsts = frozenset(form[0] for form in literal)
        self.lasts = frozenset(b"".join(literal) + (_IN_ESCAPES if self.values else b""))
        self.longest = max(map(len, literal), default=0)
        self.reach = max((len(value) for value in self.values), default=0) * (_MOST_SLASHES + 5)


class StreamRedactor:
    """Replaces each secret by `[redacted:secret]`; only what may be the start of one is held back."""

    def __init__(self, secrets: Spellings) -> None:
        self._secrets = secrets
        self._held = b""
        self.found = False

    @property
    def pending(self) -> bool:
        """Whether something is held back."""
        return bool(self._held)

    def feed(self, data: bytes) -> bytes:
        """The next bytes, as far as they can go on."""
        if not self._secrets.forms:
            return data
        if self._held:
            data = self._held + data
        out, self._held = self._split(data, self._hold(data, 0))
        return out

    def close(self) -> bytes:
        """What was held back: no more bytes come."""
        out, _ = self._split(self._held, len(self._held))
        self._held = b""
        return out

    def _split(self, data: bytes, hold: int) -> tuple[bytes, bytes]:
        """What goes on of the data, and what is held back, which begins at `hold` unless a secret goes beyond that."""
        looked_for = self._pattern(data)
        if looked_for is None:
            return data[:hold], data[hold:]
        out: list[bytes] = []
        at = 0
        for match in looked_for.finditer(data):
            if match.start() >= hold:
                break
            out += (data[at : match.start()], MARK)
            at = match.end()
            self.found = True
            if at > hold:
                hold = self._hold(data, at)
        out.append(data[at:hold])
        return b"".join(out), data[hold:]

    def _pattern(self, data: bytes) -> re.Pattern[bytes] | None:
        """What finds a secret in the data, None where there is none."""
        if self._secrets.values and b"\\u00" in data and _HIDDEN.search(data) is not None:
            return self._secrets.any
        for form in self._secrets.forms:
            if form in data:
                return self._secrets.literal
        return None

    def _hold(self, data: bytes, start: int) -> int:
        """From where on the data may be the start of a secret; its length where nothing may be."""
        if not data or data[-1] not in self._secrets.lasts:
            return len(data)
        found = len(data)
        for at in range(max(start, len(data) - self._secrets.longest + 1), len(data)):
            if data[at] in self._secrets.firsts and data[at:] in self._secrets.starts:
                found = at
                break
        return min(found, self._hold_escaped(data, start)) if self._secrets.values else found

    def _hold_escaped(self, data: bytes, start: int) -> int:
        window = max(start, len(data) - self._secrets.reach)
        if data.find(b"\\", window) < 0:
            return len(data)
        cut = _CUT_ESCAPE.search(data, max(window, len(data) - _MOST_SLASHES - 5))
        end = len(data) if cut is None else cut.start()
        places: list[int] = []
        chars = bytearray()
        for unit in _UNIT.finditer(data, window, end):
            places.append(unit.start())
            chars += bytes([int(unit[1], 16)]) if unit[1] else unit[2] or unit[3]
        text = bytes(chars)
        starts = (place for at, place in enumerate(places) if text[at:] in self._secrets.value_starts)
        return next(starts, end)


def _maybe_escaped(code: int) -> bytes:
    plain = re.escape(bytes([code]))
    before = b"" if bytes([code]).isalnum() else rb"\\{0,16}"
    return b"(?:%b%b|\\\\{1,16}u00(?i:%02x))" % (before, plain, code)
