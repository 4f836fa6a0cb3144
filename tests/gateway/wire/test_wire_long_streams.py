"""A stream that is not read whole says the same of its usage, its end and its errors, and keeps little of its text."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from proctor.gateway.wire.base import Reply
from proctor.gateway.wire.formats import WIRES

PIECE = "x" * 10_000
MANY = 1_500


def event(value: dict[str, Any], kind: str | None = None) -> bytes:
    named = f"event: {kind}\n".encode() if kind else b""
    return named + b"data: " + json.dumps(value).encode() + b"\n\n"


def chat() -> Iterator[bytes]:
    def chunk(choices: list[Any], **more: Any) -> bytes:
        return event({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": choices, **more})

    for _ in range(MANY):
        yield chunk([{"index": 0, "delta": {"content": PIECE}, "finish_reason": None}])
    yield chunk([{"index": 0, "delta": {}, "finish_reason": "length"}])
    yield chunk([], usage={"prompt_tokens": 3, "completion_tokens": 7, "total_tokens": 10})
    yield b"data: [DONE]\n\n"


def anthropic() -> Iterator[bytes]:
    usage = {"input_tokens": 3, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    yield event({"type": "message_start", "message": message}, "message_start")
    for index in range(2):
        block = {"type": "text", "text": ""}
        yield event({"type": "content_block_start", "index": index, "content_block": block}, "content_block_start")
        for _ in range(MANY // 2):
            delta = {"type": "text_delta", "text": PIECE}
            yield event({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
        yield event({"type": "content_block_stop", "index": index}, "content_block_stop")
    end = {"stop_reason": "max_tokens", "stop_sequence": None}
    yield event({"type": "message_delta", "delta": end, "usage": {"output_tokens": 7}}, "message_delta")
    yield event({"type": "message_stop"}, "message_stop")


def responses() -> Iterator[bytes]:
    item = {"type": "message", "id": "i", "status": "in_progress", "role": "assistant", "content": []}
    added = {"type": "response.output_item.added", "sequence_number": 0, "output_index": 0, "item": item}
    yield event(added, "response.output_item.added")
    for number in range(MANY):
        delta = {"item_id": "i", "output_index": 0, "content_index": 0, "delta": PIECE}
        kind = "response.output_text.delta"
        yield event({"type": kind, "sequence_number": number, **delta}, kind)
    usage = {"input_tokens": 3, "output_tokens": 7, "total_tokens": 10}
    whole = {"id": "r", "object": "response", "model": "m", "status": "completed", "output": [], "usage": usage}
    yield event({"type": "response.completed", "sequence_number": MANY, "response": whole}, "response.completed")


STREAMS = {"chat": chat, "anthropic": anthropic, "responses": responses}


def read(api: str, *, whole: bool) -> tuple[Reply, int]:
    """The reply, and the memory that it took at most."""
    reader = WIRES[api].reader(stream=True, whole=whole)
    tracemalloc.start()
    for data in STREAMS[api]():
        reader.feed(data)
    reply = reader.close()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return reply, peak


@pytest.mark.parametrize("api", STREAMS)
def test_a_long_stream_takes_little_and_ends_the_same(api: str) -> None:
    whole, much = read(api, whole=True)
    lean, little = read(api, whole=False)
    assert (lean.usage, lean.finish, lean.model, lean.flags, lean.error) == (
        *(whole.usage, whole.finish, whole.model, whole.flags),
        whole.error,
    )
    assert whole.usage is not None and sum(whole.usage.tokens.values()) == 10
    assert len(whole.text) in (0, MANY * len(PIECE)) and little < much / 2 and little < 12 * 2**20


@pytest.mark.parametrize("api", STREAMS)
def test_an_error_late_in_a_long_stream_is_heard(api: str) -> None:
    said = {"type": "error", "error": {"type": "overloaded_error", "message": "no more", "code": "overloaded"}}
    replies = []
    for whole in (True, False):
        reader = WIRES[api].reader(stream=True, whole=whole)
        pieces = list(STREAMS[api]())
        for data in pieces[:-3]:
            reader.feed(data)
        reader.feed(event(said, "error"))
        replies.append(reader.close())
    assert replies[0].error is not None and replies[1].error == replies[0].error
