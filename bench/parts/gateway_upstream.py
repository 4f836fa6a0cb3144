"""A provider on loopback that answers at once, in the chat format: whole, in 20 chunks, or 50 MB of them.

    python bench/parts/gateway_upstream.py

It prints its port, and ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import json
import sys

CHUNKS = 20
BIG = 50 * 2**20
_USAGE = {"prompt_tokens": 200, "completion_tokens": 100, "total_tokens": 300}
_TEXT = "The quick brown fox jumps over the lazy dog. " * 10


def _event(delta: dict[str, str], finish: str | None = None, usage: dict[str, int] | None = None) -> bytes:
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-x",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}] if usage is None else [],
        **({} if usage is None else {"usage": usage}),
    }
    # without spaces, as providers write them
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"


def _whole() -> bytes:
    message = {"role": "assistant", "content": _TEXT}
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-x",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": _USAGE,
    }
    body = json.dumps(answer).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    return head + body


def _chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_EVENTS = [_chunked(_event({"content": _TEXT[:22]})) for _ in range(CHUNKS - 2)]
_LAST = _chunked(_event({}, "stop")) + _chunked(_event({}, None, _USAGE) + b"data: [DONE]\n\n") + b"0\r\n\r\n"
_PLAIN = _whole()
_MEGABYTE = _chunked(_event({"content": "x" * 1000}) * 900)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            low = head.lower()
            length = int(low.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            body = await reader.readexactly(length)
            if b'"big"' in body:
                writer.write(_HEAD)
                for _ in range(BIG // len(_MEGABYTE) + 1):
                    writer.write(_MEGABYTE)
                    await writer.drain()
                writer.write(_LAST)
            elif b'"stream": true' in body or b'"stream":true' in body:
                writer.write(_HEAD)
                for event in _EVENTS:
                    writer.write(event)
                    # so that each is a chunk of its own on the wire
                    await asyncio.sleep(0)
                writer.write(_LAST)
            else:
                writer.write(_PLAIN)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _main() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0, backlog=1024, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main())
