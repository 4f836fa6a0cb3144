"""A Docker engine is found wherever it listens, and what answers otherwise is none."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from proctor.sandbox.docker.endpoint import find

SEC = 2.0


@contextmanager
def engine(path: Path, answer: bytes = b"HTTP/1.0 200 OK\r\n\r\nOK") -> Iterator[list[bytes]]:
    """Something that answers once on a socket; yields what it was asked."""
    asked: list[bytes] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                asked.append(connection.recv(4096))
                with suppress(OSError):
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield asked
        # where nobody asked, as where an engine answers in the usual place first
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as last, suppress(OSError):
            last.connect(str(path))
        thread.join(timeout=600)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_docker_where_the_environment_says(home: Path) -> None:
    with engine(home / "d.sock") as asked:
        found = find({"DOCKER_HOST": f"unix://{home}/d.sock"}, SEC)
    assert (found.endpoint, found.named_by) == (f"unix://{home}/d.sock", "DOCKER_HOST")
    assert asked[0].startswith(b"GET /_ping ")


def test_docker_of_the_current_context(home: Path) -> None:
    meta = home / ".docker/contexts/meta/abc/meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"Name": "lab", "Endpoints": {"docker": {"Host": f"unix://{home}/lab.sock"}}}))
    (home / ".docker/config.json").write_text('{"currentContext": "lab"}')
    with engine(home / "lab.sock"):
        found = find({}, SEC)
    assert (found.endpoint, found.named_by) == (f"unix://{home}/lab.sock", "the context lab")


def test_docker_without_root(home: Path) -> None:
    with engine(home / "docker.sock"):
        found = find({"XDG_RUNTIME_DIR": str(home), "DOCKER_CONTEXT": "none"}, SEC)
    assert found.endpoint is not None and found.endpoint != f"unix://{home}/.docker/run/docker.sock"


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.0 500 no\r\n\r\n", b"SSH-2.0-x\r\n", b""], ids=["an error", "another program", "nothing"]
)
def test_what_answers_otherwise_is_no_docker(home: Path, answer: bytes) -> None:
    with engine(home / "d.sock", answer):
        found = find({"DOCKER_HOST": f"unix://{home}/d.sock"}, SEC)
    assert found.endpoint is None and "not as Docker does" in found.tried[f"unix://{home}/d.sock"]


@pytest.mark.parametrize("host", ["unix:///nowhere.sock", "ssh://host", "tcp://127.0.0.1:1", "tcp://[", "fd://"])
def test_an_endpoint_that_cannot_be_asked_is_told(host: str) -> None:
    found = find({"DOCKER_HOST": host}, SEC)
    assert found.endpoint is None and found.tried[host]


@pytest.mark.parametrize("content", ["{", "[]", '{"currentContext": 3}', "[" * 5000])
def test_a_broken_configuration_says_nothing(home: Path, content: str) -> None:
    (home / ".docker").mkdir()
    (home / ".docker/config.json").write_text(content)
    found = find({}, SEC)
    assert found.named_by == "the usual place" or "unix:///var/run/docker.sock" in found.tried
