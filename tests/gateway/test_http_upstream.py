"""One request over HTTP: what is sent, what of a hostile reply is held, and which of four ways it can fail."""

from __future__ import annotations

import asyncio
import gzip
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web

from loopback import Handler, Said, admitted, provider, soon
from proctor.core.clock import SystemClock
from proctor.gateway import http
from proctor.gateway.http import HttpUpstream
from proctor.gateway.upstream import Cut, HttpReply, Late, NotSent, TooLarge
from proctor.gateway.wire.base import Call

CALL = Call("/v1/chat/completions", {"content-type": "application/json"}, b'{"a": 1}')
AUTH = ("authorization", "Bearer secret")


async def send(base_url: str, call: Call = CALL, deadline_sec: float = 20.0) -> HttpReply:
    upstream = HttpUpstream(admitted(Path()), base_url, AUTH, SystemClock())
    try:
        return await upstream.send(call, deadline_sec=deadline_sec)
    finally:
        await upstream.close()


async def test_what_is_sent_and_what_comes_back() -> None:
    async with provider(Said(201, b"yes", {"X-One": "1"})) as it:
        reply = await send(it.url + "/base/v1")
    request, body = it.seen[0]
    assert (request.method, request.path, body) == ("POST", "/base/v1/chat/completions", CALL.body)
    assert request.headers["authorization"] == "Bearer secret"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["content-length"] == str(len(CALL.body))
    assert "cookie" not in request.headers
    assert (reply.status, reply.body, reply.headers["x-one"]) == (201, b"yes", "1")
    assert 0 < reply.timing["sent"] <= reply.timing["first_byte"] <= reply.timing["last_byte"]


async def test_a_large_body_arrives_whole() -> None:
    large = Call(CALL.path, CALL.headers, b"x" * 5_000_000)
    async with provider(Said()) as it:
        await send(it.url, large)
    assert it.seen[0][1] == large.body


async def test_a_redirect_is_an_answer() -> None:
    async with provider(Said(302, b"", {"location": "/elsewhere"})) as it:
        assert (await send(it.url)).status == 302
    assert len(it.seen) == 1


async def test_cookies_are_not_kept() -> None:
    async with provider(Said(200, b"", {"set-cookie": "a=b"})) as it:
        upstream = HttpUpstream(admitted(Path()), it.url, None, SystemClock())
        for _ in range(2):
            await upstream.send(CALL, deadline_sec=20)
        await upstream.close()
    assert all("cookie" not in request.headers and "authorization" not in request.headers for request, _ in it.seen)


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with provider(Said(200, b"yes")) as it:
        assert (await send(it.url)).body == b"yes"


@pytest.mark.parametrize("parts", [1, 3])
async def test_gzip_is_decoded(parts: int) -> None:
    text = b"hello " * 1000
    members = b"".join(gzip.compress(text) for _ in range(parts))
    async with provider(Said(200, members, {"content-encoding": "gzip"})) as it:
        assert (await send(it.url)).body == text * parts


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (gzip.compress(b"hello" * 100)[:-9], "gzip"),
        (b"no gzip", "gzip"),
        (gzip.compress(b"hello") + b"more", "gzip"),
        (b"hello", "br"),
        (b"hello", "gzip, gzip"),
    ],
    # the bytes have the time in them, and workers must agree on a test's name
    ids=["short", "other", "more", "unknown", "twice"],
)
async def test_what_cannot_be_decoded_is_cut(body: bytes, encoding: str) -> None:
    async with provider(Said(200, body, {"content-encoding": encoding})) as it:
        with pytest.raises(Cut) as caught:
            await send(it.url)
    assert caught.value.status == 200 and "sent" in caught.value.timing


async def test_a_gzip_bomb_is_not_held() -> None:
    bomb = gzip.compress(bytes(http.MAX_DECODED + 1), compresslevel=9)
    assert len(bomb) < 1 << 20
    async with provider(Said(200, bomb, {"content-encoding": "gzip"})) as it:
        with pytest.raises(TooLarge) as caught:
            await send(it.url)
    assert caught.value.status == 200


async def test_a_reply_without_end_is_left_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    written = 0

    async def flood(request: web.Request) -> web.StreamResponse:
        nonlocal written
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(bytes(1 << 20))
            written += 1 << 20

    async with provider(flood) as it:
        with pytest.raises(TooLarge):
            await send(it.url)
    assert written < http.MAX_DECODED + (32 << 20)


async def test_nothing_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(NotSent) as caught:
            await send(f"http://127.0.0.1:{unused.getsockname()[1]}")
    assert "127.0.0.1" in str(caught.value)


@pytest.mark.parametrize("url", ["http://name.invalid", "http://127.0.0.1:99999", "gopher://127.0.0.1", "no url"])
async def test_no_such_place(url: str) -> None:
    with pytest.raises((NotSent, ValueError)):
        await send(url)


async def test_a_plain_server_where_tls_is_wanted() -> None:
    async with provider(Said()) as it:
        with pytest.raises(NotSent):
            await send(it.url.replace("http:", "https:"))
    assert it.seen == []


async def test_the_deadline_covers_the_headers() -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with provider(silent) as it:
        for deadline in (0.2, 5.0, 60.0):  # in which it is sent
            with pytest.raises(Late) as caught:
                await send(it.url, deadline_sec=deadline)
            if "sent" in caught.value.timing:
                break
    assert caught.value.status is None and "sent" in caught.value.timing


async def test_the_deadline_covers_the_body() -> None:
    async def begins(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"{")
        await asyncio.Event().wait()
        return response

    async with provider(begins) as it:
        for deadline in (0.3, 5.0, 60.0):  # in which the headers come
            with pytest.raises(Late) as caught:
                await send(it.url, deadline_sec=deadline)
            if caught.value.status is not None:
                break
    assert caught.value.status == 200


async def hang_up(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def cut_short(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-length": "100"})
    await response.prepare(request)
    await response.write(b"{")
    return await hang_up(request)


@pytest.mark.parametrize(("handler", "status"), [(hang_up, None), (cut_short, 200)])
async def test_a_connection_that_breaks_is_cut(handler: Handler, status: int | None) -> None:
    async with provider(handler) as it:
        with pytest.raises(Cut) as caught:
            await send(it.url)
    assert caught.value.status == status


@pytest.mark.parametrize("said", [b"SSH-2.0-OpenSSH_9.6", b"HTTP/1.1 000 no", b"HTTP/1.1 1000 no", b"HTTP/1.1 -20 no"])
async def test_bytes_that_are_not_http_are_cut(said: bytes) -> None:
    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said + b"\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(other, "127.0.0.1", 0)
    async with server:
        with pytest.raises(Cut) as caught:
            await send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert caught.value.status is None


async def test_cancelled_it_leaves_no_connection() -> None:
    gone = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        raise AssertionError

    async with provider(silent) as it:
        work = asyncio.ensure_future(send(it.url))
        await soon(lambda: it.seen)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        async with asyncio.timeout(600):
            await gone.wait()


def test_the_client_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, proctor.gateway.gateway; sys.exit('aiohttp' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)}, timeout=60)
