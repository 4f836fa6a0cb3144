"""What agents and providers could do to a door with HTTP itself: keys, prices and the disk are out of their reach."""

from __future__ import annotations

import asyncio
import base64
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import zstandard

from doorway import CHAT, asking, doorway
from loopback import KEY, Said, chat, error, model, provider
from proctor.core.reasons import Reason
from proctor.evidence.kinds import Kind
from proctor.gateway import gateway, listening
from proctor.gateway.passage import KEY_ECHOED

# one that a header's name can be
NAMEABLE = "planted-key-0123456789-abcdef"


@asynccontextmanager
async def raw(*pieces: bytes, step: asyncio.Event | None = None) -> AsyncIterator[str]:
    """A provider that writes these pieces, whatever they are; the last one once `step` is set."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.partition(b":")[2]))
        for piece in pieces[:-1]:
            writer.write(piece)
        await writer.drain()
        if step is not None:
            await step.wait()
        writer.write(pieces[-1])
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()


def said(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """A reply as it is on the wire."""
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def chunked(*pieces: bytes) -> bytes:
    """Pieces as chunks of HTTP."""
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


@pytest.mark.parametrize("left", [1, 5, 40])
async def test_a_block_of_zstd_that_may_hold_a_key_is_not_passed_on_before_it_was_read(
    left: int, tmp_path: Path
) -> None:
    body = zstandard.ZstdCompressor().compress(chat(KEY).body)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\nTransfer-Encoding: chunked\r\n\r\n"
    rest = asyncio.Event()
    async with (
        raw(head, chunked(body[:-left]), chunked(body[-left:]) + b"0\r\n\r\n", step=rest) as url,
        doorway(tmp_path, model(url)) as way,
    ):
        reader, writer = await way.connect()
        request = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {way.token}\r\nContent-Length: "
        writer.write(f"{request}{len(asking())}\r\n\r\n".encode() + asking())
        came = await reader.readuntil(b"\r\n\r\n")
        rest.set()
        came += await way.rest(reader)
        writer.close()
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
    assert came.startswith(b"HTTP/1.1 200 ") and came.endswith(b"\r\n\r\n")
    assert KEY_ECHOED in done["flags"] and done["error"] == Reason.REPLY_UNREADABLE.id


async def test_a_key_in_the_name_of_a_header(tmp_path: Path) -> None:
    reply = said(chat().body, f"X-{NAMEABLE}: 1", "X-Other: 2")
    async with raw(reply) as url, doorway(tmp_path, model(url), keys={"TEST_MODEL_KEY": NAMEABLE}) as way:
        came = await way.post_raw(asking())
    assert NAMEABLE.encode() not in came and b"X-Other: 2" in came and came.startswith(b"HTTP/1.1 200 ")


async def test_encodings_in_two_headers_are_both_undone(tmp_path: Path) -> None:
    body = gzip.compress(chat(KEY).body)
    reply = said(body, "Content-Encoding: gzip", "Content-Encoding: identity")
    async with raw(reply) as url, doorway(tmp_path, model(url)) as way:
        came = await way.post_raw(asking())
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
    assert body[20:] not in came and KEY_ECHOED in done["flags"]


@pytest.mark.parametrize("spelled", [KEY.encode().hex(), KEY.encode().hex().upper(), KEY.encode().hex(":")])
async def test_a_key_in_hexadecimal(spelled: str, tmp_path: Path) -> None:
    said_it = Said(200, chat(f"it is {spelled}.").body, {"x-key": spelled})
    async with provider(said_it) as it, doorway(tmp_path, model(it.url)) as way:
        came = await way.post_raw(asking())
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
        recorded = way.content(done["response"])
    assert spelled.encode() not in came and spelled.encode() not in recorded and KEY_ECHOED in done["flags"]


@pytest.mark.parametrize("cut", [1, 12, 30])
async def test_a_key_in_base64_in_two_chunks(cut: int, tmp_path: Path) -> None:
    spelled = base64.b64encode(KEY.encode())
    before, _, after = chat("@").body.partition(b"@")
    body = chunked(before + spelled[:cut], spelled[cut:] + after)
    async with (
        raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", body + b"0\r\n\r\n") as url,
        doorway(tmp_path, model(url)) as way,
    ):
        came = await way.post_raw(asking())
    assert spelled[cut:] not in came and b"[redacted:secret]" in came


async def test_a_reply_that_switches_protocols_is_none(tmp_path: Path) -> None:
    reply = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello"
    async with raw(reply) as url, doorway(tmp_path, model(url)) as way:
        came = await way.post_raw(asking())
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
    assert came.startswith(b"HTTP/1.1 502 ")
    assert (done["error"], done["estimated"]) == (Reason.REPLY_UNREADABLE.id, True)


async def test_early_hints_are_no_reply(tmp_path: Path) -> None:
    reply = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + said(chat().body)
    async with raw(reply) as url, doorway(tmp_path, model(url)) as way:
        came = await way.post_raw(asking())
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
    assert came.startswith(b"HTTP/1.1 200 ") and came.endswith(chat().body)
    assert (done["error"], done["estimated"]) == (None, False)


async def test_a_query_of_the_base_url_and_one_of_the_request(tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(f"{it.url}/v1?api-version=1")) as way:
        await way.post(asking(), f"{CHAT}?beta=true")
    assert it.seen[0][0].path_qs == "/v1/chat/completions?api-version=1&beta=true"


@pytest.mark.parametrize("name", ["key", "%6bey", "k%65y"])
async def test_a_token_in_the_query_stays_here_however_its_name_is_spelled(name: str, tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        target = f"{CHAT}?a=1&{name}={way.token}&b=2"
        status, _, _ = await way.post(asking(), target, headers={"authorization": "Bearer other"})
        token = way.token
    assert status == 200 and it.seen[0][0].path_qs == "/chat/completions?a=1&b=2"
    assert token not in str(it.seen[0][0].headers)


@pytest.mark.parametrize(
    "name", ["X-Vertex-AI-LLM-Shared-Request-Type", "X-Vertex-AI-LLM-Request-Type", "x-portkey-config", "cf-aig-step"]
)
async def test_headers_that_change_the_price_are_refused(name: str, tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        status, _, body = await way.post(asking(), headers={name: "priority"})
        (refused,) = await way.bodies(Kind.EXCHANGE_REFUSED)
    assert (status, it.seen) == (401, []) and name.lower().encode() in body
    assert refused["reason"] == Reason.FEATURE_UNPRICED.id


@pytest.mark.parametrize("asked", [{"max_tokens": 0}, {"max_completion_tokens": 0, "max_tokens": 0}, {}])
async def test_a_bound_of_nothing_is_no_bound(asked: dict[str, int], tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        assert (await way.post(asking(**asked)))[0] == 200
        assert (await way.post(asking(n=1_000, **asked)))[0] == 401
        (held,) = await way.bodies(Kind.EXCHANGE_ADMITTED)
    assert held["output_bound"] == 100


async def test_a_request_has_one_method(tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        await way.post(asking(), headers={"X-HTTP-Method-Override": "DELETE", "X-Mine": "1"})
    headers = it.seen[0][0].headers
    assert "X-HTTP-Method-Override" not in headers and headers["X-Mine"] == "1"


async def test_requests_that_cost_nothing_fill_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = asking(messages=[{"role": "user", "content": "x" * 1_000}])
    monkeypatch.setattr(gateway, "MAX_FREE_BYTES", 4 * len(body) - 1)
    async with provider(error(400)) as it, doorway(tmp_path, model(it.url)) as way:
        statuses = [(await way.post(body))[0] for _ in range(6)]
        refused = await way.bodies(Kind.EXCHANGE_REFUSED)
    assert statuses == [400] * 4 + [413] * 2 and len(it.seen) == 4
    assert [(each["reason"], each["request"]) for each in refused] == [(Reason.REQUEST_TOO_LARGE.id, None)] * 2


async def test_requests_that_are_refused_are_not_read_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = asking("another", messages=[{"role": "user", "content": "x" * 1_000}])
    monkeypatch.setattr(gateway, "MAX_FREE_BYTES", 2 * len(body) - 1)
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        statuses = [(await way.post(body))[0] for _ in range(4)]
        assert (await way.post(asking()))[0] == 413
    assert statuses == [404] * 2 + [413] * 2 and it.seen == []


async def test_requests_that_are_paid_for_are_not_counted_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "MAX_FREE_BYTES", 10)
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        statuses = [(await way.post(asking()))[0] for _ in range(4)]
    assert statuses == [200] * 4 and len(it.seen) == 4


async def test_an_agent_takes_a_part_of_the_files_that_may_be_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "may_be_open", lambda: 24)
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        kept = [await way.connect() for _ in range(3)]
        kept[-1][1].write(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
        # the door knows of them once it has answered the last
        assert (await kept[-1][0].readline()).startswith(b"HTTP/1.1 401")
        reader, writer = await way.connect()
        assert await way.rest(reader) == b""
        for _, each in (*kept, (reader, writer)):
            each.close()
