"""proctor gateway as a process: signals, kills, other processes, and what its record says of each."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from threaded_provider import QuietHandler, ThreadedProvider

from proctor.core.money import Usd
from proctor.evidence.callstate import read_calls

SOURCES = Path(__file__).resolve().parents[2] / "src"
ASKED = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}).encode()
# at a dollar a token
WORST = Usd((len(ASKED) + 2) * 10**12)
SEC = 600


class Upstream(ThreadedProvider):
    """A provider that answers once `go_on` is set; `came` counts its requests."""

    def __init__(self) -> None:
        self.came = threading.Semaphore(0)
        upstream = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                upstream.came.release()
                upstream.go_on.wait(SEC)
                answer = {
                    "model": "m",
                    "choices": [
                        {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
                    ],
                    "usage": {"prompt_tokens": 3, "completion_tokens": 2},
                }
                body = json.dumps(answer).encode()
                try:
                    self.send_response(200)
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    self.close_connection = True

        super().__init__(Handler)

    def wait(self) -> None:
        assert self.came.acquire(timeout=SEC), "nothing came"


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    it = Upstream()
    yield it
    it.end()


@dataclass
class Running:
    """A gateway's process, and where it serves."""

    process: subprocess.Popen[str]
    base_url: str
    token: str

    def ask(self) -> int:
        """Ask for an answer; the status, 0 where the connection broke."""
        request = urllib.request.Request(
            f"{self.base_url}/v1/chat/completions", data=ASKED, headers={"authorization": f"Bearer {self.token}"}
        )
        try:
            with urllib.request.urlopen(request, timeout=SEC) as reply:
                reply.read()
                return int(reply.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def drain(self) -> None:
        """Ctrl-C, which is heard when this returns."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.stderr is not None
        assert any("stopping" in line for line in self.process.stderr)

    def end(self, *signals: signal.Signals) -> tuple[int, str, str]:
        for number in signals:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=SEC)
        return self.process.returncode, out, err


def command(record: Path, url: str, *more: str) -> list[str]:
    words = ["--upstream", url, "--budget", "10000", "--price", "1000000,1000000", "--max-output-tokens", "9"]
    return [sys.executable, "-m", "proctor", "gateway", *words, "--record", str(record), "--json", *more]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCES)}


@contextmanager
def running(record: Path, url: str, *more: str) -> Iterator[Running]:
    process = subprocess.Popen(
        command(record, url, *more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line == "}\n":
                break
        assert lines, process.communicate(timeout=SEC)[1]
        said = json.loads("".join(lines))
        yield Running(process, said["base_url"], said["token"])
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def refused(record: Path, url: str, *more: str) -> str:
    """What a gateway says that is refused."""
    done = subprocess.run(
        command(record, url, *more), capture_output=True, text=True, env=environment(), timeout=SEC, check=False
    )
    assert done.returncode == 3, done.stderr
    return done.stderr


def last(record: Path) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads(record.read_bytes().splitlines()[-1])
    return entry


def test_ctrl_c_waits_for_what_is_in_flight(tmp_path: Path, upstream: Upstream) -> None:
    record = tmp_path / "calls.jsonl"
    with ThreadPoolExecutor(1) as threads, running(record, upstream.url) as gateway:
        asked = threads.submit(gateway.ask)
        upstream.wait()
        gateway.drain()
        assert gateway.ask() == 0, "nothing new is taken"
        upstream.go_on.set()
        got = asked.result(SEC)
        status, out, err = gateway.end()
        assert got == 200, (status, out, err)
    assert status == 130 and "1 exchanges · 0 in flight" in err
    assert json.loads(out)["charged"] == "5.000000000000"
    assert last(record)["kind"] == "gateway.closed" and last(record)["body"]["exit_status"] == 130
    assert read_calls(record).total == Usd.parse("5")


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143)],
    ids=["a second Ctrl-C", "SIGTERM"],
)
def test_what_is_broken_off_is_charged_at_its_worst_case(
    tmp_path: Path, upstream: Upstream, number: signal.Signals, status: int
) -> None:
    record = tmp_path / "calls.jsonl"
    with ThreadPoolExecutor(1) as threads, running(record, upstream.url) as gateway:
        asked = threads.submit(gateway.ask)
        upstream.wait()
        if number is signal.SIGINT:
            gateway.drain()
        assert gateway.end(number)[0] == status
        assert asked.result(SEC) == 0
    state = read_calls(record)
    assert state.total == WORST and state.closed and not state.open
    assert last(record)["body"]["exit_status"] == status


def test_a_gateway_that_is_killed_goes_on_below_the_same_budget(tmp_path: Path, upstream: Upstream) -> None:
    record = tmp_path / "calls.jsonl"
    with ThreadPoolExecutor(3) as threads, running(record, upstream.url) as gateway:
        under_way = [threads.submit(gateway.ask) for _ in range(3)]
        for _ in under_way:
            upstream.wait()
        gateway.process.kill()
        assert [each.result(SEC) for each in under_way] == [0, 0, 0]
    assert read_calls(record).total == Usd(0) and len(read_calls(record).open) == 3
    upstream.go_on.set()
    with running(record, upstream.url) as gateway:
        assert gateway.ask() == 200
        assert gateway.end(signal.SIGINT)[0] == 130
    state = read_calls(record)
    assert state.openings == 2 and state.total == Usd(3 * WORST.pico) + Usd.parse("5")
    said = refused(record, upstream.url, "--budget", str(state.total))
    assert "ceiling_reached" in said


def free_port() -> str:
    """One that the system gives to nobody who asks for any."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(1024, first), 100):
        try:
            with socket.create_server(("127.0.0.1", port)):
                return str(port)
        except OSError:
            continue
    raise AssertionError("no port is free")


def test_a_record_and_a_port_belong_to_one_gateway(tmp_path: Path, upstream: Upstream) -> None:
    record = tmp_path / "calls.jsonl"
    with running(record, upstream.url) as gateway:
        assert "run_locked" in refused(record, upstream.url)
        port = gateway.base_url.rpartition(":")[2]
        assert "port_unavailable" in refused(tmp_path / "other.jsonl", upstream.url, "--port", port)
        assert not (tmp_path / "other.jsonl").exists()
        assert gateway.end(signal.SIGINT)[0] == 130
    free = free_port()
    with running(record, upstream.url, "--port", free) as gateway:
        assert gateway.base_url == f"http://127.0.0.1:{free}"
