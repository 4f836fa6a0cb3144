"""The Gemini format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from proctor.core.models import Message, Role, ToolCall, ToolSpec
from proctor.core.wires import GEMINI
from proctor.gateway.wire.base import Call, Native
from proctor.gateway.wire.gemini_reply import GeminiAssembly
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
)
from proctor.study.actors import ModelDesign

# The levels, and the tokens of thought that Google's own compatible endpoint takes each of them for where a model
# knows budgets alone.
_EFFORTS = {"minimal": 1_024, "low": 1_024, "medium": 8_192, "high": 24_576}
_BUDGETED = "gemini-2.5"


class Gemini:
    """POST `/v1beta/models/MODEL:generateContent`."""

    api = GEMINI
    efforts = tuple(_EFFORTS)

    def request(
        self,
        model: ModelDesign,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        max_output_tokens: int | None = None,
    ) -> Call:
        """See `Wire.request`. Neighbours of one side are one content."""
        check_effort(model, self.efforts)
        config: dict[str, Any] = {"maxOutputTokens": output_bound(model, max_output_tokens)}
        name = model.model.removeprefix("models/")
        if model.effort is not None:
            budgeted = name.startswith(_BUDGETED)
            config["thinkingConfig"] = (
                {"thinkingBudget": _EFFORTS[model.effort]} if budgeted else {"thinkingLevel": model.effort}
            )
        body: dict[str, Any] = {"contents": _sent(messages)}
        system = system_of(messages)
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        if tools:
            declared = [
                {"name": tool.name, "description": tool.description, "parametersJsonSchema": dict(tool.parameters)}
                for tool in tools
            ]
            body["tools"] = [{"functionDeclarations": declared}]
        body["generationConfig"] = config
        return Call(f"/v1beta/models/{quote(name, safe='')}:generateContent", JSON_HEADERS, body_of(body))

    def auth_header(self, key: str) -> tuple[str, str]:
        """A key in a header of its own, never in the URL."""
        return "x-goog-api-key", key

    def reader(self, stream: bool = False, *, whole: bool = True) -> BodyReader:
        """A reader for one reply."""
        return BodyReader(GeminiAssembly(), stream=stream, whole=whole)

    def digest(self, body: bytes | dict[str, Any]) -> str:
        """Of `contents` and `tools` as they stand in the body; `systemInstruction` is a first content."""
        request = read_request(body)
        system = [request["systemInstruction"]] if request.get("systemInstruction") else []
        return content_digest([*system, *as_list(request.get("contents"))], request.get("tools") or [])

    def conversation(self, body: bytes) -> list[Message]:
        """The messages of a request, as far as they can be read; each result of a tool is one."""
        notes = Notes()
        request = read_request(body)
        system = "".join(_texts(request.get("systemInstruction"), notes))
        made = [Message(Role.SYSTEM, system)] if system else []
        for position, each in enumerate(as_list(request.get("contents"))):
            made += _messages(position, notes.obj(each), notes)
        return made


def _sent(messages: Iterable[Message]) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []
    given_ids: set[str] = set()
    for message in messages:
        if message.role is Role.SYSTEM:
            continue
        role = "model" if message.role is Role.ASSISTANT else "user"
        parts = _parts(message, given_ids)
        if sent and sent[-1]["role"] == role:
            sent[-1]["parts"] += parts
        elif parts:
            sent.append({"role": role, "parts": parts})
    return sent


def _parts(message: Message, given_ids: set[str]) -> list[Any]:
    if message.role is Role.TOOL:
        # An id that the provider did not give is ours, and means nothing to it.
        known = {"id": message.call_id} if message.call_id in given_ids else {}
        response = {"name": message.tool or "", "response": {"result": message.text}}
        return [{"functionResponse": {**known, **response}}]
    if isinstance(message.native, Native) and message.native.api == GEMINI:
        parts = list(message.native.value["parts"])
        for part in parts:
            call = part.get("functionCall")
            if isinstance(call, dict) and isinstance(call.get("id"), str):
                given_ids.add(call["id"])
        return parts
    text = [{"text": message.text}] if message.text else []
    return text + [{"functionCall": {"name": call.name, "args": dict(call.arguments or {})}} for call in message.calls]


def _messages(turn: int, value: dict[str, Any], notes: Notes) -> list[Message]:
    results: list[Message] = []
    calls: list[ToolCall] = []
    for position, part in enumerate(notes.items(value.get("parts"))):
        if "functionResponse" in part:
            response = notes.obj(part["functionResponse"])
            payload = notes.obj(response.get("response"))
            result = payload.get("result", payload)
            text = result if isinstance(result, str) else as_text(result)
            call_id = notes.text(response.get("id")) or None
            results.append(Message(Role.TOOL, text, call_id=call_id, tool=notes.text(response.get("name")) or None))
        elif "functionCall" in part:
            call = notes.obj(part["functionCall"])
            raw = as_text(notes.obj(call.get("args")))
            calls.append(notes.call(call.get("id"), call.get("name"), raw, fallback_id=f"call_{turn}_{position}"))
    texts = _texts(value, notes)
    role = Role.ASSISTANT if value.get("role") == "model" else Role.USER
    own = [Message(role, "".join(texts), tuple(calls))] if texts or calls or not results else []
    return results + own


def _texts(content: Any, notes: Notes) -> list[str]:
    """The texts of a content, thoughts left out."""
    parts = notes.items(notes.obj(content).get("parts"))
    return [notes.text(part["text"]) for part in parts if "text" in part and part.get("thought") is not True]
