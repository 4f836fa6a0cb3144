"""What a door does not pass on: each bad request is refused in its provider's words, recorded, and costs nothing."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from doorway import CHAT, asking, doorway
from loopback import chat, model, provider
from proctor.core.money import ZERO
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.kinds import Kind
from proctor.gateway import flights
from proctor.gateway.wire.requests import MAX_REQUEST_BYTES

PICTURE = [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]

REFUSED: dict[str, tuple[bytes, dict[str, str], Reason]] = {
    "no JSON": (b"{", {}, Reason.REQUEST_UNREADABLE),
    "nothing": (b"", {}, Reason.REQUEST_UNREADABLE),
    "no object": (b"[]", {}, Reason.REQUEST_UNREADABLE),
    "no UTF-8": (b'{"model": "\xff"}', {}, Reason.REQUEST_UNREADABLE),
    "a key twice": (b'{"model": "gpt-x", "model": "gpt-y"}', {}, Reason.REQUEST_UNREADABLE),
    "deeply nested": (b'{"model":' + b"[" * 100_000 + b"]" * 100_000 + b"}", {}, Reason.REQUEST_UNREADABLE),
    "another model": (asking("gpt-x-hack"), {}, Reason.MODEL_NOT_LISTED),
    "no gzip": (asking(), {"content-encoding": "gzip"}, Reason.REQUEST_UNREADABLE),
    "gzip cut": (gzip.compress(asking())[:-9], {"content-encoding": "gzip"}, Reason.REQUEST_UNREADABLE),
    "an unknown encoding": (asking(), {"content-encoding": "rot13"}, Reason.REQUEST_UNREADABLE),
    "a zstd bomb": (
        zstandard.ZstdCompressor().compress(bytes(MAX_REQUEST_BYTES + 1)),
        {"content-encoding": "zstd"},
        Reason.REQUEST_TOO_LARGE,
    ),
    "too much output": (asking(max_tokens=101), {}, Reason.OUTPUT_ABOVE_BOUND),
    "too many answers": (asking(max_tokens=60, n=2), {}, Reason.OUTPUT_ABOVE_BOUND),
    "an unpriced feature": (asking(service_tier="priority"), {}, Reason.FEATURE_UNPRICED),
    "an unknown key": (asking(turbo=True), {}, Reason.FEATURE_UNPRICED),
    "input that is elsewhere": (
        asking(messages=[{"role": "user", "content": PICTURE}]),
        {},
        Reason.FEATURE_UNPRICED,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_each_is_refused_and_recorded(name: str, tmp_path: Path) -> None:
    body, headers, reason = REFUSED[name]
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        status, answered, said = await way.post(body, headers=headers)
        (refused,) = await way.bodies(Kind.EXCHANGE_REFUSED)
        assert await way.bodies(Kind.EXCHANGE_ADMITTED) == []
    assert it.seen == []
    assert 400 <= status < 500 and status not in (408, 409, 429)
    assert answered["x-should-retry"] == "false"
    assert json.loads(said)["error"]["code"] == reason.id
    assert (refused["reason"], refused["held"], refused["route"]) == (reason.id, str(ZERO), "POST /chat/completions")
    assert way.content(refused["request"]) == body


async def test_tokens_of_a_kind_without_a_price(tmp_path: Path) -> None:
    cached = {"type": "text", "text": "hello", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    asked = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": [cached]}]}
    design = {"api": "anthropic", "provider": "anthropic", "model": "claude-x"}
    async with provider(chat()) as it, doorway(tmp_path, model(it.url, **design)) as way:
        status, _, said = await way.post(json.dumps(asked).encode(), "/v1/messages")
        (refused,) = await way.bodies(Kind.EXCHANGE_REFUSED)
    assert (status, it.seen) == (403, [])
    assert b"feature_unpriced" in said and (refused["reason"], refused["held"]) == ("feature_unpriced", str(ZERO))


async def test_input_that_is_elsewhere_is_bounded_by_the_window(tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url, context_window=5_000)) as way:
        status, _, _ = await way.post(asking(messages=[{"role": "user", "content": PICTURE}]))
        (held,) = await way.bodies(Kind.EXCHANGE_ADMITTED)
    assert (status, held["input_bound"]) == (200, 5_000)


async def test_one_of_100_mb_is_refused_before_it_is_read(tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        reader, writer = await way.connect()
        head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {way.token}\r\n"
        writer.write(f"{head}Content-Length: 100000000\r\n\r\n".encode() + bytes(9))
        status = await reader.readline()
        writer.close()
        (refused,) = await way.bodies(Kind.EXCHANGE_REFUSED)
    assert b" 413 " in status and (refused["reason"], refused["request"]) == ("request_too_large", None)


async def test_one_in_chunks_is_read_up_to_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.gateway.inbound.MAX_REQUEST_BYTES", 1_000)

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield bytes(100)

    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        status, _, _ = await way.post(endless())
    assert status == 413 and it.seen == []


TOKENS: dict[str, dict[str, str]] = {
    "none": {"authorization": ""},
    "another": {"authorization": "Bearer x"},
    "another scheme": {"authorization": "Basic {token}"},
    "a part": {"authorization": "Bearer {token:.9}"},
    "not ASCII": {"authorization": "Bearer \xe9"},
    "another in another header": {"authorization": "", "x-api-key": "x"},
}


@pytest.mark.parametrize("name", TOKENS)
async def test_a_token_that_is_none_opens_nothing(name: str, tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        headers = {key: value.format(token=way.token) for key, value in TOKENS[name].items()}
        status, _, said = await way.post(asking(), headers=headers)
        assert await way.bodies(Kind.EXCHANGE_REFUSED) == []
    assert status == 401 and json.loads(said)["error"]["code"] == "token_unknown" and it.seen == []


@pytest.mark.parametrize("name", ["authorization", "x-api-key", "x-goog-api-key", "api-key"])
async def test_a_token_opens_wherever_sdks_put_it(name: str, tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        token = f"Bearer {way.token}" if name == "authorization" else way.token
        status, _, _ = await way.post(asking(), headers={"authorization": "", name: token})
    assert status == 200 and way.token not in str(it.seen[0][0].headers)


async def test_one_door_does_not_open_for_another_token(tmp_path: Path) -> None:
    async with (
        provider(chat()) as it,
        doorway(tmp_path / "one", model(it.url)) as one,
        doorway(tmp_path / "other", model(it.url)) as other,
    ):
        status, _, _ = await one.post(asking(), headers={"authorization": f"Bearer {other.token}"})
    assert status == 401 and it.seen == []


ROUTES = [
    ("GET", "/"),
    ("HEAD", "/"),
    ("GET", CHAT),
    ("PUT", CHAT),
    ("POST", "/v1/embeddings"),
    ("POST", "/v1/messages"),
    ("POST", "/v1/files"),
    ("POST", "/v1/chat/completions/../../admin"),
    ("DELETE", "/v1/models/gpt-x"),
    ("POST", "/v1beta/models/gpt-x:generateContent"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_a_route_that_is_none_of_the_models(method: str, path: str, tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        status, said = await way.get(path, method)
        refused = await way.bodies(Kind.EXCHANGE_REFUSED)
    assert status == 404 and it.seen == []
    assert method == "HEAD" or b"route_unknown" in said
    assert [body["reason"] for body in refused] == (["route_unknown"] if method == "POST" else [])


async def test_a_web_socket_is_told_at_once_to_do_without(tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        upgrade = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-version": "13"}
        status, _ = await way.get("/v1/responses", **upgrade)
        again, _, _ = await way.post(asking())
    assert (status, again) == (426, 200)


async def test_money_that_is_not_there_is_refused_in_the_providers_words(tmp_path: Path) -> None:
    body = asking(max_tokens=10)
    async with provider(chat()) as it, doorway(tmp_path, model(it.url), cap=str(len(body) + 9)) as way:
        status, headers, said = await way.post(body)
        assert way.opened.refused is not None and way.opened.refused.reason is Reason.CEILING_REACHED
        (refused,) = await way.bodies(Kind.EXCHANGE_REFUSED)
    assert it.seen == []
    assert status < 500 and status not in (408, 409, 429) and headers["x-should-retry"] == "false"
    assert json.loads(said)["error"]["code"] == "ceiling_reached"
    assert way.content(refused["request"]) == body and refused["route"] == "POST /chat/completions"


async def test_who_asks_in_vain_for_ever_fills_no_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flights, "MAX_REFUSED", 5)
    monkeypatch.setattr(flights, "MAX_REFUSED_BYTES", len(asking("other")) * 3)
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        statuses = {(await way.post(asking("other")))[0] for _ in range(9)}
        answered, _, _ = await way.post(asking())
        refused = await way.bodies(Kind.EXCHANGE_REFUSED)
    assert (statuses, answered) == ({404}, 200)
    assert [body["request"] is not None for body in refused] == [True, True, True, False, False]


async def test_the_first_refusal_for_money_is_on_record_after_any_number_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flights, "MAX_REFUSED", 1)
    async with provider(chat()) as it, doorway(tmp_path, model(it.url), cap="1") as way:
        for body in (asking("other"), asking("other"), asking(), asking()):
            await way.post(body)
        refused = await way.bodies(Kind.EXCHANGE_REFUSED)
    assert [body["reason"] for body in refused] == ["model_not_listed", "ceiling_reached"]


async def test_after_its_attempt_a_door_opens_nothing(tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        await way.post(asking())
        reader, writer = await way.connect()
        await way.opened.close()
        assert await reader.read() == b""
        writer.close()
        with pytest.raises(OSError):
            await way.connect()
    assert len(it.seen) == 1


SMUGGLED: dict[str, str] = {
    "two lengths": "Content-Length: 5\r\nContent-Length: 6\r\n",
    "a length and chunks": "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "chunks twice": "Transfer-Encoding: chunked, chunked\r\n",
    "a length with a sign": "Content-Length: +5\r\n",
    "a length that is none": "Content-Length: five\r\n",
    "a folded header": "X-A: b\r\n c: d\r\nContent-Length: 5\r\n",
    "a space before the colon": "Content-Length : 5\r\n",
    "a header flood": "".join(f"X-{number}: {'y' * 1000}\r\n" for number in range(5_000)) + "Content-Length: 5\r\n",
    "a long header": f"X-A: {'y' * 100_000}\r\nContent-Length: 5\r\n",
}


@pytest.mark.parametrize("name", SMUGGLED)
async def test_what_is_no_clean_http_is_not_passed_on(name: str, tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        reader, writer = await way.connect()
        head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {way.token}\r\n{SMUGGLED[name]}\r\n"
        writer.write(head.encode() + b"hello" + asking())
        came = await way.rest(reader)
        writer.close()
        after, _, _ = await way.post(asking())
    assert b" 200 " not in came.partition(b"\r\n")[0] and after == 200
    assert len(it.seen) == 1


async def test_a_client_that_never_says_its_body_holds_nothing(tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        _, writer = await way.connect()
        head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {way.token}\r\nContent-Length: 99\r\n\r\n"
        writer.write(head.encode())
        await writer.drain()
        async with asyncio.timeout(600):
            entries: Any = await way.entries()
        writer.close()
    assert it.seen == [] and [entry for entry in entries if entry.kind is Kind.EXCHANGE_ADMITTED] == []


async def test_a_disk_that_fails_is_told_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:

        async def full() -> None:
            raise Refusal(Reason.DISK_FULL, "no room")

        with monkeypatch.context() as patched:
            patched.setattr(way.record, "settle", full)
            status, _, _ = await way.post(asking())
            with pytest.raises(Refusal) as caught:
                await way.opened.close()
        assert caught.value.reason is Reason.DISK_FULL
        assert status >= 400 and it.seen == []
        await way.leave()
