"""A provider on loopback that answers as it is told, and runs whose one attempt may call it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from journal_parts import RUN_ID
from proctor.core.models import Message, Role
from proctor.core.money import Usd
from proctor.core.prices import PriceRow, Prices
from proctor.core.tokens import Admitted, seal_admitted
from proctor.evidence.entries import Entry
from proctor.gateway.gateway import Access, Gateway
from proctor.rollout.record import Record
from proctor.study.actors import ModelDesign
from spending_parts import Spending, limits

KEY = "planted-key-0123456789/+abcdef"
MODEL = "gpt-x"
HELLO = [Message(Role.USER, "hello")]
# a million dollars for a million tokens: one token is one dollar, so that money in tests can be counted by hand
DOLLAR = "1000000.000000000000"
DEAR = Prices("test", tuple(PriceRow(bucket, 0, DOLLAR) for bucket in ("input", "output", "reasoning")))

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Said:
    """A whole answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def chat(text: str = "hi", usage: Any = (3, 2), **more: Any) -> Said:
    """An answer in the chat format."""
    body: dict[str, Any] = {
        "id": "chatcmpl-1",
        "model": MODEL,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]} if isinstance(usage, tuple) else usage,
        **more,
    }
    return Said(200, json.dumps(body).encode(), {"content-type": "application/json"})


def error(status: int, kind: str | None = None, code: Any = None, message: str = "no", **headers: str) -> Said:
    """An error in the shape of most."""
    body = {"error": {"type": kind, "code": code, "message": message}}
    return Said(status, json.dumps(body).encode(), {name.replace("_", "-"): value for name, value in headers.items()})


@dataclass
class Provider:
    """Answers in the order of `script`, the last one again and again."""

    script: list[Said | Handler] = field(default_factory=list)
    seen: list[tuple[web.Request, bytes]] = field(default_factory=list)
    url: str = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request, await request.read()))
        step = self.script[min(len(self.seen), len(self.script)) - 1]
        if isinstance(step, Said):
            return web.Response(status=step.status, body=step.body, headers=dict(step.headers))
        return await step(request)


@asynccontextmanager
async def provider(*script: Said | Handler) -> AsyncIterator[Provider]:
    """One on a port of its own."""
    it = Provider(list(script))
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", it.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1, auto_decompress=False)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        it.url = f"http://{host}:{port}"
        yield it
    finally:
        await runner.cleanup()


def model(base_url: str | None, **changes: Any) -> ModelDesign:
    """A model of the chat format at a dollar a token, which may answer 100 of them."""
    fields: dict[str, Any] = {
        "name": "m",
        "provider": "openai",
        "model": MODEL,
        "api": "chat",
        "base_url": base_url,
        "effort": None,
        "max_output_tokens": 100,
        "request_timeout_sec": 30,
        "api_key_env": "TEST_MODEL_KEY",
        "rpm": None,
        "tpm": None,
        "price": DEAR,
    }
    return ModelDesign(**{**fields, **changes})


class FakeClock:
    """Time that passes in `sleep` only."""

    def __init__(self) -> None:
        self.now = 0
        self.slept: list[float] = []

    def utc(self) -> str:
        return "2026-01-01T00:00:00.000000Z"

    def mono_ns(self) -> int:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += round(seconds * 1e9)
        await asyncio.sleep(0)


def admitted(path: Path) -> Admitted:
    return seal_admitted(run_id=RUN_ID, run_dir=path, design_sha256="1" * 64, label="proctor-test")


@dataclass
class Calling:
    """A run with one attempt, and its access to one model."""

    spending: Spending
    gateway: Gateway
    access: Access
    attempt: str
    record: Record
    clock: FakeClock

    async def end(self) -> list[Entry]:
        """End the attempt; all entries of the run."""
        await self.access.close()
        self.spending.end_attempt(self.record, self.attempt)
        self.spending.authority.end_block(0)
        await self.record.settle()
        await self.gateway.close()
        return await self.spending.entries()


async def calling(
    path: Path, design: ModelDesign, cap: str = "1000000", keys: Mapping[str, str] | None = None
) -> Calling:
    """Open a run and admit its attempt; waits between tries take no time."""
    spending = await Spending.open(path, limits(Usd.parse(cap)))
    assert await spending.authority.admit_block(0, "task", "m", 1) is None
    attempt, record = spending.attempt()
    clock = FakeClock()
    held = {"TEST_MODEL_KEY": KEY} if keys is None else keys
    gateway = Gateway(admitted(path), held, clock, sleep=clock.sleep, chance=lambda: 1.0)
    access = gateway.access(design, spending.authority.lease(attempt, 0, "m"), record, attempt)
    return Calling(spending, gateway, access, attempt, record, clock)


def ended(entries: list[Entry]) -> list[dict[str, Any]]:
    """The bodies of `exchange.ended`, each of which ends one of `exchange.admitted`, in any order."""
    held = [entry.body for entry in entries if getattr(entry.kind, "id", "") == "exchange.admitted"]
    done = [entry.body for entry in entries if getattr(entry.kind, "id", "") == "exchange.ended"]
    assert sorted(body["exchange"] for body in held) == sorted(body["exchange"] for body in done)
    assert [body["exchange"].rpartition("/")[2] for body in held] == [str(number) for number in range(len(held))]
    return done


async def soon(happened: Callable[[], object]) -> None:
    """Let the loop run until something has happened; fails where it does not for long."""
    until = time.monotonic() + 600
    while not happened():
        assert time.monotonic() < until, "it did not happen"
        await asyncio.sleep(0.001)
