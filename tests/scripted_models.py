"""One upstream that speaks the three formats in which real clients ask, and drives each through the same script.

A step is a shell command that the client is to run with its own tool, or text, which ends its work. What each client
calls its tool is read from what it offers. A request without any such tool is one of its own in the background: it is
answered with a word and takes no step.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import zstandard
from aiohttp import web

# of every answer: what a test multiplies by its prices
INPUT, OUTPUT = 1_000, 50
SIDE = "ok"
_MOST = 64 << 20


@dataclass(frozen=True)
class Run:
    """The model wants this command run."""

    command: str


@dataclass(frozen=True)
class Use:
    """The model wants another tool of the client's used."""

    tool: str
    arguments: Mapping[str, Any]
    namespace: str | None = None


@dataclass(frozen=True)
class Say:
    """The model's last word."""

    text: str


Step = Run | Use | Say
Called = tuple[str, Mapping[str, Any] | str, str | None] | None
Head = tuple[str, str]
Events = Iterator[tuple[str | None, Any]]


@dataclass(frozen=True)
class Seen:
    """One request as it came; `side` for those that took no step."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    side: bool
    status: int = 200

    @property
    def tools(self) -> list[str]:
        return [_name(tool) for tool, _ in _tools(self.body)]


@dataclass
class ScriptedModels:
    """The upstream: `seen` is what was asked of it, `base_url` where it listens (no path).

    With `until` nothing but the first step is answered before that holds. With `model` it knows that one alone. From
    step `silent_from` on it never answers. The first requests are answered with the statuses of `failing`.
    """

    steps: Sequence[Step]
    seen: list[Seen] = field(default_factory=list)
    base_url: str = ""
    silent_from: int | None = None
    until: Callable[[], bool] = lambda: True
    model: str | None = None
    failing: list[int] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    taken: int = 0
    last_ns: int = field(default_factory=time.monotonic_ns)

    @property
    def main(self) -> list[Seen]:
        """The requests that took a step."""
        return [seen for seen in self.seen if not seen.side and seen.status == 200]

    @property
    def side(self) -> list[Seen]:
        """The clients' own background requests that were answered."""
        return [seen for seen in self.seen if seen.side and seen.status == 200]

    def results(self) -> list[str]:
        """What the model was told of its calls, at its last question."""
        return list(_results(self.main[-1].body))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = _read(request.headers.get("content-encoding"), await request.read())
        path = request.path.removeprefix("/v1")
        answer = {"/chat/completions": _chat, "/responses": _responses, "/messages": _messages}.get(path)
        if path == "/messages/count_tokens":
            self._see(request, body, side=True)
            return web.json_response({"input_tokens": INPUT})
        if answer is None or request.method != "POST":
            status = 426 if "upgrade" in request.headers else 404
            self._see(request, body, side=True, status=status)
            return web.json_response({"error": {"message": "no such route", "type": "not_found"}}, status=status)
        if self.model not in (None, body.get("model")):
            self._see(request, body, side=True, status=404)
            error = {"type": "not_found_error", "message": "there is no such model", "code": "model_not_found"}
            return web.json_response({"type": "error", "error": error}, status=404)
        if self.failing:
            status = self.failing.pop(0)
            self._see(request, body, side=True, status=status)
            error = {"type": "api_error", "message": "not now", "code": "not_now"}
            return web.json_response({"type": "error", "error": error}, status=status)
        tool = _shell(body)
        self._see(request, body, side=tool is None)
        if self.silent_from is not None and not self.seen[-1].side and self.taken >= self.silent_from:
            await asyncio.Event().wait()
        for _ in range(30_000):
            if tool is None or not self.taken or self.until():
                break
            await asyncio.sleep(0.02)
        step: Step = Say(SIDE)
        if tool is not None:
            step = self.steps[min(self.taken, len(self.steps) - 1)]
            self.taken += 1
        plain, events = answer(step.text if isinstance(step, Say) else None, _call(step, tool), self._head(body))
        if not body.get("stream"):
            return web.json_response(plain)
        reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await reply.prepare(request)
        for event, data in events:
            head = f"event: {event}\n" if event else ""
            text = data if isinstance(data, str) else json.dumps(data)
            await reply.write(f"{head}data: {text}\n\n".encode())
        return reply

    def _head(self, body: Mapping[str, Any]) -> tuple[str, str]:
        return f"{len(self.seen)}", str(body.get("model"))

    def _see(self, request: web.Request, body: Mapping[str, Any], *, side: bool, status: int = 200) -> None:
        self.seen.append(Seen(request.method, request.path_qs, dict(request.headers), body, side, status))
        self.last_ns = time.monotonic_ns()
        self.asked.set()


@asynccontextmanager
async def serving(models: ScriptedModels, listener: socket.socket | None = None) -> AsyncIterator[ScriptedModels]:
    """Answers on the loopback, or on that socket, while the block runs."""
    listener = listener or socket.create_server(("127.0.0.1", 0))
    app = web.Application(client_max_size=_MOST)
    app.router.add_route("*", "/{path:.*}", models.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    models.base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        yield models
    finally:
        await runner.cleanup()


def _read(encoding: str | None, data: bytes) -> dict[str, Any]:
    if encoding == "zstd":
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    elif encoding == "gzip":
        data = gzip.decompress(data)
    try:
        body = json.loads(data or b"{}")
    except ValueError:
        return {"unreadable": data[:200].decode("latin-1")}
    return body if isinstance(body, dict) else {"unreadable": body}


def _name(tool: Mapping[str, Any]) -> str:
    inner = tool.get("function")
    return str((inner if isinstance(inner, dict) else tool).get("name") or tool.get("type"))


def _tools(body: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str | None]]:
    """All tools that a request offers, with the namespace of each: they may stand in its input as well."""
    more = [
        item["tools"]
        for item in body.get("input") or []
        if isinstance(item, dict) and item.get("type") == "additional_tools"
    ]
    for tool in [*(body.get("tools") or []), *(tool for tools in more for tool in tools)]:
        if tool.get("type") == "namespace":
            yield from ((inner, tool["name"]) for inner in tool["tools"])
        else:
            yield tool, None


def _shell(body: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """The tool that runs commands: its name, the argument that holds the command, and the type of that argument.

    Where the client takes programs in its place, the type is "program", and the argument the namespace of that tool.
    """
    for tool, namespace in _tools(body):
        inner = tool["function"] if isinstance(tool.get("function"), dict) else tool
        if inner.get("name") == "exec" and inner.get("type") == "custom":
            return "exec", str(namespace), "program"
        if inner.get("name") not in ("bash", "Bash", "shell", "shell_command", "exec_command"):
            continue
        schema = inner.get("parameters") or inner.get("input_schema") or {}
        for argument in ("command", "cmd"):
            if argument in schema.get("properties", {}):
                return inner["name"], argument, schema["properties"][argument].get("type", "string")
    return None


def _call(step: Step, tool: tuple[str, str, str] | None) -> Called:
    """The call that a step is: the tool's name, its arguments, and the namespace in which it is offered."""
    if isinstance(step, Use):
        return step.tool, step.arguments, step.namespace
    if isinstance(step, Say) or tool is None:
        return None
    name, argument, kind = tool
    if kind == "program":
        command = json.dumps({"cmd": step.command})
        return name, f"text((await tools.exec_command({command})).output)", argument
    made: dict[str, Any] = {argument: ["sh", "-c", step.command] if kind == "array" else step.command}
    if name == "Bash":
        made["description"] = "A step"
    return name, made, None


def _chat(text: str | None, call: Called, told: Head) -> tuple[Any, Events]:
    number, model = told
    message: dict[str, Any] = {"role": "assistant", "content": text}
    finish = "stop"
    if call is not None:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        message["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": function}]
        finish = "tool_calls"
    usage = {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}
    head = {"id": f"chatcmpl-{number}", "created": 1, "model": model}
    plain = {
        **head,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage,
    }

    def events() -> Events:
        chunk = {**head, "object": "chat.completion.chunk"}
        delta = dict(message)
        if "tool_calls" in delta:
            delta["tool_calls"] = [{"index": 0, **call} for call in delta["tool_calls"]]
        yield None, {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield None, {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
        yield None, {**chunk, "choices": [], "usage": usage}
        yield None, "[DONE]"

    return plain, events()


def _responses(text: str | None, call: Called, told: Head) -> tuple[Any, Events]:
    number, model = told
    if call is not None and isinstance(call[1], str):
        item: dict[str, Any] = {"type": "custom_tool_call", "id": f"ctc_{number}", "call_id": f"call_{number}"}
        item |= {"name": call[0], "namespace": call[2], "input": call[1], "status": "completed"}
    elif call is not None:
        item = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": call[0],
            "arguments": json.dumps(call[1]),
            "status": "completed",
        }
        if call[2] is not None:
            item["namespace"] = call[2]
    else:
        item = {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }
    head = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": model}
    done = {
        **head,
        "status": "completed",
        "output": [item],
        "usage": {
            "input_tokens": INPUT,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": OUTPUT,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": INPUT + OUTPUT,
        },
    }

    def events() -> Events:
        started = {**head, "status": "in_progress", "output": []}
        rows: list[dict[str, Any]] = [
            {"type": "response.created", "response": started},
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}},
        ]
        if item["type"] == "message":
            rows.append(
                {
                    "type": "response.output_text.delta",
                    "item_id": item["id"],
                    "output_index": 0,
                    "content_index": 0,
                    "delta": item["content"][0]["text"],
                }
            )
        rows.append({"type": "response.output_item.done", "output_index": 0, "item": item})
        rows.append({"type": "response.completed", "response": done})
        for place, row in enumerate(rows):
            yield row["type"], {**row, "sequence_number": place}

    return done, events()


def _messages(text: str | None, call: Called, told: Head) -> tuple[Any, Events]:
    number, model = told
    block: dict[str, Any] = {"type": "text", "text": text}
    stop = "end_turn"
    if call is not None:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": call[0], "input": call[1]}
        stop = "tool_use"
    head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "stop_sequence": None}
    usage = {"input_tokens": INPUT, "output_tokens": OUTPUT}
    plain = {**head, "content": [block], "stop_reason": stop, "usage": usage}

    def events() -> Events:
        opened = {**head, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
        yield "message_start", {"type": "message_start", "message": opened}
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": empty}
        yield "ping", {"type": "ping"}
        yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": 0}
        ending = {"stop_reason": stop, "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": ending, "usage": {"output_tokens": OUTPUT}}
        yield "message_stop", {"type": "message_stop"}

    return plain, events()


def _results(body: Mapping[str, Any]) -> Iterator[str]:
    for message in body.get("messages") or body.get("input") or []:
        if message.get("role") == "tool":
            yield _text(message.get("content"))
        elif message.get("type") in ("function_call_output", "custom_tool_call_output"):
            yield _text(message.get("output"))
        elif isinstance(message.get("content"), list):
            for block in message["content"]:
                if block.get("type") == "tool_result":
                    yield _text(block.get("content"))


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return str(content)
