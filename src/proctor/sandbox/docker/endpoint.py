"""Where a Docker engine listens: what the environment names, else the usual places."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_MAX_FILE_BYTES = 1 << 20
_PING = b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n"
_PORT = 2375


@dataclass(frozen=True)
class DockerFacts:
    """The endpoint that answered, or every one that was tried and why it did not."""

    endpoint: str | None
    named_by: str | None
    tried: Mapping[str, str]

    def as_record(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def find(environ: Mapping[str, str], deadline_sec: float) -> DockerFacts:
    """Ask each endpoint that may be meant, until one answers: what the environment names is asked alone."""
    tried: dict[str, str] = {}
    for endpoint, named_by in _endpoints(environ):
        if endpoint in tried:
            continue
        why = _ping(endpoint, min(2.0, deadline_sec))
        if why is None:
            return DockerFacts(endpoint, named_by, tried)
        tried[endpoint] = why
    return DockerFacts(None, None, tried)


def address(endpoint: str) -> str | tuple[str, int]:
    """The socket path of a `unix://` endpoint, or host and port of a `tcp://` one.

    Raises:
        ValueError: an endpoint of another kind.
    """
    parts = urlsplit(endpoint)
    if parts.scheme == "unix" and parts.path:
        return parts.path
    if parts.scheme in ("tcp", "http") and parts.hostname:
        return parts.hostname, parts.port or _PORT
    raise ValueError("an endpoint of a kind that is not asked here")


def _endpoints(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if said := environ.get("DOCKER_HOST"):
        yield said, "DOCKER_HOST"
        return
    home = Path(environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
    yield from _context(home, environ.get("DOCKER_CONTEXT"))
    yield "unix:///var/run/docker.sock", "the usual place"
    if runtime := environ.get("XDG_RUNTIME_DIR"):
        yield f"unix://{runtime}/docker.sock", "the usual place of a rootless engine"
    yield f"unix://{Path.home()}/.docker/run/docker.sock", "the usual place of a desktop engine"


def _context(home: Path, named: str | None) -> Iterator[tuple[str, str]]:
    current = named or _json(home / "config.json").get("currentContext")
    if not current or current == "default":
        return
    folder = home / "contexts" / "meta"
    for meta in sorted(folder.glob("*/meta.json")) if folder.is_dir() else ():
        context = _json(meta)
        endpoints = context.get("Endpoints")
        docker = endpoints.get("docker") if isinstance(endpoints, dict) else None
        host = docker.get("Host") if isinstance(docker, dict) else None
        if context.get("Name") == current and isinstance(host, str):
            yield host, f"the context {current}"


def _json(path: Path) -> dict[str, Any]:
    """A configuration file of another program: what cannot be read of it says nothing."""
    try:
        with path.open("rb") as file:
            value = json.loads(file.read(_MAX_FILE_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _ping(endpoint: str, deadline_sec: float) -> str | None:
    """Why nobody answers there, or None."""
    try:
        where = address(endpoint)
        if not isinstance(where, str):
            return _ask(socket.create_connection(where, deadline_sec), deadline_sec)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(deadline_sec)
        try:
            connection.connect(where)
        except OSError:
            connection.close()
            raise
        return _ask(connection, deadline_sec)
    except (OSError, ValueError) as error:
        return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _ask(connection: socket.socket, deadline_sec: float) -> str | None:
    with connection:
        connection.settimeout(deadline_sec)
        connection.sendall(_PING)
        head = connection.recv(64).split(b"\r\n")[0]
    return None if b" 200 " in head + b" " else f"it answers, but not as Docker does: {head[:40]!r}"
