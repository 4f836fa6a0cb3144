"""Reading values that may be of any type: what is of the wrong one is noted, and reads as absent."""

from __future__ import annotations

import json
from typing import Any

from proctor.core import strictjson
from proctor.core.models import ToolCall
from proctor.core.refusal import Refusal
from proctor.gateway.wire.base import Flag


class Notes:
    """What was seen that does not fit, in the order in which it was."""

    def __init__(self) -> None:
        self._flags: dict[Flag, None] = {}

    @property
    def flags(self) -> tuple[Flag, ...]:
        """Each of them once."""
        return tuple(self._flags)

    def add(self, *flags: Flag) -> None:
        """Note these."""
        self._flags.update(dict.fromkeys(flags))

    def obj(self, value: Any) -> dict[str, Any]:
        """An object; none where it is null."""
        if isinstance(value, dict):
            return value
        if value is not None:
            self.add(Flag.MALFORMED)
        return {}

    def items(self, value: Any) -> list[dict[str, Any]]:
        """A list of objects; empty where it is null."""
        if value is None:
            return []
        if not isinstance(value, list):
            self.add(Flag.MALFORMED)
            return []
        return [item if isinstance(item, dict) else self.obj(item) for item in value]

    def text(self, value: Any) -> str:
        """Text; empty where it is null."""
        if isinstance(value, str):
            return value
        if value is not None:
            self.add(Flag.MALFORMED)
        return ""

    def call(self, call_id: Any, name: Any, raw: str, *, fallback_id: str) -> ToolCall:
        """A call whose arguments are text; none at all are an empty object, as tools without parameters get."""
        named = self.text(name)
        if not named:
            self.add(Flag.MALFORMED)
        return ToolCall(self.text(call_id) or fallback_id, named, arguments(raw), raw)


def arguments(raw: str) -> dict[str, Any] | None:
    """The arguments of a call, where they are the text of a JSON object."""
    if not raw.strip():
        return {}
    try:
        value = strictjson.loads(raw.encode("utf-8", "surrogatepass"), max_bytes=len(raw) * 4)
    except Refusal:
        return None
    return value if isinstance(value, dict) else None


def as_text(value: Any) -> str:
    """A JSON value as text, its keys in the order in which they came."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
