"""Requests of an agent inside, over real connections: what passes, what is charged, what is recorded."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import brotli
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doorway import EVENTS, asking, doorway, stream
from loopback import KEY, Said, chat, error, model, provider
from proctor.core.money import ZERO
from proctor.core.reasons import Reason
from proctor.evidence.kinds import Kind
from proctor.gateway.passage import KEY_ECHOED

ENCODERS = {
    "gzip": gzip.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
USAGE = {"input": 3, "output": 2}


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
    assert (done["outcome"], done["usage"], done["finish"]) == ("settled", USAGE, "stop")
    assert (way.content(done["response"]), done["chunks"], done["flags"]) == (said.body, None, [])
    assert way.spending.authority.held == ZERO


async def test_a_stream_passes_untouched(tmp_path: Path) -> None:
    async with provider(stream(*EVENTS)) as it, doorway(tmp_path, model(it.url)) as way:
        status, headers, answer = await way.post(asking(stream=True))
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
    assert (status, answer, headers["content-type"]) == (200, b"".join(EVENTS), "text/event-stream")
    assert (done["outcome"], done["usage"], done["flags"]) == ("settled", USAGE, [])
    assert way.content(done["response"]) == answer
    offsets = [offset for offset, _ in json.loads(way.content(done["chunks"]))]
    assert offsets[0] == 0 and offsets == sorted(set(offsets)) and offsets[-1] < len(answer)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(st.integers(0, len(b"".join(EVENTS))), max_size=30))
async def test_a_stream_passes_untouched_however_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    whole = b"".join(EVENTS)
    places = [0, *sorted(cuts), len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(places) if start < end]
    path = tmp_path_factory.mktemp("run")
    async with provider(stream(*pieces)) as it, doorway(path, model(it.url)) as way:
        _, _, answer = await way.post(asking(stream=True))
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
    assert answer == whole == way.content(done["response"])
    assert (done["usage"], done["flags"]) == (USAGE, [])


@pytest.mark.parametrize("encoding", ENCODERS)
async def test_an_encoded_reply_keeps_its_bytes_and_is_read_and_recorded_decoded(encoding: str, tmp_path: Path) -> None:
    packed = ENCODERS[encoding](chat("hi").body)
    said = Said(200, packed, {"content-type": "application/json", "content-encoding": encoding})
    async with provider(said) as it, doorway(tmp_path, model(it.url)) as way:
        _, headers, answer = await way.post(asking(), headers={"accept-encoding": f"{encoding}, compress, identity"})
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
    assert it.seen[0][0].headers["accept-encoding"] == f"{encoding}, identity"
    assert (answer, headers["content-encoding"]) == (packed, encoding)
    assert (way.content(done["response"]), done["usage"]) == (chat("hi").body, USAGE)


@pytest.mark.parametrize("encoding", ENCODERS)
async def test_an_encoded_request_goes_on_as_it_came(encoding: str, tmp_path: Path) -> None:
    packed = ENCODERS[encoding](asking())
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        status, _, _ = await way.post(packed, headers={"content-encoding": encoding})
        (held,) = await way.bodies(Kind.EXCHANGE_ADMITTED)
    request, came = it.seen[0]
    assert (status, came, request.headers["content-encoding"]) == (200, packed, encoding)
    assert way.content(held["request"]) == asking() and held["input_bound"] == len(asking())


async def test_chunked_bodies_and_expectations(tmp_path: Path) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield asking()[:9]
        yield asking()[9:]

    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        statuses = [(await way.post(pieces()))[0], (await way.post(asking(), expect100=True))[0]]
    assert statuses == [200, 200]
    assert [came for _, came in it.seen] == [asking(), asking()]


async def test_hop_by_hop_headers_and_cookies_stay_on_their_side(tmp_path: Path) -> None:
    said = Said(200, chat().body, {"set-cookie": "a=b", "x-named": "1", "connection": "x-named", "x-kept": "1"})
    sent = {"cookie": "c=d", "te": "trailers", "x-own": "1", "x-hop": "1", "connection": "keep-alive, x-hop"}
    async with provider(said) as it, doorway(tmp_path, model(it.url)) as way:
        _, headers, _ = await way.post(asking(), headers=sent)
    came = it.seen[0][0].headers
    assert came["x-own"] == "1" and not {"cookie", "te", "x-hop"} & {name.lower() for name in came}
    assert headers["x-kept"] == "1" and not {"set-cookie", "x-named"} & {name.lower() for name in headers}


async def test_queries_go_on_and_a_key_in_one_does_not(tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url + "/v1")) as way:
        path = f"/v1/chat/completions?beta=true&key={way.opened.door.token}&x=%20y"
        status, _, _ = await way.post(asking(), path, headers={"authorization": ""})
    assert (status, it.seen[0][0].raw_path) == (200, "/v1/chat/completions?beta=true&x=%20y")


@pytest.mark.parametrize(("status", "outcome"), [(429, "released"), (500, "released"), (529, "released")])
async def test_what_the_provider_refuses_goes_on_as_it_is(status: int, outcome: str, tmp_path: Path) -> None:
    said = error(status, "rate_limit_error", retry_after="7")
    async with provider(said) as it, doorway(tmp_path, model(it.url)) as way:
        answers = [await way.post(asking()), await way.post(asking())]
        held, done = await way.bodies(Kind.EXCHANGE_ADMITTED), await way.bodies(Kind.EXCHANGE_ENDED)
        assert way.opened.failed is not None
    assert [(each[0], each[1]["retry-after"], each[2]) for each in answers] == [(status, "7", said.body)] * 2
    assert [body["outcome"] for body in done] == [outcome, outcome]
    # the same bytes again, after no answer
    assert [body["retries"] for body in held] == [None, held[0]["exchange"]]


async def test_an_answered_request_that_comes_again_is_no_retry(tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        await way.post(asking())
        await way.post(asking())
        held = await way.bodies(Kind.EXCHANGE_ADMITTED)
    assert [body["retries"] for body in held] == [None, None]


async def test_a_count_of_tokens_is_free(tmp_path: Path) -> None:
    said = Said(200, b'{"input_tokens": 9}', {"content-type": "application/json"})
    design = {"api": "anthropic", "provider": "anthropic", "model": "claude-x"}
    asked = json.dumps({"model": "claude-x", "messages": [{"role": "user", "content": "hello"}]}).encode()
    async with provider(said) as it, doorway(tmp_path, model(it.url, **design), cap="0.000000000001") as way:
        status, _, answer = await way.post(
            asked, "/v1/messages/count_tokens?beta=true", headers={"authorization": "", "x-api-key": way.token}
        )
        (held,), (done,) = await way.bodies(Kind.EXCHANGE_ADMITTED), await way.bodies(Kind.EXCHANGE_ENDED)
    assert (status, answer, it.seen[0][0].headers["x-api-key"]) == (200, said.body, KEY)
    assert (held["held"], held["output_bound"], held["route"]) == (str(ZERO), 0, "POST /v1/messages/count_tokens")
    assert (done["outcome"], done["charged"], done["error"], done["finish"]) == ("released", str(ZERO), None, None)


async def test_a_count_that_a_provider_does_not_have_is_no_failure_of_its_model(tmp_path: Path) -> None:
    design = {"api": "anthropic", "provider": "anthropic", "model": "claude-x"}
    asked = json.dumps({"model": "claude-x", "messages": [{"role": "user", "content": "hello"}]}).encode()
    async with provider(error(404, "not_found_error")) as it, doorway(tmp_path, model(it.url, **design)) as way:
        status, _, _ = await way.post(asked, "/v1/messages/count_tokens")
        assert way.opened.failed is None
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
    assert (status, done["error"], done["outcome"]) == (404, Reason.MODEL_NOT_FOUND.id, "released")


async def test_the_models_are_the_trials(tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        listed = json.loads((await way.get("/v1/models?client_version=1"))[1])
    assert [each["id"] for each in listed["data"]] == ["gpt-x"] and it.seen == []


async def test_a_practice_model_streams(tmp_path: Path) -> None:
    design = model(None, provider="practice", api="practice", model="practice-a", api_key_env=None, synthetic=True)
    asked = asking("practice-a", stream=True, stream_options={"include_usage": True})
    async with doorway(tmp_path, design) as way:
        status, headers, answer = await way.post(asked)
        plain = await way.post(asking("practice-a"))
        done = await way.bodies(Kind.EXCHANGE_ENDED)
    events = [json.loads(line[6:]) for line in answer.splitlines() if line.startswith(b"data: {")]
    text = "".join(choice["delta"].get("content", "") for each in events for choice in each["choices"])
    assert (status, headers["content-type"], plain[0]) == (200, "text/event-stream", 200)
    assert text == json.loads(plain[2])["choices"][0]["message"]["content"]
    assert answer.endswith(b"data: [DONE]\n\n")
    assert done[0]["usage"]["output"] == done[1]["usage"]["output"] and done[0]["flags"] == done[1]["flags"] == []


ECHOED = {
    "whole": Said(200, chat(f"it is {KEY}.").body, {"content-type": "application/json"}),
    "in a header": Said(200, chat().body, {"x-key": KEY}),
    "in an error": error(401, message=f"bad key {KEY}"),
    "in a stream": stream(EVENTS[0], f'data: {{"x": "{KEY}"}}\n\n'.encode(), *EVENTS[1:]),
    "split in a stream": stream(EVENTS[0], b"data: " + KEY[:9].encode(), KEY[9:].encode() + b"\n\n", *EVENTS[1:]),
    "encoded": Said(200, gzip.compress(chat(KEY).body), {"content-encoding": "gzip"}),
    "as escapes": Said(200, chat("@").body.replace(b"@", "".join(f"\\u{ord(c):04x}" for c in KEY).encode())),
}


@pytest.mark.parametrize("name", ECHOED)
async def test_a_key_that_comes_back_reaches_neither_the_agent_nor_the_record(name: str, tmp_path: Path) -> None:
    async with provider(ECHOED[name]) as it, doorway(tmp_path, model(it.url)) as way:
        seen = await way.post_raw(asking(stream="stream" in name))
        (done,) = await way.bodies(Kind.EXCHANGE_ENDED)
        recorded = b"" if done["response"] is None else way.content(done["response"])
    assert KEY.encode() not in seen and KEY[9:].encode() not in seen and KEY.encode() not in recorded
    assert (KEY_ECHOED in done["flags"]) is (name != "in a header")
    journal = (tmp_path / "journal.jsonl").read_bytes()
    assert KEY.encode() not in journal
    if name == "encoded":
        assert gzip.compress(chat(KEY).body)[20:] not in seen
        assert done["error"] == Reason.REPLY_UNREADABLE.id
    else:
        assert b"[redacted:secret]" in seen or name == "as escapes"


async def test_what_the_design_admits_is_changed_and_said(tmp_path: Path) -> None:
    design = {"mutations": ("include_usage", "clamp_max_output")}
    async with provider(stream(*EVENTS)) as it, doorway(tmp_path, model(it.url, **design)) as way:
        await way.post(gzip.compress(asking(stream=True, max_tokens=10**6)), headers={"content-encoding": "gzip"})
        (held,) = await way.bodies(Kind.EXCHANGE_ADMITTED)
    request, came = it.seen[0]
    said = json.loads(came)
    assert said["stream_options"] == {"include_usage": True} and said["max_tokens"] == 100
    assert "content-encoding" not in request.headers
    assert sorted(held["mutations"]) == ["clamp_max_output", "include_usage"]
    assert way.content(held["request"]) == came and held["output_bound"] == 100


async def test_rates_hold_for_agents_inside_too(tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url, rpm=60, tpm=60)) as way:
        await way.post(asking())
        await way.post(asking())
    # a token a second: five of them were used, one of which was there
    assert way.clock.now == 4 * 10**9


async def test_the_door_says_when_something_last_went_through(tmp_path: Path) -> None:
    async with provider(chat()) as it, doorway(tmp_path, model(it.url)) as way:
        before = way.opened.door.last_ns()
        way.clock.now += 5
        await way.post(asking())
        assert way.opened.door.last_ns() == before + 5


async def test_what_is_sent_again_under_responses_keeps_its_own_format(tmp_path: Path) -> None:
    answer = {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-x",
        "status": "completed",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}],
        "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
    }
    asked = json.dumps({"model": "gpt-x", "input": "hello"}).encode()
    said = Said(200, json.dumps(answer).encode())
    async with provider(said) as it, doorway(tmp_path, model(it.url + "/v1")) as way:
        status, _, _ = await way.post(asked, "/v1/responses")
        (held,), (done,) = await way.bodies(Kind.EXCHANGE_ADMITTED), await way.bodies(Kind.EXCHANGE_ENDED)
    assert (status, held["route"]) == (200, "POST /v1/responses")
    assert (done["usage"], done["finish"], done["error"]) == (USAGE, "stop", None)
