"""Small bodies of each format, and what the tests of wires share."""

from __future__ import annotations

import json
from typing import Any

from proctor.core.prices import PriceRow, Prices
from proctor.gateway.wire.base import Reply
from proctor.gateway.wire.formats import WIRES
from proctor.study.actors import ModelDesign

PRICES = Prices("test", (PriceRow("input", 0, "1.000000000000"), PriceRow("output", 0, "2.000000000000")))


def model(provider: str = "openai", api: str = "chat", called: str = "m-1", effort: str | None = None) -> ModelDesign:
    return ModelDesign("luna", provider, called, api, None, effort, 1_000, 60, None, None, None, PRICES)


def sse(*payloads: Any, done: bool = False) -> bytes:
    events = [f"data: {json.dumps(payload)}\n\n" for payload in payloads]
    return "".join([*events, "data: [DONE]\n\n" if done else ""]).encode()


def read(
    api: str, body: bytes | dict[str, Any] | list[Any], *, stream: bool = False, piece: int | None = None
) -> Reply:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    reader = WIRES[api].reader(stream=stream)
    for start in range(0, len(data), piece or len(data) or 1):
        reader.feed(data[start : start + (piece or len(data))])
    return reader.close()


CHAT_USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 12,
    "total_tokens": 32,
    "prompt_tokens_details": {"cached_tokens": 8, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
CHAT = {
    "id": "c1",
    "object": "chat.completion",
    "model": "m-1-2026",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "Ich schaue nach: ü👋",
                "reasoning_content": "a tool helps",
                "tool_calls": [
                    {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at":"a[0]"}'}},
                    {"id": "t2", "type": "function", "function": {"name": "nap", "arguments": ""}},
                ],
            },
        }
    ],
    "usage": CHAT_USAGE,
}


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"model": "m-1-2026", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


CHAT_CHUNKS = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_content": "a tool "}),
    chunk({"reasoning_content": "helps"}),
    chunk({"content": "Ich schaue nach: "}),
    chunk({"content": "ü👋"}),
    chunk({"tool_calls": [{"index": 0, "id": "t1", "function": {"name": "look", "arguments": ""}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"at":'}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"a[0]"}'}}]}),
    chunk({"tool_calls": [{"index": 1, "id": "t2", "function": {"name": "nap", "arguments": ""}}]}),
    chunk({}, "tool_calls"),
    {"model": "m-1-2026", "choices": [], "usage": CHAT_USAGE},
]

ANTHROPIC_USAGE = {
    "input_tokens": 3,
    "cache_read_input_tokens": 40,
    "cache_creation_input_tokens": 12_304,
    "cache_creation": {"ephemeral_5m_input_tokens": 12_000, "ephemeral_1h_input_tokens": 304},
    "output_tokens": 550,
}
ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m-1-2026",
    "content": [
        {"type": "thinking", "thinking": "a tool helps", "signature": "c2ln"},
        {"type": "text", "text": "Ich schaue nach: ü👋"},
        {"type": "server_tool_use", "id": "srv1", "name": "web", "input": {"q": 1}},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "a[0]"}},
        {"type": "tool_use", "id": "t2", "name": "nap", "input": {}},
    ],
    "stop_reason": "tool_use",
    "usage": ANTHROPIC_USAGE,
}


def started(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def added(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


ANTHROPIC_EVENTS = [
    {
        "type": "message_start",
        "message": {"model": "m-1-2026", "content": [], "usage": {**ANTHROPIC_USAGE, "output_tokens": 1}},
    },
    started(0, {"type": "thinking", "thinking": ""}),
    added(0, {"type": "thinking_delta", "thinking": "a tool "}),
    {"type": "ping"},
    added(0, {"type": "thinking_delta", "thinking": "helps"}),
    added(0, {"type": "signature_delta", "signature": "c2ln"}),
    {"type": "content_block_stop", "index": 0},
    started(1, {"type": "text", "text": ""}),
    added(1, {"type": "text_delta", "text": "Ich schaue nach: ü👋"}),
    started(2, {"type": "server_tool_use", "id": "srv1", "name": "web", "input": {}}),
    added(2, {"type": "input_json_delta", "partial_json": '{"q": 1}'}),
    started(3, {"type": "tool_use", "id": "t1", "name": "look", "input": {}}),
    added(3, {"type": "input_json_delta", "partial_json": '{"at":'}),
    added(3, {"type": "input_json_delta", "partial_json": '"a[0]"}'}),
    started(4, {"type": "tool_use", "id": "t2", "name": "nap", "input": {}}),
    added(4, {"type": "input_json_delta", "partial_json": ""}),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 550}},
    {"type": "message_stop"},
]

GEMINI_USAGE = {
    "promptTokenCount": 20,
    "cachedContentTokenCount": 8,
    "candidatesTokenCount": 7,
    "thoughtsTokenCount": 5,
    "toolUsePromptTokenCount": 3,
    "totalTokenCount": 35,
}
GEMINI_PARTS = [
    {"text": "a tool helps", "thought": True},
    {"text": "Ich schaue nach: ü👋"},
    {"functionCall": {"name": "look", "args": {"at": "a[0]"}}, "thoughtSignature": "c2ln"},
    {"functionCall": {"name": "nap"}},
]
GEMINI = {
    "candidates": [{"content": {"role": "model", "parts": GEMINI_PARTS}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": GEMINI_USAGE,
    "modelVersion": "m-1-2026",
}
GEMINI_CHUNKS = [
    {
        "candidates": [{"content": {"role": "model", "parts": [part]}}],
        "usageMetadata": {"promptTokenCount": 20, "totalTokenCount": 20},
        "modelVersion": "m-1-2026",
    }
    for part in GEMINI_PARTS
] + [{"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}], "usageMetadata": GEMINI_USAGE}]

RESPONSES_USAGE = {
    "input_tokens": 20,
    "input_tokens_details": {"cached_tokens": 8},
    "output_tokens": 12,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 32,
}
RESPONSES_ITEMS = [
    {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "a tool helps"}],
     "encrypted_content": "c2VhbGVk"},
    {"type": "message", "id": "m1", "role": "assistant", "status": "completed",
     "content": [{"type": "output_text", "text": "Ich schaue nach: ü👋", "annotations": []}]},
    {"type": "function_call", "id": "f1", "call_id": "t1", "name": "look", "arguments": '{"at":"a[0]"}'},
    {"type": "function_call", "id": "f2", "call_id": "t2", "name": "nap", "arguments": "{}"},
]  # fmt: skip
RESPONSES = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "m-1-2026",
    "error": None,
    "incomplete_details": None,
    "output": RESPONSES_ITEMS,
    "usage": RESPONSES_USAGE,
}
RESPONSES_BEGUN = {**RESPONSES, "status": "in_progress", "output": [], "usage": None}


def item_begun(index: int, **changes: Any) -> dict[str, Any]:
    item = {**RESPONSES_ITEMS[index], **changes}
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def item_piece(index: int, kind: str, delta: str, **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": index, "item_id": "other", "delta": delta, **more}


def item_done(index: int) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": RESPONSES_ITEMS[index]}


RESPONSES_EVENTS = [
    {"type": "response.created", "response": RESPONSES_BEGUN},
    {"type": "response.in_progress", "response": RESPONSES_BEGUN},
    item_begun(0, summary=[], encrypted_content=None),
    item_piece(0, "reasoning_summary_text", "a tool ", summary_index=0),
    item_piece(0, "reasoning_summary_text", "helps", summary_index=0),
    item_done(0),
    item_begun(1, content=[], status="in_progress"),
    {"type": "response.content_part.added", "output_index": 1, "content_index": 0, "part": {"type": "output_text"}},
    item_piece(1, "output_text", "Ich schaue nach: ", content_index=0),
    item_piece(1, "output_text", "ü👋", content_index=0),
    item_done(1),
    item_begun(2, arguments=""),
    item_piece(2, "function_call_arguments", '{"at":'),
    item_piece(2, "function_call_arguments", '"a[0]"}'),
    item_done(2),
    item_begun(3, arguments=""),
    item_done(3),
    {"type": "response.completed", "response": RESPONSES},
]

WHOLE: dict[str, dict[str, Any]] = {
    "chat": CHAT,
    "responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
}
STREAMS: dict[str, list[dict[str, Any]]] = {
    "chat": CHAT_CHUNKS,
    "responses": RESPONSES_EVENTS,
    "anthropic": ANTHROPIC_EVENTS,
    "gemini": GEMINI_CHUNKS,
}
