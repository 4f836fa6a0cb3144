"""The practice provider: a made-up model inside proctor, so that everything can be tried without a key.

It speaks the chat format and follows rules, which are written down here and in `rules/`: `shell` is what it does with
a tool of that name, `rows` what it answers without one. An answer depends on the request's bytes alone: no clock, no
memory, no chance. Its answers prove nothing about any real model, and whatever shows a result of it says that it is
synthetic.

A token is four bytes of UTF-8 of what messages and calls say; what goes in and what comes out are each rounded up.
An answer of more tokens than the request allows is cut there, as a real one is.

Every name is a model: the name is the seed of what it gets right. Four names are drills, which go wrong each time:

- `practice-limited`: status 429, too many requests;
- `practice-down`: status 503;
- `practice-unmetered`: an answer without its usage;
- `practice-overrun`: an answer whose usage says a million tokens more than it has.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson

from proctor.gateway.practice_stream import PracticeIncoming, opened
from proctor.gateway.rules import rows, shell
from proctor.gateway.rules.talk import Done, Move, Talk
from proctor.gateway.upstream import HttpReply, Outgoing
from proctor.gateway.wire.base import Call

BYTES_PER_TOKEN = 4
LIMITED, DOWN, UNMETERED, OVERRUN = "practice-limited", "practice-down", "practice-unmetered", "practice-overrun"
OVERRUN_TOKENS = 1_000_000
_HEADERS = {"content-type": "application/json"}


class Practice:
    """An upstream without a wire."""

    async def send(self, call: Call, *, deadline_sec: float) -> HttpReply:
        """The answer to a request in the chat format; status 400 for any other."""
        status, answer = respond(call.body)
        return HttpReply(status, _HEADERS, orjson.dumps(answer))

    def open(self, out: Outgoing, *, deadline_sec: float) -> AbstractAsyncContextManager[PracticeIncoming]:
        """The same, as a stream where one is asked for."""
        return opened(out, *respond(out.body))

    async def close(self) -> None:
        """There is nothing to let go of."""


def respond(body: bytes) -> tuple[int, dict[str, Any]]:
    """Status and JSON of the answer to a request's body."""
    try:
        asked = _read(orjson.loads(body))
    except ValueError as fault:
        return 400, _error(f"this is no request of the chat format: {fault}", "invalid_request_error", None)
    if asked.model == LIMITED:
        return 429, _error("too many requests, as this model always says", "requests", "rate_limit_exceeded")
    if asked.model == DOWN:
        return 503, _error("out of order, as this model always is", "server_error", None)
    move = shell.move(asked.talk) if shell.TOOL in asked.talk.tools else rows.move(asked.talk, asked.model)
    return 200, _answer(asked, move, sha256(body).hexdigest()[:24])


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request, as far as the rules need it."""

    model: str
    talk: Talk
    tokens: int
    most_tokens: int | None


def _read(request: Any) -> _Asked:
    """Raises ValueError."""
    request = _of(dict, request, "the body")
    model = _of(str, request.get("model"), "`model`")
    system, question, size = [], "", 0
    done: list[Done] = []
    names: dict[str, tuple[str, str]] = {}
    for message in _of(list, request.get("messages"), "`messages`"):
        role, text = _of(dict, message, "a message").get("role"), _text(message.get("content"))
        size += len(text.encode())
        if role in ("system", "developer"):
            system.append(text)
        elif role == "user":
            question, done = text, []
        elif role == "tool":
            name, arguments = names.get(str(message.get("tool_call_id")), ("", ""))
            done.append(Done(name, arguments, text))
        for call in _of(list, message.get("tool_calls") or [], "`tool_calls`"):
            function = _of(dict, _of(dict, call, "a call").get("function"), "a call's function")
            name, arguments = str(function.get("name")), str(function.get("arguments"))
            names[str(call.get("id"))] = name, arguments
            size += len(name.encode()) + len(arguments.encode())
    tools = {}
    for tool in _of(list, request.get("tools") or [], "`tools`"):
        function = _of(dict, _of(dict, tool, "a tool").get("function"), "a tool's function")
        tools[str(function.get("name"))] = function.get("parameters")
    talk = Talk("\n\n".join(system), question, tuple(done), tools)
    most = request.get("max_completion_tokens", request.get("max_tokens"))
    return _Asked(model, talk, _tokens(size), None if most is None else _of(int, most, "the most tokens"))


def _of(kind: type, value: Any, what: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{what} is no {kind.__name__}")
    return value


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _tokens(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)


def _answer(asked: _Asked, move: Move, name: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": move.text}
    size, finish = len(move.text.encode()), "stop"
    if move.tool is not None:
        arguments = orjson.dumps(move.arguments).decode()
        function = {"name": move.tool, "arguments": arguments}
        message["tool_calls"] = [{"id": f"call_{name}", "type": "function", "function": function}]
        size, finish = size + len(move.tool.encode()) + len(arguments.encode()), "tool_calls"
    if asked.most_tokens is not None and _tokens(size) > asked.most_tokens:
        cut = move.text.encode()[: max(0, asked.most_tokens) * BYTES_PER_TOKEN].decode("utf-8", "ignore")
        message, size, finish = {"role": "assistant", "content": cut}, len(cut.encode()), "length"
    out = _tokens(size) + (OVERRUN_TOKENS if asked.model == OVERRUN else 0)
    answer = {
        "id": f"practice-{name}",
        "object": "chat.completion",
        "created": 0,
        "model": asked.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": asked.tokens, "completion_tokens": out, "total_tokens": asked.tokens + out},
    }
    if asked.model == UNMETERED:
        del answer["usage"]
    return answer


def _error(message: str, kind: str, code: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
