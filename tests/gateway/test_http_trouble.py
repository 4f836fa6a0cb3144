"""Providers and clients that go wrong in the middle: what is charged, and what the agent sees of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from doorway import CHAT, EVENTS, Doorway, asking, doorway, listening, stream
from loopback import KEY, Said, chat, model, provider, soon
from proctor.core.money import ZERO
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.kinds import Kind
from proctor.evidence.packs import MAX_FRAME_CONTENT
from proctor.gateway import flights
from proctor.gateway.passage import BROKEN_OFF, CLIENT_GONE

USAGE = {"input": 3, "output": 2}
Raw = bytes


@asynccontextmanager
async def answering(pieces: list[Raw], then: str = "close") -> AsyncIterator[str]:
    """A provider that says these bytes to whoever asks, and closes, resets or holds the connection; its address."""
    over = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if then == "hold":
            await over.wait()
        elif then == "reset":
            writer.transport.abort()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"http://{host}:{port}"
    finally:
        over.set()
        server.close()
        # so that each talk comes to its end
        await asyncio.sleep(0)


STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
PLAIN = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


BROKEN: dict[str, tuple[list[Raw], str, bool]] = {
    "a stream that is cut": ([STREAM, *map(chunk, EVENTS[:3])], "close", True),
    "a stream that is reset": ([STREAM, *map(chunk, EVENTS[:3])], "reset", True),
    "a stream cut in a chunk": ([STREAM, chunk(EVENTS[0]), chunk(EVENTS[1])[:-9]], "close", True),
    "a length that is more than comes": ([PLAIN % (1_000, chat().body)], "close", False),
    "a gzip body that is none": (
        [b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 9\r\n\r\nnot gzip!"],
        "close",
        False,
    ),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_what_breaks_off_is_broken_off_and_charged_at_the_worst_case(name: str, tmp_path: Path) -> None:
    pieces, then, streams = BROKEN[name]
    async with answering(pieces, then) as url, doorway(tmp_path, model(url)) as way:
        seen = await way.post_raw(asking(stream=streams))
        (held,), (done,) = await way.bodies(Kind.EXCHANGE_ADMITTED), await way.bodies(Kind.EXCHANGE_ENDED)
        assert way.spending.authority.held == ZERO
    assert not seen.endswith(b"0\r\n\r\n")
    if streams:
        assert EVENTS[0] in seen
        assert way.content(done["response"]).startswith(EVENTS[0])
    assert (done["outcome"], done["error"], done["estimated"]) == ("settled", Reason.REPLY_UNREADABLE.id, True)
    assert done["charged"] == held["held"] and BROKEN_OFF in done["flags"]


NO_HTTP = {
    "a chunk that is none": [STREAM, chunk(EVENTS[0]), b"zz\r\n"],
    "more than the length says": [PLAIN % (len(chat().body), chat().body + b"more of it")],
    "no status": [b"HTTP/1.1 ok\r\n\r\n"],
    "a status that is none": [b"HTTP/1.1 042 OK\r\ncontent-length: 0\r\n\r\n"],
    "two lengths": [b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"],
    "a header flood": [b"HTTP/1.1 200 OK\r\n", *[b"x: %b\r\n" % (b"y" * 1_000)] * 200, b"\r\n"],
}


@pytest.mark.parametrize("name", NO_HTTP)
async def test_what_is_no_http_is_no_answer_and_charged_at_the_worst_case(name: str, tmp_path: Path) -> None:
    async with answering(NO_HTTP[name]) as url, doorway(tmp_path, model(url)) as way:
        seen = await way.post_raw(asking(stream=True))
        (held,), (done,) = await way.bodies(Kind.EXCHANGE_ADMITTED), await way.bodies(Kind.EXCHANGE_ENDED)
    assert not seen.endswith(b"0\r\n\r\n") and b"more of it" not in seen
    assert (done["error"], done["charged"]) == (Reason.REPLY_UNREADABLE.id, held["held"])


NO_END = {"without its end": EVENTS[:2], "without its usage": [*EVENTS[:3], EVENTS[4]]}


@pytest.mark.parametrize("name", NO_END)
async def test_a_stream_that_lacks_what_it_should_say(name: str, tmp_path: Path) -> None:
    async with provider(stream(*NO_END[name])) as it, doorway(tmp_path, model(it.url)) as way:
        status, _, answer = await way.post(asking(stream=True))
        (held,), (done,) = await way.bodies(Kind.EXCHANGE_ADMITTED), await way.bodies(Kind.EXCHANGE_ENDED)
    assert (status, answer) == (200, b"".join(NO_END[name]))
    assert (done["outcome"], done["charged"], done["estimated"]) == ("settled", held["held"], True)
    assert done["flags"] != []


async def test_what_nobody_knows_passes_and_is_flagged(tmp_path: Path) -> None:
    odd = [b'event: new.kind\ndata: {"type":"new"}\n\n', b"data: \xff\xfe\n\n", b": a comment\n\n", b"data: 7\n\n"]
    whole = [EVENTS[0], *odd, *EVENTS[1:]]
    async with provider(stream(*whole)) as it, doorway(tmp_path, model(it.url)) as way:
        status, _, answer = await way.post(asking(stream=True))
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
    assert (status, answer, way.content(done["response"])) == (200, b"".join(whole), b"".join(whole))
    assert "unreadable" in done["flags"] and done["usage"] == USAGE


async def test_a_provider_that_is_down(tmp_path: Path) -> None:
    sock = listening()
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    sock.close()
    async with doorway(tmp_path, model(url)) as way:
        status, headers, said = await way.post(asking())
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
        assert way.opened.failed is not None and way.opened.failed.reason is Reason.PROVIDER_UNREACHABLE
    assert status == 502 and "x-should-retry" not in headers
    assert json.loads(said)["error"]["code"] == "provider_unreachable"
    assert (done["outcome"], done["charged"], done["http_status"]) == ("released", str(ZERO), None)


SLOW = {"no head": [], "no body": [PLAIN % (99, b"{")], "no more events": [STREAM, chunk(EVENTS[0])]}


@pytest.mark.parametrize("name", SLOW)
async def test_a_provider_that_is_late(name: str, tmp_path: Path) -> None:
    # in whole seconds in designs; here it is only compared with a clock
    design: Any = {"request_timeout_sec": 0.2}
    async with answering(SLOW[name], "hold") as url, doorway(tmp_path, model(url, **design)) as way:
        seen = await way.post_raw(asking(stream=name == "no more events"))
        (held,), (done,) = await way.bodies(Kind.EXCHANGE_ADMITTED), await way.bodies(Kind.EXCHANGE_ENDED)
    assert (done["error"], done["outcome"], done["charged"]) == ("provider_timeout", "settled", held["held"])
    assert seen.startswith(b"HTTP/1.1 504" if name == "no head" else b"HTTP/1.1 200")
    assert not seen.endswith(b"0\r\n\r\n")


async def hang_up(way: Doorway, after: bytes) -> None:
    """Ask for a stream, and go once this has come."""
    reader, writer = await way.connect()
    body = asking(stream=True)
    head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {way.token}\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    await reader.readuntil(after)
    writer.transport.abort()


async def test_a_client_that_hangs_up_is_charged_what_was_said(tmp_path: Path) -> None:
    gone = asyncio.Event()
    big = [b'data: {"model":"gpt-x","choices":[]}\n\n'] * 50_000

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(EVENTS[0])
        await gone.wait()
        for event in [b"".join(big), *EVENTS[1:]]:
            await response.write(event)
        return response

    async with provider(answer) as it, doorway(tmp_path, model(it.url)) as way:
        await hang_up(way, EVENTS[0])
        gone.set()
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
    assert (done["outcome"], done["usage"], done["estimated"], done["error"]) == ("settled", USAGE, False, None)
    assert CLIENT_GONE in done["flags"]
    assert way.content(done["response"]) == b"".join([EVENTS[0], *big, *EVENTS[1:]])


async def test_a_client_that_goes_before_there_is_an_answer(tmp_path: Path) -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.set()
        await go.wait()
        return web.Response(body=chat().body)

    async with provider(answer) as it, doorway(tmp_path, model(it.url)) as way:
        work = asyncio.ensure_future(way.post(asking()))
        await asked.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        # over another connection: by then the door has seen the first one end
        await way.get("/v1/models")
        go.set()
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
    assert (done["outcome"], done["usage"], done["flags"]) == ("settled", USAGE, [CLIENT_GONE])


async def test_the_head_of_a_stream_does_not_wait_for_its_first_event(tmp_path: Path) -> None:
    go = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await go.wait()
        await response.write(b"".join(EVENTS))
        return response

    async with provider(answer) as it, doorway(tmp_path, model(it.url)) as way:
        headers = {"authorization": f"Bearer {way.token}"}
        sent = way.session.post(way.opened.door.base_url + CHAT, data=asking(stream=True), headers=headers)
        async with sent as reply:
            assert reply.status == 200
            go.set()
            assert await reply.read() == b"".join(EVENTS)


async def test_a_stream_whose_end_cannot_be_written_down_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with provider(stream(*EVENTS)) as it, doorway(tmp_path, model(it.url)) as way:
        settle, count = way.record.settle, 0

        async def second_fails() -> None:
            nonlocal count
            count += 1
            if count == 2:
                raise Refusal(Reason.DISK_FULL, "no room")
            await settle()

        with monkeypatch.context() as patched:
            patched.setattr(way.record, "settle", second_fails)
            seen = await way.post_raw(asking(stream=True))
        with pytest.raises(Refusal):
            await way.opened.close()
        await way.leave()
    assert EVENTS[0] in seen and not seen.endswith(b"0\r\n\r\n") and seen.count(b"HTTP/1.1") == 1


async def test_a_client_that_takes_nothing_is_let_go(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in [*EVENTS[:2], *[b": %b\n\n" % bytes(100_000)] * 200, *EVENTS[2:]]:
            await response.write(event)
        return response

    design: Any = {"request_timeout_sec": 0.5}
    async with provider(answer) as it, doorway(tmp_path, model(it.url, **design)) as way:
        _, writer = await way.connect()
        body = asking(stream=True)
        head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {way.token}\r\n"
        transport: Any = writer.transport
        transport.pause_reading()
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await soon(lambda: bool(way.record.said.get(Kind.EXCHANGE_ENDED)))
        (done,) = way.record.said[Kind.EXCHANGE_ENDED]
        writer.close()
    assert (done["usage"], CLIENT_GONE in done["flags"]) == (USAGE, True)


async def test_a_door_that_closes_waits_for_what_is_in_flight(tmp_path: Path) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        begun.set()
        await go.wait()
        return web.Response(body=chat().body)

    async with provider(answer) as it, doorway(tmp_path, model(it.url)) as way:
        asked = asyncio.ensure_future(way.post(asking()))
        await begun.wait()
        closing = asyncio.ensure_future(way.opened.close())
        await asyncio.sleep(0)
        go.set()
        assert (await asked)[0] == 200
        await closing
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
    assert (done["outcome"], done["usage"]) == ("settled", USAGE)


async def test_a_door_that_closes_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights, "CLOSE_SEC", 1.0)
    async with answering([STREAM, chunk(EVENTS[0])], "hold") as url, doorway(tmp_path, model(url)) as way:
        asked = asyncio.ensure_future(way.post_raw(asking(stream=True)))
        await soon(lambda: way.record.said.get(Kind.EXCHANGE_ADMITTED))
        (held,), (done,) = await way.bodies(Kind.EXCHANGE_ADMITTED), await way.bodies(Kind.EXCHANGE_ENDED)
        await asked
    assert (done["outcome"], done["error"], done["charged"]) == ("settled", "interrupted", held["held"])


async def test_a_fault_of_ours_is_charged_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        with monkeypatch.context() as patched:
            patched.setattr("proctor.gateway.passage.classify", lambda seen: 1 // 0)
            seen = await way.post_raw(asking())
        (held,), (done,) = await way.bodies(Kind.EXCHANGE_ADMITTED), await way.bodies(Kind.EXCHANGE_ENDED)
    assert (done["error"], done["charged"]) == ("internal_error", held["held"])
    assert b" 200 " not in seen


async def test_what_is_large_goes_by_way_of_a_file(tmp_path: Path) -> None:
    filler = [b'data: {"model":"gpt-x","choices":[],"x":"%b"}\n\n' % (b"y" * 900)] * 4_000
    whole = [EVENTS[0], *filler, *EVENTS[1:]]
    async with provider(stream(*whole)) as it, doorway(tmp_path, model(it.url)) as way:
        _, _, answer = await way.post(asking(stream=True))
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
    assert answer == b"".join(whole) == way.content(done["response"])
    assert done["response"]["size"] > MAX_FRAME_CONTENT and done["response"]["path"].startswith("blobs/")
    assert (done["usage"], done["flags"]) == (USAGE, [])
    assert list((tmp_path / "blobs").rglob(".*")) == []


async def test_a_key_in_what_is_large_is_taken_out_of_the_record_over_every_border(tmp_path: Path) -> None:
    filler = [b'data: {"model":"gpt-x","choices":[],"x":"%b"}\n\n' % (b"y" * 900)] * 2_000
    named = [b"data: OPENAI_API_KEY=sk-%b\n\n" % (b"abc123" * 9), b"data: %b\n\n" % KEY.encode()]
    whole = [EVENTS[0], *filler, *named, *filler, *EVENTS[1:]]
    async with provider(stream(*whole)) as it, doorway(tmp_path, model(it.url)) as way:
        _, _, answer = await way.post(asking(stream=True))
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
    recorded = way.content(done["response"])
    assert KEY.encode() not in answer and KEY.encode() not in recorded and b"abc123" not in recorded
    assert recorded.startswith(EVENTS[0] + filler[0]) and recorded.endswith(filler[0] + b"".join(EVENTS[1:]))
    assert done["chunks"] is None


async def test_more_connections_than_there_may_be_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.gateway.listening.MAX_CONNECTIONS", 3)
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        kept = [await way.connect() for _ in range(3)]
        # the door knows of them once it has answered the last
        kept[-1][1].write(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await kept[-1][0].readline()).startswith(b"HTTP/1.1 401")
        reader, writer = await way.connect()
        assert await way.rest(reader) == b""
        for each in [writer, *(writer for _, writer in kept)]:
            each.close()


async def test_bodies_of_many_requests_are_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = asking()
    monkeypatch.setattr("proctor.gateway.inbound.MAX_BODIES_BYTES", len(body) * 2)
    begun, go = asyncio.Event(), asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if len(it.seen) == 2:
            begun.set()
        await go.wait()
        return web.Response(body=chat().body)

    async with provider(answer) as it, doorway(tmp_path, model(it.url)) as way:
        two = asyncio.gather(way.post(body), way.post(body))
        await begun.wait()
        status, _, said = await way.post(body)
        go.set()
        assert [each[0] for each in await two] == [200, 200]
        assert (await way.post(body))[0] == 200
    assert status == 413 and json.loads(said)["error"]["code"] == "request_too_large"


async def test_who_goes_while_a_rate_holds_it_back_pays_nothing(tmp_path: Path) -> None:
    waiting, go = asyncio.Event(), asyncio.Event()

    async def wait(seconds: float) -> None:
        waiting.set()
        await go.wait()
        way.clock.now += round(seconds * 1e9)

    async with provider(chat()) as it, doorway(tmp_path, model(it.url, rpm=1), sleep=wait) as way:
        await way.post(asking())
        work = asyncio.ensure_future(way.post(asking()))
        await waiting.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await way.get("/v1/models")
        go.set()
        assert len(await way.bodies(Kind.EXCHANGE_ENDED)) == 1
    assert len(it.seen) == 1


async def test_many_requests_share_one_connection(tmp_path: Path) -> None:
    async with provider(chat(), Said(500), stream(*EVENTS), chat()) as it, doorway(tmp_path, model(it.url)) as way:
        reader, writer = await way.connect()
        statuses = []
        for body in (asking(), asking(), asking(stream=True), asking()):
            head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {way.token}\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            statuses.append((await reader.readline()).split()[1])
            head_of_it = (await reader.readuntil(b"\r\n\r\n")).lower()
            if b"chunked" in head_of_it:
                await reader.readuntil(b"0\r\n\r\n")
            else:
                await reader.readexactly(int(head_of_it.partition(b"content-length: ")[2].split()[0]))
        writer.close()
    assert statuses == [b"200", b"500", b"200", b"200"]
