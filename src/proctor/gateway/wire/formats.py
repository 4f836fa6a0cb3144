"""The formats by name, and reading recorded bodies back."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from proctor.core.models import Message
from proctor.core.wires import PRACTICE
from proctor.gateway.wire.anthropic import Anthropic
from proctor.gateway.wire.base import Reader, Reply, Wire
from proctor.gateway.wire.chat import Chat
from proctor.gateway.wire.counting import CountAssembly, EmbeddingAssembly
from proctor.gateway.wire.gemini import Gemini
from proctor.gateway.wire.reading import BodyReader
from proctor.gateway.wire.responses import Responses
from proctor.gateway.wire.routes import Kind, Route, find_route

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


def reader_of(route: Route, stream: bool) -> Reader:
    """A reader for the reply to a request of a route.

    Raises:
        KeyError: for a format that is not known.
    """
    if route.kind is Kind.COUNT:
        return BodyReader(CountAssembly(), stream=False)
    if route.kind is Kind.EMBEDDINGS:
        return BodyReader(EmbeddingAssembly(), stream=False)
    return WIRES[route.api].reader(stream, whole=False)


def api_of_route(route: str) -> str | None:
    """The format of a recorded exchange by its route, as in `POST /v1/responses`; None where it is no known one.

    A provider's own path may have a prefix of its own before the version.
    """
    method, _, path = route.partition(" ")
    segments = path.split("/")
    tails = ("/" + "/".join(segments[start:]) for start in range(1, len(segments)))
    return next((found.api for tail in tails if (found := find_route(method, tail)) is not None), None)
