"""Arguments of a Gemini call that come in pieces, each for one place within them."""

from __future__ import annotations

import re
from typing import Any

_SEGMENT = re.compile(r"\.([^.\[\]]+)|\[([0-9]{1,6})\]|\['([^']*)'\]|\[\"([^\"]*)\"\]", re.ASCII)
_MAX_DEPTH = 64
_VALUES = {"numberValue": (int, float), "boolValue": (bool,), "stringValue": (str,)}


class _Growing:
    """A string, of which more may come."""

    def __init__(self) -> None:
        self.pieces: list[str] = []


class PartialArguments:
    """Builds the arguments; `valid` is False once a piece did not fit."""

    def __init__(self) -> None:
        self.valid = True
        self._root: dict[str, Any] = {}
        self._growing: dict[str, _Growing] = {}

    def take(self, piece: dict[str, Any]) -> None:
        """One of `partialArgs`: the place in `jsonPath`, one value, and whether more of it comes."""
        place = piece.get("jsonPath")
        path = _segments(place) if isinstance(place, str) else None
        value = _value(piece)
        if path is None or not isinstance(place, str) or value is _NOTHING:
            self.valid = False
            return
        growing = self._growing.get(place)
        if isinstance(value, str):
            if growing is None:
                growing = _Growing()
                self._put(path, growing)
            growing.pieces.append(value)
            if piece.get("willContinue") is True:
                self._growing[place] = growing
            else:
                self._growing.pop(place, None)
        else:
            self._put(path, value)

    def value(self) -> dict[str, Any]:
        """The arguments, as far as they came."""
        settled: dict[str, Any] = _settle(self._root)
        return settled

    def _put(self, path: list[str | int], value: Any) -> None:
        holder: Any = self._root
        for key, following in zip(path, [*path[1:], None], strict=True):
            last = following is None
            empty: Any = value if last else ([] if isinstance(following, int) else {})
            if isinstance(key, int) and isinstance(holder, list) and key <= len(holder):
                if key == len(holder):
                    holder.append(empty)
                elif last:
                    holder[key] = value
            elif isinstance(key, str) and isinstance(holder, dict):
                if last:
                    holder[key] = value
                else:
                    holder.setdefault(key, empty)
            else:
                self.valid = False
                return
            holder = holder[key]


class _Nothing:
    pass


_NOTHING = _Nothing()


def _value(piece: dict[str, Any]) -> Any:
    if "nullValue" in piece:
        return None
    for name, kinds in _VALUES.items():
        if name in piece:
            return piece[name] if type(piece[name]) in kinds else _NOTHING
    return _NOTHING


def _segments(path: str) -> list[str | int] | None:
    """`$.a[0].b` as `["a", 0, "b"]`; None for anything else, and for the root itself."""
    if not path.startswith("$"):
        return None
    found: list[str | int] = []
    position = 1
    while position < len(path):
        match = _SEGMENT.match(path, position)
        if match is None or len(found) == _MAX_DEPTH:
            return None
        name, index, quoted, double_quoted = match.groups()
        found.append(
            int(index) if index is not None else next(t for t in (name, quoted, double_quoted) if t is not None)
        )
        position = match.end()
    return found or None


def _settle(value: Any) -> Any:
    if isinstance(value, _Growing):
        return "".join(value.pieces)
    if isinstance(value, dict):
        return {key: _settle(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_settle(each) for each in value]
    return value
