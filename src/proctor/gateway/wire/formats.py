"""The formats by name, and reading recorded bodies back."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from proctor.core.models import Message
from proctor.gateway.wire.anthropic import Anthropic
from proctor.gateway.wire.base import Reply, Wire
from proctor.gateway.wire.chat import Chat
from proctor.gateway.wire.gemini import Gemini
from proctor.study.providers import PRACTICE

# Keys are `ModelDesign.api`; the practice model speaks chat completions.
WIRES: Mapping[str, Wire] = MappingProxyType(
    {**{wire.api: wire for wire in (Chat(), Anthropic(), Gemini())}, PRACTICE: Chat()}
)


def conversation(api: str, body: bytes) -> list[Message]:
    """The messages of a recorded request, as far as they can be read.

    Raises:
        Refusal: `json_invalid` where the body is not a JSON object.
        KeyError: for a format that is not known.
    """
    return WIRES[api].conversation(body)


def answer(api: str, body: bytes) -> Reply:
    """The reply that a recorded body is, streamed or not.

    Raises:
        KeyError: for a format that is not known.
    """
    reader = WIRES[api].reader(stream=True)
    reader.feed(body)
    return reader.close()
