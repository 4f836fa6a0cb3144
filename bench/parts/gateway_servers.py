"""Servers that a client's requests pass through, each a process of its own, and what the system says of them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PARTS = Path(__file__).parent
_TICKS = os.sysconf("SC_CLK_TCK")
_READY_SEC = 120.0


class Server:
    """One process; `port` is where it listens."""

    def __init__(self, name: str, process: subprocess.Popen[str], port: int) -> None:
        self.name = name
        self.port = port
        self._process = process

    @contextlib.contextmanager
    def session(self, agents: int) -> Iterator[tuple[str, str]]:
        """Ports and tokens, as `load` takes them, for one round of so many agents."""
        yield str(self.port), "none"

    def cpu(self) -> float:
        """Seconds of it and of what it started."""
        return sum(_cpu(pid) for pid in _tree(self._process.pid))

    def memory(self, field: str = "VmRSS") -> float:
        """MB that it has now; with `VmHWM` at its peak."""
        return sum(_memory(pid, field) for pid in _tree(self._process.pid))

    def reset_peak(self) -> None:
        """The peak counts from here on."""
        for pid in _tree(self._process.pid):
            Path(f"/proc/{pid}/clear_refs").write_text("5")

    def end(self) -> None:
        """Stop it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        elif self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class Ours(Server):
    """Ours: each agent is an attempt of a run, with a door of its own."""

    @contextlib.contextmanager
    def session(self, agents: int) -> Iterator[tuple[str, str]]:
        """Open their doors."""
        ports, tokens = self._said(str(agents)).split()
        try:
            yield ports, tokens
        finally:
            assert self._said("") == "closed"

    def _said(self, word: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


def part(name: str, script: str, *words: str) -> Server:
    """A script of this folder that prints its port."""
    process = _start(script, *words)
    assert process.stdout is not None
    return Server(name, process, int(process.stdout.readline()))


def ours(upstream: int, folder: Path) -> Ours:
    """The gateway of runs."""
    return Ours("proctor", _start("gateway_ours.py", str(upstream), str(folder)), 0)


def litellm(program: Path, upstream: int, folder: Path) -> Server:
    """LiteLLM's proxy, one worker, without its logs. Returns when it answers."""
    config = {
        "model_list": [
            {
                "model_name": "gpt-x",
                "litellm_params": {
                    "model": "openai/gpt-x",
                    "api_base": f"http://127.0.0.1:{upstream}/v1",
                    "api_key": "none",
                },
            }
        ],
        "litellm_settings": {"num_retries": 0},
    }
    file = folder / "litellm.json"
    file.write_text(json.dumps(config))
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    environment = {
        **os.environ,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        # no keys of its own: those would cost it time
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }
    log = (folder / "litellm.log").open("wb")
    process = subprocess.Popen(
        [str(program), "--config", str(file), "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"],
        stdout=log,
        stderr=log,
        env=environment,
        text=True,
        start_new_session=True,
    )
    server = Server("litellm", process, port)
    _wait_until_ready(server, process, folder / "litellm.log")
    return server


def _wait_until_ready(server: Server, process: subprocess.Popen[str], log: Path) -> None:
    until = time.monotonic() + _READY_SEC
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/health/liveliness", timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    server.end()
    raise RuntimeError(f"LiteLLM's proxy does not answer: {log.read_text()[-500:]}")


def load(ports: str, tokens: str, mode: str, connections: int, seconds: float, requests: int | None = None) -> Any:
    """What a client says: see `gateway_load.py`."""
    words = [ports, tokens, mode, str(connections), str(seconds), *([str(requests)] if requests else [])]
    command = [sys.executable, str(PARTS / "gateway_load.py"), *words]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _start(script: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(PARTS / script), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _tree(pid: int) -> list[int]:
    """A process and what it started."""
    found = [pid]
    for each in found:
        children = Path(f"/proc/{each}/task/{each}/children")
        if children.exists():
            found += map(int, children.read_text().split())
    return found


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"{field} is not said of {pid}")
