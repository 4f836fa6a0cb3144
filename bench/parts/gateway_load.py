"""A client that asks as often as it can over so many kept connections, and says how that went.

    python bench/parts/gateway_load.py PORT TOKEN plain|stream|big CONNECTIONS SECONDS [REQUESTS]

PORT and TOKEN may be several, divided by commas: connections take them in turn. Prints JSON: `count`, `seconds`, `p50`
and `p99` in milliseconds, `failed`. It ends after SECONDS, or, where REQUESTS are given, once there were so many.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import partial

_MESSAGES = [{"role": "user", "content": "Tell me what the fox does. " * 30}]


def request(token: str, mode: str) -> bytes:
    """One request, as it stands on the wire."""
    asked = {"model": "gpt-x", "messages": _MESSAGES, "max_tokens": 200}
    if mode != "plain":
        asked |= {"stream": True, "stream_options": {"include_usage": True}}
    if mode == "big":
        asked["user"] = "big"
    body = json.dumps(asked).encode()
    return (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: */*\r\ncontent-type: application/json\r\n"
        b"authorization: Bearer %b\r\ncontent-length: %d\r\n\r\n%b" % (token.encode(), len(body), body)
    )


class Client(asyncio.Protocol):
    """One connection: the next request follows the last byte of a reply."""

    def __init__(self, load: Load, request: bytes) -> None:
        self._load = load
        self._request = request
        self._transport: asyncio.Transport | None = None
        self._head = b""
        self._left: int | None = None
        self._tail = b""
        self._began = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        assert self._transport is not None
        if self._load.over():
            self._transport.close()
            return
        self._head, self._left, self._tail = b"", None, b""
        self._began = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if self._tail == b"" and self._left is None:
            self._head += data
            head, end, data = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            low = head.lower()
            if not low.startswith(b"http/1.1 200"):
                self._load.failed += 1
            length = low.partition(b"content-length:")[2].partition(b"\r\n")[0]
            self._left = int(length) if length else None
            self._tail = b"\r\n"
        if self._left is not None:
            self._left -= len(data)
            done = self._left <= 0
        else:
            self._tail = (self._tail + data)[-7:]
            done = self._tail == b"\r\n0\r\n\r\n"
        if done:
            self._load.times.append(time.perf_counter() - self._began)
            self._ask()

    def connection_lost(self, error: Exception | None) -> None:
        self._load.lost()


class Load:
    """All of its connections."""

    def __init__(self, connections: int, seconds: float, requests: int | None) -> None:
        self.times: list[float] = []
        self.failed = 0
        self._open = connections
        self._until = time.perf_counter() + seconds
        self._requests = requests
        self._sent = 0
        self.ended = asyncio.Event()

    def over(self) -> bool:
        """Whether nothing more is asked; where it is, this is one."""
        self._sent += 1
        return time.perf_counter() > self._until if self._requests is None else self._sent > self._requests

    def lost(self) -> None:
        """A connection is gone."""
        self._open -= 1
        if self._open == 0:
            self.ended.set()


async def _main(words: list[str]) -> None:
    ports, tokens = list(map(int, words[0].split(","))), words[1].split(",")
    mode, connections, seconds = words[2], int(words[3]), float(words[4])
    load = Load(connections, seconds, int(words[5]) if len(words) > 5 else None)
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    for number in range(connections):
        asked = request(tokens[number % len(tokens)], mode)
        await loop.create_connection(partial(Client, load, asked), "127.0.0.1", ports[number % len(ports)])
    await load.ended.wait()
    took = time.perf_counter() - began
    times = sorted(load.times)
    said = {"count": len(times), "seconds": took, "failed": load.failed}
    said |= {"p50": 1000 * times[len(times) // 2], "p99": 1000 * times[len(times) * 99 // 100]} if times else {}
    print(json.dumps(said))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
