"""The Anthropic messages format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from proctor.core.models import Message, Role, ToolCall, ToolSpec
from proctor.core.wires import ANTHROPIC
from proctor.gateway.wire.anthropic_reply import AnthropicAssembly
from proctor.gateway.wire.base import Call, Native
from proctor.gateway.wire.notes import Notes, as_text
from proctor.gateway.wire.reading import BodyReader
from proctor.gateway.wire.requests import (
    JSON_HEADERS,
    as_list,
    body_of,
    check_effort,
    content_digest,
    output_bound,
    read_request,
    system_of,
    text_of,
)
from proctor.study.actors import ModelDesign

_ROLES = {"system": Role.SYSTEM, "assistant": Role.ASSISTANT}
# The one family that knows efforts, but not the thinking that adapts to them.
_NOT_ADAPTIVE = "claude-opus-4-5"


class Anthropic:
    """POST `/v1/messages`."""

    api = ANTHROPIC
    efforts = ("low", "medium", "high", "xhigh", "max")

    def request(
        self,
        model: ModelDesign,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        max_output_tokens: int | None = None,
    ) -> Call:
        """See `Wire.request`. Neighbours of one side are one message, in which results of tools come first."""
        check_effort(model, self.efforts)
        body: dict[str, Any] = {"model": model.model, "max_tokens": output_bound(model, max_output_tokens)}
        system = system_of(messages)
        if system:
            body["system"] = system
        body["messages"] = _sent(messages)
        if tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
                for tool in tools
            ]
        if model.effort is not None:
            body["output_config"] = {"effort": model.effort}
            if not model.model.startswith(_NOT_ADAPTIVE):
                body["thinking"] = {"type": "adaptive"}
        return Call("/v1/messages", {**JSON_HEADERS, "anthropic-version": "2023-06-01"}, body_of(body))

    def auth_header(self, key: str) -> tuple[str, str]:
        """A key in a header of its own."""
        return "x-api-key", key

    def reader(self, stream: bool = False, *, whole: bool = True) -> BodyReader:
        """A reader for one reply."""
        return BodyReader(AnthropicAssembly(), stream=stream, whole=whole)

    def digest(self, body: bytes | dict[str, Any]) -> str:
        """Of `messages` and `tools` as they stand in the body; `system` is the content of a first message."""
        request = read_request(body)
        system = [{"role": "system", "content": request["system"]}] if request.get("system") else []
        return content_digest([*system, *as_list(request.get("messages"))], request.get("tools") or [])

    def conversation(self, body: bytes) -> list[Message]:
        """The messages of a request, as far as they can be read; each result of a tool is one."""
        notes = Notes()
        names: dict[str, str] = {}
        request = read_request(body)
        system = text_of(request.get("system"), notes)
        made = [Message(Role.SYSTEM, system)] if system else []
        for each in notes.items(request.get("messages")):
            made += _messages(each, names, notes)
        return made


def _sent(messages: Iterable[Message]) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []
    for message in messages:
        if message.role is Role.SYSTEM:
            continue
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        blocks = _blocks(message)
        if sent and sent[-1]["role"] == role:
            sent[-1]["content"] += blocks
        elif blocks:
            sent.append({"role": role, "content": blocks})
    return sent


def _blocks(message: Message) -> list[Any]:
    if message.role is Role.TOOL:
        return [{"type": "tool_result", "tool_use_id": message.call_id, "content": message.text}]
    if isinstance(message.native, Native) and message.native.api == ANTHROPIC:
        return list(message.native.value)
    # Text that is empty is refused by the provider.
    text = [{"type": "text", "text": message.text}] if message.text else []
    return text + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments or {})}
        for call in message.calls
    ]


def _messages(value: dict[str, Any], names: dict[str, str], notes: Notes) -> list[Message]:
    content = value.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    results: list[Message] = []
    texts: list[str] = []
    calls: list[ToolCall] = []
    for position, block in enumerate(notes.items(content)):
        match block.get("type"):
            case "text":
                texts.append(notes.text(block.get("text")))
            case "tool_use":
                raw = as_text(notes.obj(block.get("input")))
                call = notes.call(block.get("id"), block.get("name"), raw, fallback_id=f"call_{position}")
                names[call.id] = call.name
                calls.append(call)
            case "tool_result":
                call_id = notes.text(block.get("tool_use_id"))
                text = text_of(block.get("content"), notes)
                results.append(Message(Role.TOOL, text, call_id=call_id or None, tool=names.get(call_id)))
    said = value.get("role")
    role = _ROLES.get(said, Role.USER) if isinstance(said, str) else Role.USER
    own = [Message(role, "".join(texts), tuple(calls))] if texts or calls or not results else []
    return results + own
