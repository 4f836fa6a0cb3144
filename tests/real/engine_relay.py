"""A socket before the engine's own, that can be closed with all that goes through it: an engine that dies."""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from each_kind import kind_or_skip

from proctor.core.tokens import seal_probe
from proctor.sandbox.docker.endpoint import address


class Relay:
    """Passes connections on while it is open."""

    def __init__(self, path: Path, engine: str | tuple[str, int]) -> None:
        self.path, self._engine = path, engine
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    @property
    def endpoint(self) -> str:
        """For DOCKER_HOST."""
        return f"unix://{self.path}"

    def open(self) -> None:
        """Listen."""
        self.path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen(64)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        """End every connection, and take no more."""
        listener, self._listener = self._listener, None
        if listener is not None:
            _end(listener)
        self.path.unlink(missing_ok=True)
        with self._lock:
            for each in self._open:
                _end(each)
            self._open.clear()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = listener.accept()[0]
                family = socket.AF_UNIX if isinstance(self._engine, str) else socket.AF_INET
                engine = socket.socket(family)
                engine.connect(self._engine)
                with self._lock:
                    if self._listener is not listener:
                        _end(client)
                        _end(engine)
                        return
                    self._open |= {client, engine}
                for pair in ((client, engine), (engine, client)):
                    threading.Thread(target=_pump, args=pair, daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def _end(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@pytest.fixture
def relay() -> Iterator[Relay]:
    """An open one to this machine's engine."""
    seen = kind_or_skip("docker").probe(seal_probe(30))
    # a socket's path has at most 107 bytes
    folder = Path(tempfile.mkdtemp(prefix="relay"))
    made = Relay(folder / "engine.sock", address(str(seen.facts["endpoint"])))
    made.open()
    yield made
    made.close()
    shutil.rmtree(folder)
