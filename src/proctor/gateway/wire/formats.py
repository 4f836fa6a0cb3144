"""The formats by name, and reading recorded bodies back."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from proctor.core.models import Message
from proctor.gateway.wire.anthropic import Anthropic
from proctor.gateway.wire.base import Reply, Wire
from proctor.gateway.wire.chat import Chat
from proctor.gateway.wire.gemini import Gemini
from proctor.gateway.wire.responses import Responses
from proctor.gateway.wire.routes import find_route
from proctor.study.providers import PRACTICE

# Keys are `ModelDesign.api`; the practice model speaks chat completions.
WIRES: Mapping[str, Wire] = MappingProxyType(
    {**{wire.api: wire for wire in (Chat(), Responses(), Anthropic(), Gemini())}, PRACTICE: Chat()}
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


def api_of_route(route: str) -> str | None:
    """The format of a recorded exchange by its route, as in `POST /v1/responses`; None where it is no known one.

    A provider's own path may have a prefix of its own before the version.
    """
    method, _, path = route.partition(" ")
    segments = path.split("/")
    tails = ("/" + "/".join(segments[start:]) for start in range(1, len(segments)))
    return next((found.api for tail in tails if (found := find_route(method, tail)) is not None), None)
