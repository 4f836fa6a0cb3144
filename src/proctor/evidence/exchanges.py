"""Exchanges to which no reply came, as the journal tells them."""

from __future__ import annotations

from typing import Any

from proctor.core.reasons import Reason


def unanswered(error: Reason | None, *, estimated: bool) -> dict[str, Any]:
    """The body of `exchange.ended` without a reply, but for which exchange, its outcome and what it was charged."""
    return {
        "http_status": None,
        "error": None if error is None else error.id,
        "resolved_model": None,
        "finish": None,
        "response": None,
        "chunks": None,
        "usage": None,
        "estimated": estimated,
        "flags": [],
        "timing": {},
    }
