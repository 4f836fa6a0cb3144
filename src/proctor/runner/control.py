"""The control socket: how another process asks the one writer for its status, or to pause.

One line of JSON in, one line out. The socket lies in the user's runtime directory, since the path of a socket is
limited to 108 bytes; the run's `lock` names it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import stat
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.core.strictjson import loads

# a machine may be busy with others for as long
ANSWER_DEADLINE_SEC = 15.0
_LINE = 65_536

Handler = Callable[[], Awaitable[Mapping[str, Any]]]


def socket_path(run_id: str) -> Path:
    """Where the socket of a run lies: `$XDG_RUNTIME_DIR/proctor`, else a private folder below the temporary one.

    Raises:
        Refusal: OUT_UNUSABLE where that folder belongs to somebody else.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    base = Path(runtime) / "proctor" if runtime and Path(runtime).is_dir() else _private()
    try:
        base.mkdir(mode=0o700, exist_ok=True)
        seen = base.lstat()
    except OSError as fault:
        raise Refusal(Reason.OUT_UNUSABLE, f"no place for the control socket: {fault}", path=str(base)) from fault
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
        raise Refusal(Reason.OUT_UNUSABLE, "the folder for control sockets belongs to somebody else", path=str(base))
    return base / f"{run_id}.sock"


def _private() -> Path:
    return Path(tempfile.gettempdir()) / f"proctor-{os.geteuid()}"


@contextlib.asynccontextmanager
async def serve(path: Path, handlers: Mapping[str, Handler]) -> Any:
    """Answer on the socket while the block runs."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(ANSWER_DEADLINE_SEC):
                line = await reader.readline()
                writer.write(encode(await _reply(line, handlers)) + b"\n")
                await writer.drain()
        except (OSError, TimeoutError, ValueError):
            pass  # who asked went away, or sent more than a line; the run goes on
        finally:
            writer.close()

    _sweep(path.parent)
    server = await asyncio.start_unix_server(answer, path=str(path), limit=_LINE)
    path.chmod(0o600)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


def _sweep(folder: Path) -> None:
    """Remove sockets that nobody listens on any more: a killed run leaves its own."""
    for path in folder.glob("*.sock"):
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.setblocking(False)
            if client.connect_ex(str(path)) == errno.ECONNREFUSED:
                path.unlink()


async def _reply(line: bytes, handlers: Mapping[str, Handler]) -> dict[str, Any]:
    try:
        asked = loads(line.rstrip(b"\n"), max_bytes=_LINE)
    except Refusal as refusal:
        return {"refusal": refusal.as_record()}
    name = asked.get("do") if isinstance(asked, dict) else None
    handler = handlers.get(name) if isinstance(name, str) else None
    if handler is None:
        return {"refusal": Refusal(Reason.INVALID_VALUE, "unknown request", required=sorted(handlers)).as_record()}
    try:
        return dict(await handler())
    except Refusal as refusal:
        return {"refusal": refusal.as_record()}


def ask(path: Path, what: str) -> dict[str, Any]:
    """Send one request to a live run and return its answer.

    Raises:
        Refusal: RUN_NOT_LIVE where nobody answers in time.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(ANSWER_DEADLINE_SEC)
            client.connect(str(path))
            client.sendall(encode({"do": what}) + b"\n")
            with client.makefile("rb") as answer:
                line = answer.readline(_LINE)
    except OSError as fault:
        # somebody holds the run, or nobody would be asked: the reason's own remedy is for one that nobody holds
        remedy = "Its process begins or ends just now: see `proctor status`, and try again."
        raise Refusal(
            Reason.RUN_NOT_LIVE, f"the run does not answer: {fault}", path=str(path), remedy=remedy
        ) from fault
    said = loads(line.rstrip(b"\n"), max_bytes=_LINE)
    if not isinstance(said, dict):
        raise Refusal(Reason.RUN_NOT_LIVE, "the run's answer is not one", path=str(path))
    return said
