"""What the money kill loop kills: the whole program, off a server that has it imported, telling what is durable."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import os
import pkgutil
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

import proctor
from proctor.core.canonical import encode
from proctor.evidence.journal import Journal
from proctor.evidence.kinds import Kind
from proctor.evidence.packs import Content

# what the server has imported, once for all children
AHEAD = ["killed_child", "aiohttp.web", "genai_prices", "yaml", "tomlkit"]
for _module in pkgutil.walk_packages(proctor.__path__, "proctor."):
    if not _module.name.endswith("__main__"):
        importlib.import_module(_module.name)


def told(kind: str, body: Mapping[str, Any], but: frozenset[str]) -> str:
    """What an entry says, as a digest; `but` are fields that are not known before it is written."""
    return hashlib.sha256(encode([kind, {name: value for name, value in body.items() if name not in but}])).hexdigest()


def program(words: list[str], environ: Mapping[str, str], folder: str, saying: Connection) -> None:
    """Run the program; `saying` hears of each entry once whoever posted it was told that it is durable."""
    os.environ.update(environ)
    os.chdir(folder)
    post = Journal.post

    def telling(
        self: Journal, kind: Kind, body: Mapping[str, Any], *, blobs: Mapping[str, Content] | None = None
    ) -> asyncio.Future[int]:
        digest, fields = told(kind.id, body, frozenset()), sorted(blobs or ())
        future = post(self, kind, body, blobs=blobs)

        def say(done: asyncio.Future[int]) -> None:
            if not done.cancelled() and done.exception() is None:
                try:
                    saying.send_bytes(json.dumps([done.result(), digest, fields]).encode())
                except BrokenPipeError:
                    os._exit(1)  # who counts is gone

        future.add_done_callback(say)
        return future

    Journal.post = telling  # type: ignore[method-assign]
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    sys.argv = ["proctor", *words]
    from proctor.cli.main import main

    main()
