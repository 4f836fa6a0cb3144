"""The chat completions format: what OpenAI made, and most others speak."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.core.models import Message, Role, ToolCall, ToolSpec
from proctor.core.wires import CHAT
from proctor.gateway.wire.base import Call, Native
from proctor.gateway.wire.chat_reply import ChatAssembly
from proctor.gateway.wire.notes import Notes, as_text
from proctor.gateway.wire.reading import BodyReader
from proctor.gateway.wire.requests import (
    JSON_HEADERS,
    body_of,
    check_effort,
    content_digest,
    output_bound,
    read_request,
    text_of,
)
from proctor.study.actors import ModelDesign

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}


class Chat:
    """POST `/chat/completions`, below a base URL that ends with the version."""

    api = CHAT
    efforts = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "default")

    def request(
        self,
        model: ModelDesign,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        max_output_tokens: int | None = None,
    ) -> Call:
        """See `Wire.request`."""
        check_effort(model, self.efforts)
        body: dict[str, Any] = {
            "model": model.model,
            "messages": [_sent(message) for message in messages],
            bound_key(model): output_bound(model, max_output_tokens),
        }
        if model.effort is not None:
            body["reasoning_effort"] = model.effort
        if tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": dict(tool.parameters),
                    },
                }
                for tool in tools
            ]
        return Call("/chat/completions", JSON_HEADERS, body_of(body))

    def auth_header(self, key: str) -> tuple[str, str]:
        """A bearer token."""
        return "authorization", f"Bearer {key}"

    def reader(self, stream: bool = False, *, whole: bool = True) -> BodyReader:
        """A reader for one reply."""
        return BodyReader(ChatAssembly(), stream=stream, whole=whole)

    def digest(self, body: bytes | dict[str, Any]) -> str:
        """Of `messages` and `tools` as they stand in the body; none are an empty list."""
        request = read_request(body)
        return content_digest(request.get("messages") or [], request.get("tools") or [])

    def conversation(self, body: bytes) -> list[Message]:
        """The messages of a request, as far as they can be read."""
        notes = Notes()
        names: dict[str, str] = {}
        return [_message(each, names, notes) for each in notes.items(read_request(body).get("messages"))]


def bound_key(model: ModelDesign) -> str:
    """The key that bounds the output: OpenAI's own models refuse `max_tokens`, most others know nothing else."""
    return "max_completion_tokens" if model.provider == "openai" else "max_tokens"


def _sent(message: Message) -> dict[str, Any]:
    if message.role is Role.TOOL:
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    if message.role is not Role.ASSISTANT:
        return {"role": message.role.value, "content": message.text}
    if isinstance(message.native, Native) and message.native.api == CHAT:
        return {"role": "assistant", **message.native.value}
    if not message.calls:
        return {"role": "assistant", "content": message.text}
    return {
        "role": "assistant",
        "content": message.text or None,
        "tool_calls": [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.raw or "{}"}}
            for call in message.calls
        ],
    }


def _message(value: dict[str, Any], names: dict[str, str], notes: Notes) -> Message:
    calls = []
    for position, call in enumerate(notes.items(value.get("tool_calls"))):
        function = notes.obj(call.get("function"))
        raw = function.get("arguments")
        made: ToolCall = notes.call(
            call.get("id"),
            function.get("name"),
            raw if isinstance(raw, str) else as_text(notes.obj(raw)),
            fallback_id=f"call_{position}",
        )
        names[made.id] = made.name
        calls.append(made)
    role = value.get("role")
    call_id = notes.text(value.get("tool_call_id")) or None
    return Message(
        role=_ROLES.get(role, Role.USER) if isinstance(role, str) else Role.USER,
        text=text_of(value.get("content"), notes),
        calls=tuple(calls),
        call_id=call_id,
        tool=names.get(call_id) if call_id else None,
    )
