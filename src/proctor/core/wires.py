"""The wire formats in which models are called."""

from __future__ import annotations

from enum import StrEnum


class WireFormat(StrEnum):
    """One of a provider's own."""

    CHAT = "chat"
    RESPONSES = "responses"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"


# as they stand in designs and journals
CHAT, RESPONSES, ANTHROPIC, GEMINI = (each.value for each in WireFormat)
# that of the made-up model, which nobody chooses; its provider is called so too
PRACTICE = "practice"
