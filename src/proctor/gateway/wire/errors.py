"""What providers say went wrong, in the shapes in which they say it."""

from __future__ import annotations

import re
from typing import Any

from proctor.gateway.wire.base import WireError
from proctor.gateway.wire.notes import as_text

_MAX_MESSAGE = 1_000
_MAX_WORD = 200
_SECONDS = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)s", re.ASCII)


def error_in(value: dict[str, Any]) -> WireError | None:
    """The error of a body or of an event, None where it has none.

    Shapes: `{"error": {...}}` and `{"error": "text"}` of most, `{"object": "error", "message"}` of compatible servers,
    `{"detail": ...}` of frameworks below them.
    """
    error = value.get("error")
    if isinstance(error, dict):
        return _from_object(error)
    if error:
        return WireError(message=_message(error))
    if value.get("object") == "error" or value.get("type") == "error":
        return _from_object(value)
    if "detail" in value and not {"choices", "content", "candidates"} & value.keys():
        return WireError(message=_message(value["detail"]))
    return None


def _from_object(error: dict[str, Any]) -> WireError:
    code = error.get("code")
    return WireError(
        kind=_word(error.get("type")) or _word(error.get("status")),
        code=str(code) if type(code) is int and -_MAX_CODE < code < _MAX_CODE else _word(code),
        message=_message(error.get("message")),
        status=_status(error.get("status_code"), code),
        retry_after_sec=_retry_after(error.get("details")),
    )


_MAX_CODE = 10**9


def _word(value: Any) -> str | None:
    return value[:_MAX_WORD] if isinstance(value, str) and value else None


def _message(value: Any) -> str:
    if value is None:
        return ""
    return (value if isinstance(value, str) else as_text(value))[:_MAX_MESSAGE]


def _status(*candidates: Any) -> int | None:
    return next((code for code in candidates if type(code) is int and 400 <= code <= 599), None)


def _retry_after(details: Any) -> float | None:
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        match = _SECONDS.fullmatch(delay) if isinstance(delay, str) else None
        if match is not None:
            return float(match.group(1))
    return None
