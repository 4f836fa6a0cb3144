"""A door to a model on loopback, a client's end of it, and what the journal says of what went through."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from loopback import KEY, FakeClock, Handler, admitted
from proctor.core.money import Usd
from proctor.evidence.entries import Entry
from proctor.evidence.kinds import Kind
from proctor.evidence.packs import Blob
from proctor.evidence.reader import read_blob
from proctor.gateway.doors import Opened
from proctor.gateway.gateway import Gateway
from proctor.gateway.rates import Sleep
from proctor.rollout.record import Record
from proctor.study.actors import ModelDesign
from spending_parts import Spending, limits

CHAT = "/v1/chat/completions"
EVENTS = [
    b'data: {"model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":"h"}}]}\n\n',
    b'data: {"model":"gpt-x","choices":[{"index":0,"delta":{"content":"i"}}]}\n\n',
    b'data: {"model":"gpt-x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    b'data: {"model":"gpt-x","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n',
    b"data: [DONE]\n\n",
]


def stream(*pieces: bytes) -> Handler:
    """What answers with these pieces of a stream."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        await response.write_eof()
        return response

    return answer


def asking(model: str = "gpt-x", **more: Any) -> bytes:
    """A request in the chat format."""
    return json.dumps({"model": model, "messages": [{"role": "user", "content": "hello"}], **more}).encode()


def listening() -> socket.socket:
    """A socket that listens on loopback, as a sandbox gives one out."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen(1024)
    sock.setblocking(False)
    return sock


@dataclass
class Doorway:
    """A run with one attempt, and its open door."""

    spending: Spending
    gateway: Gateway
    opened: Opened
    attempt: str
    record: Record
    session: aiohttp.ClientSession
    clock: FakeClock
    _entries: list[Entry] | None = None

    async def post(
        self, body: bytes | AsyncIterator[bytes], path: str = CHAT, **more: Any
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send, and read all: status, headers, body."""
        headers = {"authorization": f"Bearer {self.opened.door.token}", "content-type": "application/json"}
        headers |= more.pop("headers", {})
        async with self.session.post(self.opened.door.base_url + path, data=body, headers=headers, **more) as reply:
            return reply.status, reply.headers, await reply.read()

    @property
    def token(self) -> str:
        """The door's."""
        return self.opened.door.token

    async def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
        """A request without a body: status and body of its reply."""
        sent = {"authorization": f"Bearer {self.token}", **headers}
        async with self.session.request(method, self.opened.door.base_url + path, headers=sent) as reply:
            return reply.status, await reply.read()

    async def post_raw(self, body: bytes, path: str = CHAT) -> bytes:
        """Send, and read all that comes until the connection ends, cleanly or not."""
        reader, writer = await self.connect()
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.token}\r\nConnection: close\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        try:
            return await self.rest(reader)
        finally:
            writer.close()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to the door."""
        host, _, port = self.opened.door.base_url.removeprefix("http://").partition(":")
        return await asyncio.open_connection(host, int(port))

    @staticmethod
    async def rest(reader: asyncio.StreamReader) -> bytes:
        """All that comes, until the connection ends."""
        came = bytearray()
        with suppress(ConnectionError):
            async with asyncio.timeout(600):
                while piece := await reader.read(1 << 16):
                    came += piece
        return bytes(came)

    async def entries(self) -> list[Entry]:
        """Close the door and end the attempt; all entries of the run."""
        if self._entries is None:
            await self.opened.close()
            self.spending.end_attempt(self.record, self.attempt)
            self.spending.authority.end_block(0)
            await self.record.settle()
            await self.gateway.close()
            self._entries = await self.spending.entries()
        return self._entries

    async def leave(self) -> None:
        """Let go of a run whose attempt has no end."""
        await self.gateway.close()
        self._entries = await self.spending.entries()

    async def bodies(self, kind: Kind) -> list[dict[str, Any]]:
        """Of the entries of a kind, once all is over."""
        return [entry.body for entry in await self.entries() if entry.kind is kind]

    def content(self, reference: dict[str, Any]) -> bytes:
        """Of a blob."""
        blob = Blob.parse(reference)
        assert blob is not None
        return read_blob(self.spending.run, blob)


@asynccontextmanager
async def doorway(
    path: Path,
    design: ModelDesign,
    cap: str = "1000000",
    keys: Mapping[str, str] | None = None,
    connections: int = 100,
    sleep: Sleep | None = None,
) -> AsyncIterator[Doorway]:
    """Open a run, admit its attempt, open its door; all of it is closed at the end."""
    spending = await Spending.open(path, limits(Usd.parse(cap)))
    assert await spending.authority.admit_block(0, "task", "m", 1) is None
    attempt, record = spending.attempt()
    clock = FakeClock()
    gateway = Gateway(
        admitted(path), {"TEST_MODEL_KEY": KEY} if keys is None else keys, clock, sleep=sleep or clock.sleep
    )
    lease = spending.authority.lease(attempt, 0, "m")
    opened = await gateway.open(design, lease, record, attempt, listening())
    connector = aiohttp.TCPConnector(limit=connections)
    async with aiohttp.ClientSession(auto_decompress=False, connector=connector) as session:
        way = Doorway(spending, gateway, opened, attempt, record, session, clock)
        try:
            yield way
        finally:
            await way.entries()
