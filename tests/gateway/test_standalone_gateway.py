"""A gateway on its own: several models of one upstream, one budget, one record; every request answered or refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from doorway import asking, listening
from loopback import KEY, Handler, Provider, Said, chat, model, provider
from proctor.budget.authority import Authority
from proctor.budget.ceiling import Limits
from proctor.core.clock import SystemClock
from proctor.core.money import ZERO, Usd
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.tokens import seal_admitted
from proctor.evidence.calls import CallRecord, bodies_folder
from proctor.evidence.callstate import read_calls
from proctor.gateway.gateway import Gateway
from proctor.gateway.standalone import Standalone
from proctor.study.actors import ModelDesign

PATH = "/v1/chat/completions"


@dataclass
class Shop:
    """A catalog of models of the chat format, each at a dollar a token, 100 of which it may answer."""

    url: str
    models: tuple[str, ...] = ("gpt-x", "gpt-y")
    api: str = "chat"
    asked: list[str] = field(default_factory=list)

    def names(self) -> list[str]:
        return list(self.models)

    def resolve(self, name: str) -> ModelDesign:
        self.asked.append(name)
        if name not in self.models:
            raise Refusal(Reason.PRICE_UNKNOWN, "no price", observed=name)
        return replace(model(self.url), name=name, model=name)


@dataclass
class Standing:
    """An open gateway, and a client's end of it."""

    path: Path
    it: Standalone
    record: CallRecord
    authority: Authority
    gateway: Gateway
    shop: Shop
    upstream: Provider
    session: aiohttp.ClientSession

    async def post(self, body: bytes, path: str = PATH, token: str | None = None) -> tuple[int, bytes]:
        headers = {"authorization": f"Bearer {token or self.it.token}", "content-type": "application/json"}
        async with self.session.post(self.it.base_url + path, data=body, headers=headers) as reply:
            return reply.status, await reply.read()

    async def end(self) -> list[dict[str, Any]]:
        """Close it; all entries of its record."""
        await self.it.close()
        await self.gateway.close()
        await self.record.close({})
        return [json.loads(line) for line in self.path.read_bytes().splitlines()]


@asynccontextmanager
async def standing(tmp_path: Path, budget: str, *script: Said | Handler) -> AsyncIterator[Standing]:
    path = tmp_path / "calls.jsonl"
    async with provider(*script) as upstream, aiohttp.ClientSession() as session:
        record = await CallRecord.open(path, {}, SystemClock())
        token = seal_admitted(
            run_id=record.run_id, run_dir=bodies_folder(path), design_sha256="0" * 64, label="proctor-test"
        )
        authority = Authority(token, Limits(ZERO, Usd.parse(budget), ZERO), record, record.state)
        gateway = Gateway(token, {"TEST_MODEL_KEY": KEY}, SystemClock())
        shop = Shop(upstream.url)
        it = Standalone(gateway, authority, record, shop, listening())
        await it.listen()
        yield Standing(path, it, record, authority, gateway, shop, upstream, session)


def code(reply: tuple[int, bytes]) -> str:
    return str(json.loads(reply[1])["error"]["code"])


async def test_models_are_looked_up_once_and_each_call_is_on_the_record(tmp_path: Path) -> None:
    async with standing(tmp_path, "1000", chat()) as way:
        for name in ("gpt-x", "gpt-y", "gpt-x"):
            status, _ = await way.post(asking(name, max_tokens=2))
            assert status == 200
        entries = await way.end()
    assert way.shop.asked == ["gpt-x", "gpt-y"]
    assert way.upstream.seen[0][0].headers["authorization"] == f"Bearer {KEY}"
    exchanges = [entry["body"]["exchange"] for entry in entries if entry["kind"] == "exchange.ended"]
    assert exchanges == ["1:gpt-x/0", "1:gpt-y/0", "1:gpt-x/1"]
    first = next(entry["body"] for entry in entries if entry["kind"] == "exchange.admitted")
    assert json.loads(first["request"]["text"]) == json.loads(asking("gpt-x", max_tokens=2))
    priced = [entry["body"] for entry in entries if entry["kind"] == "gateway.model"]
    assert [each["model"] for each in priced] == ["gpt-x", "gpt-y"] and priced[0]["design"]["price"]["rows"]
    state = read_calls(way.path)
    assert state.total == Usd.parse("15") and state.models["gpt-x"].charged == 10 * 10**12
    assert KEY.encode() not in way.path.read_bytes() and way.it.token.encode() not in way.path.read_bytes()


async def test_what_is_no_request_for_a_model_here_is_refused_in_the_providers_words(tmp_path: Path) -> None:
    async with standing(tmp_path, "1000", chat()) as way:
        assert code(await way.post(asking(), token="another")) == "token_unknown"
        assert code(await way.post(asking(), "/v1/audio/speech")) == "route_unknown"
        assert code(await way.post(b"{", PATH)) == "request_unreadable"
        assert code(await way.post(asking("gpt-z"))) == "price_unknown"
        assert code(await way.post(asking("gpt-x", max_tokens=101))) == "output_above_bound"
        entries = await way.end()
    assert not way.upstream.seen and not way.it.faulted.is_set()
    refused = [entry["body"] for entry in entries if entry["kind"] == "exchange.refused"]
    assert [each["reason"] for each in refused] == [
        *("route_unknown", "request_unreadable", "price_unknown", "output_above_bound")
    ], "a token that is none puts nothing on the record"
    assert refused[-1]["model"] == "gpt-x" and refused[0]["model"] is None


async def test_the_budget_binds_all_models_together(tmp_path: Path) -> None:
    body = asking("gpt-x", max_tokens=2)
    most = len(body) + 2
    async with standing(tmp_path, str(most + 5), chat(usage=(3, 2))) as way:
        assert (await way.post(body))[0] == 200
        assert code(await way.post(asking("gpt-y", max_tokens=3))) == "ceiling_reached"
        assert (await way.post(body))[0] == 200
        entries = await way.end()
    assert read_calls(way.path).total == Usd.parse("10")
    assert "ceiling.reached" in [entry["kind"] for entry in entries]


async def test_many_at_once_never_pass_the_budget(tmp_path: Path) -> None:
    body = asking("gpt-x", max_tokens=2)
    most = len(body) + 2
    async with standing(tmp_path, str(3 * most), chat(usage=(most - 2, 2))) as way:
        replies = await asyncio.gather(*(way.post(body) for _ in range(20)))
        assert sorted({status for status, _ in replies}) == [200, 401]
        entries = await way.end()
    assert len(way.upstream.seen) == 3
    held = charged = 0
    for entry in entries:
        if entry["kind"] == "exchange.admitted":
            held += Usd.parse(entry["body"]["held"]).pico
        elif entry["kind"] == "exchange.ended":
            held -= most * 10**12
            charged += Usd.parse(entry["body"]["charged"]).pico
        assert held + charged <= 3 * most * 10**12
    assert held == 0 and charged == 3 * most * 10**12


async def test_after_an_overrun_nothing_is_passed_on(tmp_path: Path) -> None:
    async with standing(tmp_path, "100000", chat(usage=(9_000, 2))) as way:
        assert (await way.post(asking("gpt-x", max_tokens=2)))[0] == 200
        assert code(await way.post(asking("gpt-x", max_tokens=2))) == "overrun"
        await way.end()
    assert len(way.upstream.seen) == 1 and read_calls(way.path).overruns == 1


async def test_models_are_listed_all_or_one(tmp_path: Path) -> None:
    async with standing(tmp_path, "10", chat()) as way:
        headers = {"authorization": f"Bearer {way.it.token}"}
        async with way.session.get(f"{way.it.base_url}/v1/models", headers=headers) as reply:
            listed = await reply.json()
        async with way.session.get(f"{way.it.base_url}/v1/models/gpt-y", headers=headers) as reply:
            one = await reply.json()
        async with way.session.get(f"{way.it.base_url}/v1/models/gpt-z", headers=headers) as reply:
            none = await reply.json()
        upgrade = {**headers, "upgrade": "websocket", "connection": "upgrade"}
        async with way.session.get(f"{way.it.base_url}/v1/responses", headers=upgrade) as reply:
            assert reply.status == 426
        await way.end()
    assert [each["id"] for each in listed["data"]] == ["gpt-x", "gpt-y"] and one["id"] == "gpt-y"
    assert none["error"]["code"] == "price_unknown"


async def test_draining_waits_for_what_is_in_flight_and_takes_nothing_new(tmp_path: Path) -> None:
    came, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        came.set()
        await go_on.wait()
        said = chat()
        return web.Response(body=said.body, headers=dict(said.headers))

    async with standing(tmp_path, "1000", slow) as way:
        under_way = asyncio.create_task(way.post(asking(max_tokens=2)))
        await came.wait()
        # another connection, which is kept, and on which the client asks again
        assert code(await way.post(b"{")) == "request_unreadable"
        draining = asyncio.create_task(way.it.drain())
        await asyncio.sleep(0)
        assert code(await way.post(asking(max_tokens=2))) == "lease_stale"
        assert not draining.done()
        go_on.set()
        assert (await under_way)[0] == 200
        await draining
        await way.end()
    assert read_calls(way.path).total == Usd.parse("5")


async def test_closing_charges_what_is_in_flight_at_its_worst_case(tmp_path: Path) -> None:
    came = asyncio.Event()

    async def never(request: web.Request) -> web.StreamResponse:
        came.set()
        await asyncio.Event().wait()
        raise AssertionError("it waits for ever")

    body = asking(max_tokens=2)
    async with standing(tmp_path, "1000", never) as way:
        under_way = asyncio.create_task(way.post(body))
        await came.wait()
        entries = await way.end()
        (gone,) = await asyncio.gather(under_way, return_exceptions=True)
    assert isinstance(gone, aiohttp.ClientError)
    state = read_calls(way.path)
    assert state.total == Usd(10**12 * (len(body) + 2)) and not state.open
    last = [entry["body"] for entry in entries if entry["kind"] == "exchange.ended"]
    assert last[0]["error"] == "interrupted" and last[0]["estimated"]


async def test_a_record_that_takes_no_more_ends_it(tmp_path: Path) -> None:
    async with standing(tmp_path, "1000", chat()) as way:
        way.record.fault = Refusal(Reason.DISK_FULL, "full")
        status, _ = await way.post(asking(max_tokens=2))
        assert status != 200 and way.it.faulted.is_set() and way.it.fault is not None
        assert way.it.fault.reason is Reason.DISK_FULL and not way.upstream.seen
        way.record.fault = None
        await way.end()
