"""What the gateway says to a client itself, in the shape in which that client's provider says what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import orjson

from proctor.core.families import Family
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.wires import ANTHROPIC, CHAT, GEMINI, PRACTICE, RESPONSES

_STATUSES: Mapping[Reason, int] = MappingProxyType(
    {
        Reason.TOKEN_UNKNOWN: 401,
        Reason.LEASE_STALE: 401,
        Reason.ROUTE_UNKNOWN: 404,
        Reason.MODEL_NOT_LISTED: 404,
        Reason.REQUEST_UNREADABLE: 400,
        Reason.REQUEST_TOO_LARGE: 413,
        Reason.PROVIDER_TIMEOUT: 504,
    }
)
# A client that cannot be answered may try again; one that is refused would be refused again.
_UNANSWERED = 502
# The status at which the clients of each format give up at once: what they do with others was measured. Codex repeats
# every one but 400 five times; Claude Code repeats 400 five times; LiteLLM, and what is built on it, knows neither 402
# nor 403 of OpenAI's format, and mini-swe-agent repeats both, and 400, for minutes.
_FINAL: Mapping[str, int] = MappingProxyType({CHAT: 401, PRACTICE: 401, RESPONSES: 400, ANTHROPIC: 403, GEMINI: 403})

_MOST_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer of the gateway's own: `body` is JSON, of which `headers` say no length."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def refused(api: str, refusal: Refusal) -> Refused:
    """The answer that says a refusal to a client of a format, so that it stops where asking again would change nothing.

    Args:
        api: of the route, or of the model where there is none: `ModelDesign.api`.
        refusal: its reason's id stands in the answer, and its message.

    Raises KeyError: a format that is not known.
    """
    status = _status(api, refusal.reason)
    headers = {"content-type": "application/json"}
    if status < 500:
        # what the providers' own SDKs go by, before the status
        headers["x-should-retry"] = "false"
    message = refusal.message[:_MOST_CHARS].encode("utf-8", "replace").decode()
    return Refused(status, headers, orjson.dumps(_BODIES[api](status, refusal.reason.id, message)))


def _status(api: str, reason: Reason) -> int:
    if reason not in _STATUSES and reason.family is Family.PROVIDER:
        return _UNANSWERED
    status = _STATUSES.get(reason, _FINAL[api])
    return _FINAL[api] if api == RESPONSES and status < 500 else status


def _openai(status: int, reason: str, message: str) -> dict[str, object]:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": reason}}


def _anthropic(status: int, reason: str, message: str) -> dict[str, object]:
    return {"type": "error", "error": {"type": _ANTHROPIC_TYPES[status], "message": f"{reason}: {message}"}}


def _gemini(status: int, reason: str, message: str) -> dict[str, object]:
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "proctor"}]
    return {"error": {"code": status, "message": message, "status": _GEMINI_STATUSES[status], "details": details}}


_ANTHROPIC_TYPES: Mapping[int, str] = MappingProxyType(
    {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        502: "api_error",
        504: "timeout_error",
    }
)
_GEMINI_STATUSES: Mapping[int, str] = MappingProxyType(
    {
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        413: "INVALID_ARGUMENT",
        502: "UNAVAILABLE",
        504: "DEADLINE_EXCEEDED",
    }
)
_BODIES: Mapping[str, Callable[[int, str, str], dict[str, object]]] = MappingProxyType(
    {CHAT: _openai, RESPONSES: _openai, PRACTICE: _openai, ANTHROPIC: _anthropic, GEMINI: _gemini}
)
