"""A bare pass-through of aiohttp's: what comes is sent on, what comes back is passed on, nothing is looked at.

    python bench/parts/gateway_bare.py UPSTREAM_PORT

It prints its port, and ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import sys

import aiohttp
from aiohttp import web

_HOP = frozenset({"host", "content-length", "connection", "transfer-encoding"})


async def _main(upstream: int) -> None:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            body = await request.read()
            headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
            url = f"http://127.0.0.1:{upstream}{request.path_qs}"
            async with session.post(url, data=body, headers=headers) as came:
                kept = {name: value for name, value in came.headers.items() if name.lower() not in _HOP}
                response = web.StreamResponse(status=came.status, headers=kept)
                if came.content_length is not None:
                    response.content_length = came.content_length
                await response.prepare(request)
                async for chunk in came.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
                return response

        server = await asyncio.get_running_loop().create_server(
            web.Server(handle, access_log=None), "127.0.0.1", 0, backlog=1024
        )
        print(server.sockets[0].getsockname()[1], flush=True)
        async with server:
            await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
