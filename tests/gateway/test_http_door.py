"""Requests of an agent inside, over real connections: what passes, what is charged, what is recorded."""

from __future__ import annotations

import json
from pathlib import Path

from aiohttp import web
from doorway import asking, doorway
from loopback import KEY, Said, chat, model, provider

from proctor.core.money import ZERO
from proctor.evidence.kinds import Kind

EVENTS = [
    b'data: {"model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":"h"}}]}\n\n',
    b'data: {"model":"gpt-x","choices":[{"index":0,"delta":{"content":"i"}}]}\n\n',
    b'data: {"model":"gpt-x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    b'data: {"model":"gpt-x","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n',
    b"data: [DONE]\n\n",
]


def stream(*events: bytes, **headers: str):  # type: ignore[no-untyped-def]
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **headers})
        await response.prepare(request)
        for event in events:
            await response.write(event)
        await response.write_eof()
        return response

    return answer


async def test_a_plain_exchange_passes_untouched(tmp_path: Path) -> None:
    said = Said(200, chat("hi").body, {"content-type": "application/json", "x-request-id": "r1"})
    body = asking(max_tokens=7)
    async with provider(said) as it, doorway(tmp_path, model(it.url + "/v1")) as way:
        status, headers, answer = await way.post(body, headers={"x-stainless-lang": "python"})
        (held,), (done,) = await way.bodies(Kind.EXCHANGE_ADMITTED), await way.bodies(Kind.EXCHANGE_ENDED)
    request, came = it.seen[0]
    assert (status, answer, headers["x-request-id"]) == (200, said.body, "r1")
    assert came == body
    assert (request.headers["authorization"], request.headers["x-stainless-lang"]) == (f"Bearer {KEY}", "python")
    assert (held["route"], held["output_bound"], held["mutations"]) == ("POST /v1/chat/completions", 7, [])
    assert way.content(held["request"]) == body
    assert (done["outcome"], done["usage"], done["finish"]) == ("settled", {"input": 3, "output": 2}, "stop")
    assert (way.content(done["response"]), done["chunks"], done["flags"]) == (said.body, None, [])
    assert way.spending.authority.held == ZERO


async def test_a_stream_passes_untouched(tmp_path: Path) -> None:
    async with provider(stream(*EVENTS)) as it, doorway(tmp_path, model(it.url)) as way:
        status, headers, answer = await way.post(asking(stream=True))
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
    assert (status, answer, headers["content-type"]) == (200, b"".join(EVENTS), "text/event-stream")
    assert (done["outcome"], done["usage"], done["flags"]) == ("settled", {"input": 3, "output": 2}, [])
    assert way.content(done["response"]) == answer
    offsets = [offset for offset, _ in json.loads(way.content(done["chunks"]))]
    assert offsets[0] == 0 and offsets == sorted(set(offsets)) and offsets[-1] < len(answer)
