"""The control socket: asked by another process, answered by the writer."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.runner.control import ask, serve, socket_path


async def status() -> Mapping[str, Any]:
    return {"done": 3}


async def test_a_request_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "c.sock"
    async with serve(path, {"status": status}):
        assert await asyncio.to_thread(ask, path, "status") == {"done": 3}
        assert path.stat().st_mode & 0o077 == 0
    assert not path.exists()


async def test_an_unknown_request_is_refused_and_the_next_one_answered(tmp_path: Path) -> None:
    path = tmp_path / "c.sock"
    async with serve(path, {"status": status}):
        said = await asyncio.to_thread(ask, path, "destroy")
        assert said["refusal"]["reason"] == "invalid_value"
        assert await asyncio.to_thread(ask, path, "status") == {"done": 3}


@pytest.mark.parametrize("sent", [b"", b"garbage\n", b"[1]\n", b'{"do": 1}\n', b"x" * 200_000, b"\xff\n"])
async def test_hostile_bytes_do_not_end_the_server(tmp_path: Path, sent: bytes) -> None:
    path = tmp_path / "c.sock"

    def send() -> None:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(10)
            client.connect(str(path))
            try:
                client.sendall(sent)
                client.shutdown(socket.SHUT_WR)
                client.recv(100)
            except ConnectionError:
                pass

    async with serve(path, {"status": status}):
        await asyncio.to_thread(send)
        assert await asyncio.to_thread(ask, path, "status") == {"done": 3}


async def test_nobody_there_is_a_refusal(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as seen:
        ask(tmp_path / "none.sock", "status")
    assert seen.value.reason is Reason.RUN_NOT_LIVE


def test_the_socket_lies_in_the_runtime_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    path = socket_path("abc")
    assert path == tmp_path / "proctor" / "abc.sock"
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a folder of another user")
def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "proctor").mkdir()
    os.chown(tmp_path / "proctor", 12345, 12345)
    with pytest.raises(Refusal) as seen:
        socket_path("abc")
    assert seen.value.reason is Reason.OUT_UNUSABLE


async def test_sockets_of_dead_runs_are_removed_and_live_ones_stay(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "dead.sock"))
    async with serve(tmp_path / "one.sock", {"status": status}), serve(tmp_path / "two.sock", {"status": status}):
        assert not (tmp_path / "dead.sock").exists()
        assert await asyncio.to_thread(ask, tmp_path / "one.sock", "status") == {"done": 3}
