"""Calls to a model over a real connection, with a real journal: what is charged, what is recorded, exactly once."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from loopback import HELLO, KEY, Calling, Said, calling, chat, ended, error, model, provider
from proctor.core.models import Answer, Finish, Message, Role, ToolSpec
from proctor.core.money import ZERO, Usd
from proctor.core.prices import PriceRow, Prices
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.usage import Bucket
from proctor.evidence.entries import Entry
from proctor.evidence.kinds import Kind
from proctor.evidence.packs import Blob
from proctor.evidence.reader import read_blob
from proctor.gateway.exchange import TOOLS_TOKENS
from proctor.gateway.failures import TRIES
from proctor.gateway.wire.formats import WIRES
from proctor.gateway.wire.requests import MAX_REQUEST_BYTES

TOOL = ToolSpec("look", "looks", {"type": "object", "properties": {}})


def usd(tokens: int) -> str:
    return str(Usd.parse(str(tokens)))


async def refused(work: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await work
    return caught.value


def bodies(entries: list[Entry], kind: Kind) -> list[dict[str, Any]]:
    return [entry.body for entry in entries if entry.kind is kind]


def content(run: Calling, reference: dict[str, Any]) -> bytes:
    blob = Blob.parse(reference)
    assert blob is not None
    return read_blob(run.spending.run, blob)


def at_rest(run: Calling) -> None:
    assert run.spending.authority.held == ZERO


async def test_an_exchange_from_end_to_end(tmp_path: Path) -> None:
    async with provider(chat("hi", model="gpt-x-2026-01-01")) as it:
        run = await calling(tmp_path, model(it.url + "/v1"))
        answer = await run.access.ask(HELLO, max_output_tokens=7)
        entries = await run.end()
    request, body = it.seen[0]
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert (answer.message.role, answer.message.text, answer.finish) == (Role.ASSISTANT, "hi", Finish.STOP)
    assert (dict(answer.usage.tokens), answer.cost) == ({Bucket.INPUT: 3, Bucket.OUTPUT: 2}, Usd.parse("5"))
    assert (answer.exchange, answer.flags) == (f"{run.attempt}/0", ())
    (held,) = bodies(entries, Kind.EXCHANGE_ADMITTED)
    assert content(run, held["request"]) == body
    assert held == {
        "attempt": run.attempt,
        "exchange": f"{run.attempt}/0",
        "model": "m",
        "route": "POST /v1/chat/completions",
        "request": held["request"],
        "request_digest": WIRES["chat"].digest(body),
        "input_bound": len(body),
        "output_bound": 7,
        "held": usd(len(body) + 7),
        "retries": None,
        "mutations": [],
    }
    (done,) = ended(entries)
    assert json.loads(content(run, done["response"]))["choices"][0]["message"]["content"] == "hi"
    assert done == {
        "attempt": run.attempt,
        "exchange": f"{run.attempt}/0",
        "outcome": "settled",
        "http_status": 200,
        "error": None,
        "resolved_model": "gpt-x-2026-01-01",
        "finish": "stop",
        "response": done["response"],
        "chunks": None,
        "usage": {"input": 3, "output": 2},
        "charged": usd(5),
        "estimated": False,
        "overrun": False,
        "flags": [],
        "timing": {"sent": 0, "first_byte": 0, "last_byte": 0},
    }
    at_rest(run)


async def test_the_worst_case_is_durable_before_anything_is_sent(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    seen: list[bytes] = []

    async def look(request: web.Request) -> web.StreamResponse:
        seen.append(await asyncio.to_thread(journal.read_bytes))
        return web.Response(body=chat().body)

    async with provider(look) as it:
        run = await calling(tmp_path, model(it.url))
        await run.access.ask(HELLO)
        await run.end()
    assert seen[0].endswith(b"\n") and b'"exchange.admitted"' in seen[0].splitlines()[-1]


async def test_tools_and_other_bounds(tmp_path: Path) -> None:
    async with provider(chat()) as it:
        run = await calling(tmp_path, model(it.url))
        await run.access.ask(HELLO, [TOOL], max_output_tokens=10**9)
        entries = await run.end()
    (held,) = bodies(entries, Kind.EXCHANGE_ADMITTED)
    assert held["input_bound"] == len(it.seen[0][1]) + TOOLS_TOKENS
    assert held["output_bound"] == 100


FAILING: dict[str, tuple[Said, Reason, int, str]] = {
    "429": (error(429, "rate_limit_error"), Reason.RATE_LIMITED, TRIES, "nothing"),
    "500": (error(500, "api_error"), Reason.PROVIDER_FAILED, TRIES, "nothing"),
    "529": (Said(529, b"<html>busy</html>"), Reason.PROVIDER_FAILED, TRIES, "nothing"),
    "quota": (error(429, "insufficient_quota"), Reason.QUOTA_EXHAUSTED, 1, "nothing"),
    "402": (error(402), Reason.QUOTA_EXHAUSTED, 1, "nothing"),
    "401": (error(401), Reason.KEY_REJECTED, 1, "nothing"),
    "403": (Said(403), Reason.KEY_REJECTED, 1, "nothing"),
    "404": (error(404, code="model_not_found"), Reason.MODEL_NOT_FOUND, 1, "nothing"),
    "400": (error(400, "invalid_request_error"), Reason.REQUEST_REJECTED, 1, "nothing"),
    "context": (error(400, code="context_length_exceeded"), Reason.CONTEXT_EXCEEDED, 1, "nothing"),
    "413": (error(413), Reason.CONTEXT_EXCEEDED, 1, "nothing"),
    "422": (error(422), Reason.REQUEST_REJECTED, 1, "nothing"),
    "redirect": (Said(307, b"", {"location": "/x"}), Reason.REQUEST_REJECTED, 1, "nothing"),
    "200 with an error": (error(200, "server_error"), Reason.PROVIDER_FAILED, TRIES, "worst case"),
    "no JSON": (Said(200, b"<html>"), Reason.REPLY_UNREADABLE, TRIES, "worst case"),
    "nothing": (Said(200, b""), Reason.REPLY_UNREADABLE, TRIES, "worst case"),
    "JSON cut": (Said(200, chat().body[:-9]), Reason.REPLY_UNREADABLE, TRIES, "worst case"),
    "204": (Said(204), Reason.REPLY_UNREADABLE, TRIES, "worst case"),
    "too large": (
        Said(200, gzip.compress(bytes(65 << 20)), {"content-encoding": "gzip"}),
        Reason.REPLY_TOO_LARGE,
        1,
        "worst case",
    ),
}


@pytest.mark.parametrize("name", FAILING)
async def test_each_failure_is_typed_and_settled(name: str, tmp_path: Path) -> None:
    said, reason, tries, owed = FAILING[name]
    async with provider(said) as it:
        run = await calling(tmp_path, model(it.url))
        refusal = await refused(run.access.ask(HELLO))
        at_rest(run)
        entries = await run.end()
    assert refusal.reason is reason
    assert len(it.seen) == tries
    done = ended(entries)
    assert len(done) == tries
    held = [body["held"] for body in bodies(entries, Kind.EXCHANGE_ADMITTED)]
    for number, body in enumerate(done):
        assert (body["error"], body["finish"], body["http_status"]) == (reason.id, None, said.status)
        if owed == "nothing":
            assert (body["outcome"], body["charged"], body["estimated"]) == ("released", usd(0), False)
        else:
            assert (body["outcome"], body["charged"], body["estimated"]) == ("settled", held[number], True)
    retries = [body["retries"] for body in bodies(entries, Kind.EXCHANGE_ADMITTED)]
    assert retries == [None, *(f"{run.attempt}/{number}" for number in range(tries - 1))]
    assert run.clock.slept == [0.5, 1.0, 2.0, 4.0][: tries - 1]


async def test_a_failure_that_passes(tmp_path: Path) -> None:
    async with provider(error(500), error(429, retry_after="9"), Said(200, b"?"), chat()) as it:
        run = await calling(tmp_path, model(it.url))
        answer = await run.access.ask(HELLO)
        entries = await run.end()
    assert answer.exchange == f"{run.attempt}/3"
    assert run.clock.slept == [0.5, 9.0, 2.0]
    assert [body["outcome"] for body in ended(entries)] == ["released", "released", "settled", "settled"]
    assert len({request_body for _, request_body in it.seen}) == 1


async def test_nobody_listens(tmp_path: Path) -> None:
    async with provider(chat()) as it:
        pass
    run = await calling(tmp_path, model(it.url))
    assert (await refused(run.access.ask(HELLO))).reason is Reason.PROVIDER_UNREACHABLE
    done = ended(await run.end())
    assert [(body["outcome"], body["http_status"], body["timing"]) for body in done] == [("released", None, {})] * TRIES


async def test_a_deadline_is_paid_for(tmp_path: Path) -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    # the design has whole seconds; a test does not wait for one, unless nothing was sent, or answered, in less
    for seconds in (0.2, 5.0, 60.0):
        async with provider(silent, chat()) as it:
            run = await calling(
                tmp_path / f"{seconds}", dataclasses.replace(model(it.url), request_timeout_sec=seconds)
            )
            await run.access.ask(HELLO)
            entries = await run.end()
        if [body["outcome"] for body in ended(entries)] == ["settled", "settled"]:
            break
    late, done = ended(entries)
    assert (late["error"], late["outcome"], late["estimated"]) == (Reason.PROVIDER_TIMEOUT.id, "settled", True)
    assert late["charged"] == bodies(entries, Kind.EXCHANGE_ADMITTED)[0]["held"]
    assert (done["error"], done["estimated"]) == (None, False)


CACHED = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}}
USAGES: dict[str, tuple[Any, bool, str]] = {
    "missing": (None, True, "no_usage"),
    "negative": ({"prompt_tokens": -3, "completion_tokens": 2}, True, "usage_invalid"),
    "no numbers": ({"prompt_tokens": "many", "completion_tokens": [2]}, True, "usage_invalid"),
    "a word": ("some", True, "usage_invalid"),
    "no price for cached tokens": (CACHED, True, "no_price_cache_read"),
    "contradictory": ({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 50}, False, "total"),
}


@pytest.mark.parametrize("name", USAGES)
async def test_a_usage_that_cannot_be_used_is_charged_at_the_worst_case(name: str, tmp_path: Path) -> None:
    usage, estimated, flag = USAGES[name]
    async with provider(chat(usage=usage)) as it:
        run = await calling(tmp_path, model(it.url))
        answer = await run.access.ask(HELLO)
        entries = await run.end()
    assert answer.message.text == "hi"
    (done,) = ended(entries)
    assert done["estimated"] is estimated
    assert any(each.startswith(flag) for each in done["flags"]), done["flags"]
    assert set(done["flags"]) == set(answer.flags)
    if estimated:
        assert done["charged"] == bodies(entries, Kind.EXCHANGE_ADMITTED)[0]["held"]
    assert str(answer.cost) == done["charged"]


async def test_more_than_was_held_is_an_overrun(tmp_path: Path) -> None:
    async with provider(chat(usage=(5_000, 1))) as it:
        run = await calling(tmp_path, model(it.url))
        answer = await run.access.ask(HELLO)
        entries = await run.end()
    (done,) = ended(entries)
    assert (answer.cost, done["charged"], done["overrun"]) == (Usd.parse("5001"), usd(5_001), True)
    assert bodies(entries, Kind.CEILING_REACHED)[0]["scope"] == "overrun"


async def test_the_ceiling_keeps_a_request_from_being_sent(tmp_path: Path) -> None:
    async with provider(chat()) as it:
        run = await calling(tmp_path, model(it.url), cap="300")
        await run.access.ask(HELLO)
        refusal = await refused(run.access.ask([Message(Role.USER, "x" * 300)]))
        await run.access.ask(HELLO)
        entries = await run.end()
    assert refusal.reason is Reason.CEILING_REACHED
    assert len(it.seen) == 2 == len(ended(entries))
    (said,) = bodies(entries, Kind.EXCHANGE_REFUSED)
    assert said["reason"] == Reason.CEILING_REACHED.id
    at_rest(run)


async def test_a_model_without_a_price_is_not_called(tmp_path: Path) -> None:
    async with provider(chat()) as it:
        run = await calling(tmp_path, model(it.url, price=Prices("none", (PriceRow("input", 0, "1.000000000000"),))))
        assert (await refused(run.access.ask(HELLO))).reason is Reason.PRICE_UNKNOWN
        entries = await run.end()
    assert it.seen == []
    assert [body["reason"] for body in bodies(entries, Kind.EXCHANGE_REFUSED)] == [Reason.PRICE_UNKNOWN.id]


async def test_a_conversation_that_nobody_takes_is_not_sent(tmp_path: Path) -> None:
    long = Message(Role.USER, "x" * MAX_REQUEST_BYTES)
    async with provider(chat()) as it:
        run = await calling(tmp_path, model(it.url))
        assert (await refused(run.access.ask([long]))).reason is Reason.CONTEXT_EXCEEDED
        entries = await run.end()
    assert it.seen == [] and not bodies(entries, Kind.EXCHANGE_ADMITTED)
    at_rest(run)


async def test_another_model_that_answers_is_told(tmp_path: Path) -> None:
    async with provider(chat(model="other/llama-9"), chat(model="m" * 500)) as it:
        run = await calling(tmp_path, model(it.url))
        first, second = await run.access.ask(HELLO), await run.access.ask(HELLO)
        entries = await run.end()
    assert first.flags == ("other_model",) and "other_model" in second.flags
    assert [len(body["resolved_model"]) for body in ended(entries)] == [13, 200]


async def at_the_hold(run: Calling, request: asyncio.Event, work: asyncio.Future[Answer]) -> None:
    """Cancelled while the worst case becomes durable."""
    await asyncio.sleep(0)
    work.cancel()


async def in_flight(run: Calling, request: asyncio.Event, work: asyncio.Future[Answer]) -> None:
    """Cancelled while the reply is waited for."""
    await request.wait()
    work.cancel()


@pytest.mark.parametrize(("when", "outcome"), [(at_the_hold, "released"), (in_flight, "settled")])
async def test_cancelled_it_ends_once(when: Callable[..., Any], outcome: str, tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with provider(silent) as it:
        run = await calling(tmp_path, model(it.url))
        work = asyncio.ensure_future(run.access.ask(HELLO))
        await when(run, asked, work)
        with pytest.raises(asyncio.CancelledError):
            await work
        at_rest(run)
        entries = await run.end()
    (done,) = ended(entries)
    assert (done["outcome"], done["error"]) == (outcome, Reason.INTERRUPTED.id)
    assert done["estimated"] is (outcome == "settled")
    assert len(it.seen) == (0 if outcome == "released" else 1)


async def test_cancelled_while_it_waits_to_try_again(tmp_path: Path) -> None:
    waiting = asyncio.Event()

    async def long_wait(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    async with provider(error(500)) as it:
        run = await calling(tmp_path, model(it.url))
        run.gateway.means.sleep = long_wait
        work = asyncio.ensure_future(run.access.ask(HELLO))
        await waiting.wait()
        at_rest(run)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        entries = await run.end()
    assert [body["outcome"] for body in ended(entries)] == ["released"]


async def test_a_fault_of_our_own_is_paid_for_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with provider(chat()) as it:
        run = await calling(tmp_path, model(it.url))
        monkeypatch.setattr("proctor.gateway.access.classify", lambda seen: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            await run.access.ask(HELLO)
        at_rest(run)
        entries = await run.end()
    (done,) = ended(entries)
    assert (done["outcome"], done["error"], done["estimated"]) == ("settled", Reason.INTERNAL_ERROR.id, True)


async def test_closing_waits_for_what_is_in_flight(tmp_path: Path) -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        asked.set()
        await go.wait()
        return web.Response(body=chat().body)

    async with provider(slow) as it:
        run = await calling(tmp_path, model(it.url))
        work = asyncio.ensure_future(run.access.ask(HELLO))
        await asked.wait()
        closing = asyncio.ensure_future(run.access.close())
        await asyncio.sleep(0)
        assert not closing.done()
        go.set()
        await closing
        assert (await work).message.text == "hi"
        assert (await refused(run.access.ask(HELLO))).reason is Reason.LEASE_STALE
        entries = await run.end()
    assert [body["outcome"] for body in ended(entries)] == ["settled"]


async def test_closing_waits_for_what_is_being_held(tmp_path: Path) -> None:
    async with provider(chat()) as it:
        run = await calling(tmp_path, model(it.url))
        first, second = (asyncio.ensure_future(run.access.ask(HELLO)) for _ in range(2))
        await asyncio.sleep(0)
        await run.access.close()
        assert [(await each).message.text for each in (first, second)] == ["hi", "hi"]
        assert (await refused(run.access.ask(HELLO))).reason is Reason.LEASE_STALE
        entries = await run.end()
    assert [body["outcome"] for body in ended(entries)] == ["settled", "settled"]


async def test_closing_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.gateway.flights.CLOSE_SEC", 0.05)
    asked = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with provider(silent) as it:
        run = await calling(tmp_path, model(it.url))
        work = asyncio.ensure_future(run.access.ask(HELLO))
        await asked.wait()
        await run.access.close()
        with pytest.raises(asyncio.CancelledError):
            await work
        entries = await run.end()
    (done,) = ended(entries)
    assert (done["outcome"], done["estimated"]) == ("settled", True)


async def test_a_retry_after_the_attempt_has_ended_is_not_sent(tmp_path: Path) -> None:
    waiting, go = asyncio.Event(), asyncio.Event()

    async def long_wait(seconds: float) -> None:
        waiting.set()
        await go.wait()

    async with provider(error(500)) as it:
        run = await calling(tmp_path, model(it.url))
        run.gateway.means.sleep = long_wait
        work = asyncio.ensure_future(run.access.ask(HELLO))
        await waiting.wait()
        await run.access.close()
        go.set()
        assert (await refused(work)).reason is Reason.LEASE_STALE
        entries = await run.end()
    assert len(it.seen) == 1 == len(ended(entries))


async def test_a_rate_is_kept_over_attempts(tmp_path: Path) -> None:
    async with provider(chat()) as it:
        run = await calling(tmp_path, model(it.url, rpm=60, tpm=60))
        await run.access.ask(HELLO)
        await run.access.ask(HELLO)
        await run.end()
    # a token a second: five of them were used, one of which was there
    assert run.clock.now == 4 * 10**9


PLANTED: dict[str, Callable[[web.Request, bytes], web.Response]] = {
    "in an answer": lambda request, body: web.Response(body=chat(request.headers["authorization"]).body),
    "as the model": lambda request, body: web.Response(body=chat(model=KEY).body),
    "in headers": lambda request, body: web.Response(body=chat().body, headers={"x-key": KEY, "set-cookie": KEY}),
    "in an error": lambda request, body: web.Response(status=400, body=error(400, KEY, KEY, f"bad key {KEY}").body),
    "in an error of status 200": lambda request, body: web.Response(body=error(200, KEY, KEY, f"bad key {KEY}").body),
    "in text": lambda request, body: web.Response(status=503, text=f"<p>{KEY}</p>", headers={"retry-after": KEY}),
    "spelled out": lambda request, body: web.Response(
        body=chat("@").body.replace(b"@", "".join(f"\\u{ord(c):04x}" for c in KEY).encode())
    ),
    "compressed": lambda request, body: web.Response(
        body=gzip.compress(chat(KEY).body), headers={"content-encoding": "gzip"}
    ),
    "as a reason": lambda request, body: web.Response(status=500, reason=KEY),
}


@pytest.mark.parametrize("name", PLANTED)
async def test_a_planted_key_is_found_nowhere(name: str, tmp_path: Path) -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        return PLANTED[name](request, await request.read())

    said: list[str] = []
    async with provider(echo) as it:
        run = await calling(tmp_path, model(f"{it.url}/{KEY.partition('/')[0]}"))
        for _ in range(2):
            try:
                answer = await run.access.ask([*HELLO, Message(Role.USER, f"my key is {KEY}")])
                said.append(str(answer.flags))
            except Refusal as refusal:
                said.append(json.dumps([refusal.as_record(), str(refusal)]))
        entries = await run.end()
    assert it.seen and KEY.encode() in it.seen[0][1], "what is sent is not changed"
    text = " ".join([*said, *(repr(entry.body) for entry in entries)])
    assert KEY not in text
    for body in [*bodies(entries, Kind.EXCHANGE_ADMITTED), *ended(entries)]:
        for field in ("request", "response"):
            if body.get(field) is not None:
                recorded = content(run, body[field])
                assert KEY.encode() not in recorded
                assert recorded.strip()[:1] != b"{" or KEY not in str(json.loads(recorded))
    for file in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert KEY.encode() not in file.read_bytes(), file


@pytest.mark.parametrize(
    ("keys", "changes", "reason"),
    [
        ({}, {}, Reason.KEY_MISSING),
        ({"TEST_MODEL_KEY": ""}, {}, Reason.KEY_MISSING),
        ({"TEST_MODEL_KEY": "two\nlines"}, {}, Reason.KEY_REJECTED),
        ({"TEST_MODEL_KEY": "k"}, {"base_url": "http://[half"}, Reason.INVALID_VALUE),
    ],
)
async def test_what_cannot_be_called_is_said_at_once(
    keys: Mapping[str, str], changes: Mapping[str, Any], reason: Reason, tmp_path: Path
) -> None:
    run = await calling(tmp_path, model("http://127.0.0.1"))
    gateway = type(run.gateway)(run.gateway._admitted, keys, run.clock)
    lease = run.spending.authority.lease(run.attempt, 0, "m")
    with pytest.raises(Refusal) as caught:
        gateway.access(dataclasses.replace(model("http://127.0.0.1"), **changes), lease, run.record, run.attempt)
    assert caught.value.reason is reason
    await run.end()


async def test_the_practice_model_needs_no_key_and_no_wire(tmp_path: Path) -> None:
    design = model(None, provider="practice", api="practice", model="practice-1", api_key_env=None)
    run = await calling(tmp_path, design, keys={})
    answer = await run.access.ask([Message(Role.USER, "What is 17 * 23?")])
    entries = await run.end()
    (done,) = ended(entries)
    assert (done["charged"], done["timing"], done["http_status"]) == (str(answer.cost), {}, 200)
    assert bodies(entries, Kind.EXCHANGE_ADMITTED)[0]["route"] == "POST /chat/completions"


ANTHROPIC = {
    "type": "message",
    "model": "claude-x",
    "role": "assistant",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 2},
}
GEMINI = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5},
    "modelVersion": "gemini-x",
}


@pytest.mark.parametrize(
    ("api", "provider_name", "asked", "body", "header", "route"),
    [
        ("anthropic", "anthropic", "claude-x", ANTHROPIC, "x-api-key", "/v1/messages"),
        ("gemini", "google", "gemini-x", GEMINI, "x-goog-api-key", "/v1beta/models/gemini-x:generateContent"),
    ],
)
async def test_the_other_formats(
    api: str, provider_name: str, asked: str, body: dict[str, Any], header: str, route: str, tmp_path: Path
) -> None:
    async with provider(Said(200, json.dumps(body).encode())) as it:
        run = await calling(tmp_path, model(it.url, api=api, provider=provider_name, model=asked))
        answer = await run.access.ask(HELLO, [TOOL])
        entries = await run.end()
    assert it.seen[0][0].headers[header] == KEY
    assert (answer.message.text, answer.cost, answer.flags) == ("hi", Usd.parse("5"), ())
    assert bodies(entries, Kind.EXCHANGE_ADMITTED)[0]["route"] == f"POST {route}" == f"POST {it.seen[0][0].path}"
    assert ended(entries)[0]["resolved_model"] == asked


async def test_many_at_once_have_numbers_without_gaps(tmp_path: Path) -> None:
    async with provider(chat()) as it:
        run = await calling(tmp_path, model(it.url))
        answers = await asyncio.gather(*[run.access.ask(HELLO) for _ in range(32)])
        entries = await run.end()
    assert {answer.exchange for answer in answers} == {body["exchange"] for body in ended(entries)}
    assert len(it.seen) == 32
