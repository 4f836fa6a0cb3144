"""The practice provider's answers for agents inside: as they are, or in the chunks in which chat models stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

from proctor.gateway.upstream import Outgoing

_JSON = (("Content-Type", "application/json"),)
_EVENTS = (("Content-Type", "text/event-stream"),)
# a text comes in pieces of so many characters
_PIECE = 16


@dataclass(slots=True)
class PracticeIncoming:
    """An `Incoming` that crossed no wire."""

    status: int
    headers: Sequence[tuple[str, str]]
    pieces: Iterator[bytes]
    timing: Mapping[str, int] = field(default_factory=dict)

    async def read(self) -> bytes:
        """See `Incoming.read`."""
        return next(self.pieces, b"")


@asynccontextmanager
async def opened(out: Outgoing, status: int, answer: dict[str, Any]) -> AsyncIterator[PracticeIncoming]:
    """The reply to a request, whose answer is given."""
    if status == 200 and out.stream:
        yield PracticeIncoming(status, _EVENTS, events(answer, _wants_usage(out.body)))
    else:
        body = orjson.dumps(answer)
        yield PracticeIncoming(status, (*_JSON, ("Content-Length", str(len(body)))), iter([body]))


def events(answer: dict[str, Any], usage_apart: bool) -> Iterator[bytes]:
    """An answer as the events of a stream.

    Args:
        usage_apart: whether the usage has a chunk of its own, as a request may ask; else it comes with the last one.
    """
    choice = answer["choices"][0]
    message, usage = choice["message"], answer.get("usage")
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    text = message["content"]
    deltas += [{"content": text[at : at + _PIECE]} for at in range(0, len(text), _PIECE)]
    deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(message.get("tool_calls", ()))]
    head = {name: answer[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    for delta in deltas:
        yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    last = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    with_usage = {} if usage is None else {"usage": usage}
    yield _event(last if usage_apart else {**last, **with_usage})
    if usage_apart and usage is not None:
        yield _event({**head, "choices": [], **with_usage})
    yield b"data: [DONE]\n\n"


def _event(value: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % orjson.dumps(value)


def _wants_usage(body: bytes) -> bool:
    options = orjson.loads(body).get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True
