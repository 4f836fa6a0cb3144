"""A provider on loopback, in a thread of its own, which speaks three formats and goes wrong in many ways.

A model's base URL is `<url>/<way>`: the first part of the path says how the request is answered. Ways that are no name
of `WAYS` answer well, in the format that the rest of the path is of: with a call of the tool that the request has (of a
shell: one that writes the right word), and then with what the tool returned; or without tools with what a sum comes to.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web

USAGE = (11, 7)
Way = Callable[["Asked"], Awaitable[web.StreamResponse]]


@dataclass
class Asked:
    """One request: its way, its format by its path, its JSON, and the credential that it brought."""

    request: web.Request
    way: str
    body: dict[str, Any]
    number: int

    @property
    def key(self) -> str:
        """The key, whatever header it came in."""
        headers = self.request.headers
        said = headers.get("authorization") or headers.get("x-api-key") or headers.get("x-goog-api-key") or ""
        return said.removeprefix("Bearer ")

    @property
    def format(self) -> str:
        path = self.request.path
        return "anthropic" if path.endswith("/messages") else "gemini" if "generateContent" in path else "chat"


class ScriptedProvider:
    """Used as a context; `asked` are the requests so far, in order.

    From request `held_from` on none is answered before `go_on` is called.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.held_from: int | None = None
        self._going = asyncio.Event()
        self.was_asked = threading.Event()
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(600)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(600)
        assert not self._thread.is_alive()
        self._loop.close()

    def go_on(self) -> None:
        """Answer what is held, and all that comes."""
        self._loop.call_soon_threadsafe(self._going.set)

    def of(self, way: str) -> list[Asked]:
        """The requests that came that way."""
        return [asked for asked in self.asked if asked.way == way]

    async def _serve(self) -> None:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/{way}/{path:.*}", self._answer)
        runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        self._ready.set()
        await self._over.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        way = request.match_info["way"]
        asked = Asked(request, way, json.loads(await request.read()), len(self.of(way)))
        self.asked.append(asked)
        self.was_asked.set()
        if self.held_from is not None and asked.number >= self.held_from:
            await self._going.wait()
        return await WAYS.get(way, _well)(asked)


async def _well(asked: Asked) -> web.StreamResponse:
    return web.json_response(answer(asked))


def answer(asked: Asked, text: str | None = None, usage: Any = USAGE) -> dict[str, Any]:
    """A good answer in the format of the request."""
    body = asked.body
    said = json.dumps(body, ensure_ascii=False)
    sums = re.findall(r"(\d+) \* (\d+)", said)
    one, other = sums[0] if sums else ("0", "0")
    result = re.search(r"result-(\d+)", said)
    # the words of the three formats for what a tool gave back
    called = any(word in said for word in ("tool_call_id", "tool_use_id", "functionResponse"))
    wants_tool = bool(body.get("tools")) and not called and text is None
    if text is None:
        text = result[1] if result else str(int(one) * int(other))
    arguments: dict[str, Any] = {"a": int(one), "b": int(other)}
    if '"name": "shell"' in said:
        arguments = {"command": "echo right > /app/answer && cat /app/answer"}
    return _FORMATS[asked.format](body, text, arguments if wants_tool else None, usage)


def _chat(body: dict[str, Any], text: str, call: dict[str, Any] | None, usage: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if call is not None:
        name = body["tools"][0]["function"]["name"]
        function = {"name": name, "arguments": json.dumps(call)}
        message = {"role": "assistant", "content": None}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    finish = "stop" if call is None else "tool_calls"
    if isinstance(usage, tuple):
        usage = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    made = {"id": "chatcmpl-1", "object": "chat.completion", "model": body["model"]}
    made["choices"] = [{"index": 0, "message": message, "finish_reason": finish}]
    return made if usage is None else {**made, "usage": usage}


def _anthropic(body: dict[str, Any], text: str, call: dict[str, Any] | None, usage: Any) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if call is not None:
        content = [{"type": "tool_use", "id": "toolu_1", "name": body["tools"][0]["name"], "input": call}]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "end_turn" if call is None else "tool_use",
        "usage": {"input_tokens": usage[0], "output_tokens": usage[1]},
    }


def _gemini(body: dict[str, Any], text: str, call: dict[str, Any] | None, usage: Any) -> dict[str, Any]:
    part: dict[str, Any] = {"text": text}
    if call is not None:
        name = body["tools"][0]["functionDeclarations"][0]["name"]
        part = {"functionCall": {"name": name, "args": call}}
    return {
        "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": usage[0],
            "candidatesTokenCount": usage[1],
            "totalTokenCount": sum(usage),
        },
        "modelVersion": "gemini-x",
    }


_FORMATS: dict[str, Callable[..., dict[str, Any]]] = {"chat": _chat, "anthropic": _anthropic, "gemini": _gemini}


def _says(status: int, kind: str, code: str | None = None, **headers: str) -> Way:
    async def answer(asked: Asked) -> web.StreamResponse:
        # a provider that repeats the key that it was sent
        message = f"no, not with the key {asked.key}"
        body = {"error": {"type": kind, "code": code, "message": message}}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.json_response(body, status=status, headers=named)

    return answer


def _uses(usage: Any) -> Way:
    async def used(asked: Asked) -> web.StreamResponse:
        return web.json_response(answer(asked, usage=usage))

    return used


def _body(data: bytes, content_type: str = "application/json") -> Way:
    async def raw(asked: Asked) -> web.StreamResponse:
        return web.Response(body=data, content_type=content_type)

    return raw


async def _slow(asked: Asked) -> web.StreamResponse:
    # until the client has hung up
    await asyncio.sleep(600)
    return web.Response()


async def _takes_its_time(asked: Asked) -> web.StreamResponse:
    await asyncio.sleep(0.05)
    return await _well(asked)


async def _large(asked: Asked) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "application/json"})
    await response.prepare(asked.request)
    await response.write(b'{"choices": [{"message": {"content": "')
    piece = b"x" * (1 << 20)
    for _ in range(100):
        await response.write(piece)
    await response.write(b'"}}]}')
    return response


async def _bomb(asked: Asked) -> web.StreamResponse:
    """As large, in a hundred kilobytes."""
    data = gzip.compress(b'{"choices": "' + b"x" * (100 << 20), 9)
    return web.Response(body=data, headers={"content-encoding": "gzip", "content-type": "application/json"})


async def _cut(asked: Asked) -> web.StreamResponse:
    whole = json.dumps(answer(asked)).encode()
    response = web.StreamResponse(headers={"content-type": "application/json", "content-length": str(len(whole))})
    await response.prepare(asked.request)
    await response.write(whole[: len(whole) // 2])
    assert asked.request.transport is not None
    asked.request.transport.abort()
    return response


async def _echo(asked: Asked) -> web.StreamResponse:
    """A model that repeats the key, and every header that it was sent."""
    headers = "\n".join(f"{name}: {value}" for name, value in asked.request.headers.items())
    return web.json_response(answer(asked, text=f"{headers}\nkey {asked.key} 42"), headers={"x-said": asked.key})


async def _recovers(asked: Asked) -> web.StreamResponse:
    if asked.number == 0:
        return await _says(429, "rate_limit_error", retry_after="0")(asked)
    return await _well(asked)


WAYS: dict[str, Way] = {
    "limited": _says(429, "rate_limit_error", retry_after="0"),
    "limited-for-long": _says(429, "rate_limit_error", retry_after="50"),
    "broken": _says(500, "server_error"),
    "said-200": _says(200, "server_error"),
    "rejects": _says(400, "invalid_request_error"),
    "key": _says(401, "authentication_error"),
    "quota": _says(402, "billing_error"),
    "quota-429": _says(429, "insufficient_quota", "insufficient_quota"),
    "model": _says(404, "not_found_error", "model_not_found"),
    "context": _says(400, "invalid_request_error", "context_length_exceeded"),
    "unmetered": _uses(None),
    "negative": _uses({"prompt_tokens": -5, "completion_tokens": 7, "total_tokens": 2}),
    "contradictory": _uses({"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 99}),
    "overrun": _uses((11, 5_000)),
    "no-json": _body(b"<html>no</html>", "text/html"),
    "empty": _body(b""),
    "number": _body(b"17"),
    "slow": _slow,
    "takes-its-time": _takes_its_time,
    "large": _large,
    "bomb": _bomb,
    "cut": _cut,
    "echo": _echo,
    "recovers": _recovers,
}
