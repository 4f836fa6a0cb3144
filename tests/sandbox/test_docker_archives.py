"""Files out of a container where what the engine hands on was made by an agent: nothing leads elsewhere, caps hold."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import cast

import pytest

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.sandbox.base import Fetched, PutItem
from proctor.sandbox.docker import getting, putting
from proctor.sandbox.docker.engine import Engine, EngineError, Where
from proctor.sandbox.docker.merged import Merged
from proctor.sandbox.docker.tarstream import END, Kind, header, padding

FOLDER, LINK, PIPE, SOCKET = 1 << 31, 1 << 27, 1 << 25, 1 << 24

Answer = Callable[[str, str, bytes], tuple[int, dict[str, str], bytes]]


@contextlib.asynccontextmanager
async def engine(folder: Path, answer: Answer) -> AsyncIterator[Engine]:
    """An engine that answers as told, over HTTP on a socket."""

    serving: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(cast("asyncio.Task[None]", asyncio.current_task()))
        with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                method, path, _ = head.split("\r\n")[0].split(" ")
                body = b""
                while "chunked" in head.lower() and (size := int(await reader.readline(), 16)):
                    body += await reader.readexactly(size)
                    await reader.readline()
                if "chunked" in head.lower():
                    await reader.readline()
                status, headers, said = answer(method, path, body)
                lines = [f"HTTP/1.1 {status} x", *(f"{name}: {value}" for name, value in headers.items())]
                writer.write("\r\n".join([*lines, f"Content-Length: {len(said)}", "", ""]).encode())
                writer.write(b"" if method == "HEAD" else said)
                await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_unix_server(serve, folder / "e.sock")
    async with server, Engine(Where(f"unix://{folder}/e.sock", "1.41")) as made:
        yield made
    await asyncio.gather(*serving)


def stat(mode: int, size: int = 0, to: str = "") -> dict[str, str]:
    said = {"name": "x", "size": size, "mode": mode, "mtime": "2026-01-01T00:00:00Z", "linkTarget": to}
    return {"X-Docker-Container-Path-Stat": base64.b64encode(json.dumps(said).encode()).decode()}


def file(name: str, content: bytes = b"x", mode: int = 0o644) -> bytes:
    head = header(name, Kind.FILE, mode=mode, uid=0, gid=0, mtime=0, size=len(content))
    return head + content + padding(len(content))


def folder(name: str) -> bytes:
    return header(name, Kind.FOLDER, mode=0o755, uid=0, gid=0, mtime=0)


def hard(name: str, to: str) -> bytes:
    made = bytearray(header(name, Kind.LINK, mode=0o644, uid=0, gid=0, mtime=0, to=to))
    made[156:157] = b"1"
    made[148:156] = b" " * 8
    made[148:156] = b"%06o\0 " % sum(made)
    return bytes(made)


async def got(tmp_path: Path, archive: bytes, *, size: int = 1 << 20, files: int = 100) -> list[Fetched]:
    def answer(method: str, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        return 200, stat(FOLDER | 0o755), archive

    async with engine(tmp_path, answer) as made:
        return await getting.get(
            made, "c", ["/logs"], tmp_path / "got", merged=Merged({}), cap_bytes=size, cap_files=files
        )


def told(rows: list[Fetched]) -> dict[str, str | None]:
    return {row.path: row.skipped for row in rows}


async def test_names_never_lead_elsewhere(tmp_path: Path) -> None:
    for name in ("logs/../../evil", "logs/a/../../../evil"):
        with pytest.raises(Refusal) as refused:
            await got(tmp_path, file(name) + END)
        assert refused.value.reason is Reason.SANDBOX_LOST
    rows = await got(tmp_path, file("/etc/passwd") + file("other/./name") + END)
    assert told(rows) == {"/logs/passwd": None, "/logs/name": None}
    assert sorted(path.name for path in (tmp_path / "got").rglob("*")) == ["logs", "name", "passwd"]


async def test_a_name_that_comes_twice_or_changes_its_kind_leads_nowhere(tmp_path: Path) -> None:
    link = header("logs/a", Kind.LINK, mode=0o777, uid=0, gid=0, mtime=0, to="/etc")
    rows = await got(tmp_path, folder("logs") + link + file("logs/a/passwd", b"1") + file("logs/b") + END)
    assert told(rows) == {"/logs/a": "link", "/logs/a/passwd": None, "/logs/b": None}
    assert (tmp_path / "got/logs/a/passwd").read_bytes() == b"1" and not (tmp_path / "got/logs/a").is_symlink()
    rows = await got(tmp_path, folder("logs") + file("logs/b", b"1") + file("logs/b", b"2") + END)
    assert (tmp_path / "got/logs/b").read_bytes() == b"2"
    with pytest.raises(Refusal) as refused:
        await got(tmp_path, folder("logs") + file("logs/b", b"1") + file("logs/b/c", b"2") + END)
    assert refused.value.reason is Reason.OUT_UNUSABLE


async def test_hard_links_bring_what_came_before_and_nothing_else(tmp_path: Path) -> None:
    archive = (
        folder("logs") + file("logs/a", b"12345", 0o755) + hard("logs/b", "logs/a") + hard("logs/c", "/etc/passwd")
    )
    rows = await got(tmp_path, archive + END, size=12)
    assert told(rows) == {"/logs/a": None, "/logs/b": None, "/logs/c": "another name of what was not taken"}
    assert (tmp_path / "got/logs/b").read_bytes() == b"12345"
    rows = await got(tmp_path, archive + hard("logs/d", "logs/a") + END, size=12)
    assert told(rows)["/logs/d"] == "cap of bytes"


async def test_special_bits_do_not_come_along(tmp_path: Path) -> None:
    rows = await got(tmp_path, folder("logs") + file("logs/a", b"1", 0o6777) + file("logs/b", b"1", 0) + END)
    modes = [row.host_path.stat().st_mode & 0o7777 for row in rows if row.host_path is not None]
    assert modes == [0o777, 0o600]


async def test_a_file_too_many_is_counted(tmp_path: Path) -> None:
    archive = folder("logs") + b"".join(file(f"logs/{number:03}") for number in range(40)) + END
    rows = await got(tmp_path, archive, files=10)
    assert len(rows) == 11 and rows[-1].skipped == "cap of files: 30 more left out" and rows[-1].path == "/logs/010"


async def test_what_is_too_large_is_passed_over_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = (
        folder("logs") + file("logs/a", b"1" * 5000) + file("logs/b") + file("logs/c", b"1" * 9000) + file("logs/d")
    )
    rows = await got(tmp_path, archive + END, size=100)
    assert told(rows) == {"/logs/a": "cap of bytes", "/logs/b": None, "/logs/c": "cap of bytes", "/logs/d": None}
    monkeypatch.setattr(getting, "_MOST_PASSED", 6000)
    rows = await got(tmp_path, archive + END, size=100)
    after = "cap of bytes: what comes after it is not looked at"
    assert told(rows) == {"/logs/a": "cap of bytes", "/logs/b": None, "/logs/c": after}


@pytest.mark.parametrize("archive", [b"", b"x" * 100, b"x" * 5000, file("logs/a", b"1" * 5000)[:2000]])
async def test_what_is_no_archive_is_a_lost_sandbox(tmp_path: Path, archive: bytes) -> None:
    if not archive:
        assert await got(tmp_path, archive) == []
        return
    with pytest.raises(Refusal) as refused:
        await got(tmp_path, archive)
    assert refused.value.reason is Reason.SANDBOX_LOST


async def test_links_pipes_and_sockets_are_not_asked_for(tmp_path: Path) -> None:
    kinds = {"link": LINK | 0o777, "pipe": PIPE, "socket": SOCKET, "file": 0o644}

    def answer(method: str, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        if "path=" not in path:
            return 200, {}, b"{}"
        name = path.rpartition("%2F")[2] if "%2F" in path else path.rpartition("/")[2]
        if name == "none":
            return 404, {}, b"{}"
        assert method == "HEAD" or name == "file"
        return 200, stat(kinds[name]), file("file") + END

    async with engine(tmp_path, answer) as made:
        paths = ["/link", "/pipe", "/socket", "/none", "/proc/1/environ", "/dev/shm/x", "/sys", "/file"]
        rows = await getting.get(made, "c", paths, tmp_path / "got", merged=Merged({}), cap_bytes=10, cap_files=10)
    assert told(rows) == {
        "/link": "link",
        "/pipe": "special file",
        "/socket": "special file",
        "/none": "not there",
        "/proc/1/environ": "kernel file",
        "/dev/shm/x": "kernel file",
        "/sys": "kernel file",
        "/file": None,
    }


async def test_a_container_that_is_gone_is_not_files_that_are_not_there(tmp_path: Path) -> None:
    async with engine(tmp_path, lambda method, path, body: (404, {}, b'{"message": "No such container"}')) as made:
        with pytest.raises(EngineError) as fault:
            await getting.get(made, "c", ["/logs"], tmp_path / "got", merged=Merged({}), cap_bytes=10, cap_files=10)
    assert fault.value.gone


async def test_a_source_that_shrinks_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x" * 1000)

    def answer(method: str, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        source.write_bytes(b"x")  # after it was listed, before it is sent
        return 404 if method == "HEAD" else 200, {}, b""

    async with engine(tmp_path, answer) as made:
        with pytest.raises(Refusal) as refused:
            await putting.put(made, "c", [PutItem("/a", source=source)], mounts=(), now=0)
    assert refused.value.reason is Reason.FILE_UNREADABLE


async def test_an_answer_has_a_bound_and_an_engine_a_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.sandbox.docker.engine._MOST_ANSWER", 1000)
    async with engine(tmp_path, lambda method, path, body: (200, {}, b'"' + b"x" * 2000 + b'"')) as made:
        with pytest.raises(EngineError) as fault:
            await made.call("GET", "x")
        assert "1,000 bytes" in fault.value.text

    hearing: list[asyncio.Task[None]] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hearing.append(cast("asyncio.Task[None]", asyncio.current_task()))
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    silent = await asyncio.start_unix_server(hear, tmp_path / "s.sock")
    async with silent, Engine(Where(f"unix://{tmp_path}/s.sock", None)) as made:
        for ask in (made.call("GET", "x", deadline_sec=0.05), made.connect("x", deadline_sec=0.05)):
            with pytest.raises(EngineError) as fault:
                await ask
            assert fault.value.status is None
    await asyncio.gather(*hearing)


async def test_errors_of_an_engine_are_told_with_their_status(tmp_path: Path) -> None:
    async with engine(tmp_path, lambda method, path, body: (409, {}, b'{"message": "paused"}')) as made:
        for ask in (made.call("POST", "x"), made.connect("x")):
            with pytest.raises(EngineError) as fault:
                await ask
            assert (fault.value.status, fault.value.text) == (409, "paused")
