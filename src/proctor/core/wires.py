"""The wire formats in which models are called."""

from __future__ import annotations

from enum import StrEnum


class WireFormat(StrEnum):
    """One of a provider's own; the made-up model has another, which nobody chooses."""

    CHAT = "chat"
    RESPONSES = "responses"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"
