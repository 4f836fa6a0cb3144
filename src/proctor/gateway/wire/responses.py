"""The Responses format of OpenAI."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from proctor.core.models import Message, Role, ToolCall, ToolSpec
from proctor.core.wires import RESPONSES
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
from proctor.gateway.wire.responses_reply import ResponsesAssembly, call_of
from proctor.study.actors import ModelDesign

_ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "assistant": Role.ASSISTANT}


class Responses:
    """POST `/responses`, below a base URL that ends with the version. Nothing is kept with the provider."""

    api = RESPONSES
    efforts = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

    def request(
        self,
        model: ModelDesign,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        max_output_tokens: int | None = None,
    ) -> Call:
        """See `Wire.request`. An answer is sent back as its items came, sealed reasoning with them."""
        check_effort(model, self.efforts)
        body: dict[str, Any] = {"model": model.model}
        system = system_of(messages)
        if system:
            body["instructions"] = system
        body["input"] = [item for message in messages for item in _sent(message)]
        body["max_output_tokens"] = output_bound(model, max_output_tokens)
        body["store"] = False
        if model.effort is not None:
            body["reasoning"] = {"effort": model.effort}
            # models that do not reason refuse to be asked for it
            body["include"] = ["reasoning.encrypted_content"]
        if tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                    # else the schema is held to rules of its own
                    "strict": False,
                }
                for tool in tools
            ]
        return Call("/responses", JSON_HEADERS, body_of(body))

    def auth_header(self, key: str) -> tuple[str, str]:
        """A bearer token."""
        return "authorization", f"Bearer {key}"

    def reader(self, stream: bool = False, *, whole: bool = True) -> BodyReader:
        """A reader for one reply."""
        return BodyReader(ResponsesAssembly(), stream=stream, whole=whole)

    def digest(self, body: bytes | dict[str, Any]) -> str:
        """Of `input` and `tools` as they stand in the body; `instructions` are the content of a first message."""
        request = read_request(body)
        said = request.get("instructions")
        system = [{"role": "system", "content": said}] if said else []
        return content_digest([*system, *as_list(request.get("input"))], request.get("tools") or [])

    def conversation(self, body: bytes) -> list[Message]:
        """The messages of a request, as far as they can be read; items of one answer are one message."""
        notes = Notes()
        request = read_request(body)
        made = [Message(Role.SYSTEM, said) for said in [text_of(request.get("instructions"), notes)] if said]
        names: dict[str, str] = {}
        for position, each in enumerate(as_list(request.get("input"))):
            message = Message(Role.USER, each) if isinstance(each, str) else _message(each, position, names, notes)
            if message is None:
                continue
            if made and made[-1].role is message.role is Role.ASSISTANT:
                last = made.pop()
                message = Message(Role.ASSISTANT, last.text + message.text, last.calls + message.calls)
            made.append(message)
        return made


def _sent(message: Message) -> Iterable[dict[str, Any]]:
    if message.role is Role.SYSTEM:
        return []
    if message.role is Role.TOOL:
        return [{"type": "function_call_output", "call_id": message.call_id, "output": message.text}]
    if message.role is Role.USER:
        return [{"role": "user", "content": message.text}]
    if isinstance(message.native, Native) and message.native.api == RESPONSES:
        return _native(message.native.value)
    text = [{"role": "assistant", "content": message.text}] if message.text else []
    calls = [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.raw or "{}"}
        for call in message.calls
    ]
    return [*text, *calls]


def _native(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items of an answer. Reasoning that only the provider has was not kept there, and the ids that stand for it
    mean nothing without it.
    """
    held = [item for item in items if item.get("type") != "reasoning" or _sealed(item)]
    if len(held) == len(items):
        return items
    return [{key: said for key, said in item.items() if key != "id"} for item in held]


def _sealed(item: dict[str, Any]) -> bool:
    return bool(item.get("encrypted_content") or item.get("content"))


def _message(value: Any, position: int, names: dict[str, str], notes: Notes) -> Message | None:
    item = notes.obj(value)
    kind = item.get("type", "message")
    if kind == "message":
        role = item.get("role")
        known = _ROLES.get(role, Role.USER) if isinstance(role, str) else Role.USER
        return Message(known, text_of(item.get("content"), notes))
    if isinstance(kind, str) and kind.endswith("_output"):
        call_id = notes.text(item.get("call_id")) or None
        return Message(Role.TOOL, _output(item.get("output"), notes), call_id=call_id, tool=names.get(call_id or ""))
    call: ToolCall | None = call_of(item, position, notes)
    if call is None:
        return None
    names[call.id] = call.name
    return Message(Role.ASSISTANT, calls=(call,))


def _output(output: Any, notes: Notes) -> str:
    if isinstance(output, dict):
        return as_text(output)
    return text_of(output, notes)
