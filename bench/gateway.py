"""The gateway as runs have it, beside a bare pass-through of aiohttp's and LiteLLM's proxy.

All stand between the same client and the same provider on loopback, each a process of its own, and are asked in turn,
round by round. Ours does all that it does in a run: every exchange is parsed, priced, held, and durable with both of
its bodies before its reply ends.

    python bench/gateway.py [LITELLM] [--rounds N] [--seconds S] [--many N]

LITELLM is the program of that name; without it that row is left out. `--many` is how many exchanges the memory is
looked at over (100,000 for the whole length).
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from parts.gateway_servers import Server, litellm, load, ours, part

CONNECTIONS = (1, 16, 64, 256)
MODES = ("plain", "stream")
# of the look at memory: attempts that run at once, and exchanges of all of them
AGENTS, MANY = 16, 4_000


@dataclass
class Rounds:
    """What rounds of one server came to."""

    rates: list[float] = field(default_factory=list)
    middles: list[float] = field(default_factory=list)
    cpu: float = 0.0
    count: int = 0

    def take(self, server: Server, mode: str, connections: int, seconds: float) -> None:
        """One more round."""
        with server.session(connections) as (ports, tokens):
            before = server.cpu()
            said = load(ports, tokens, mode, connections, seconds)
            self.cpu += server.cpu() - before
        assert said["failed"] == 0, f"{server.name}: {said['failed']} of {said['count']} failed"
        self.rates.append(said["count"] / said["seconds"])
        self.middles.append(said["p50"])
        self.count += said["count"]

    @property
    def rate(self) -> float:
        """Exchanges a second, the median of the rounds."""
        return statistics.median(self.rates)

    @property
    def middle(self) -> float:
        """Milliseconds, the median of the rounds' medians."""
        return statistics.median(self.middles)

    @property
    def cpu_ms(self) -> float:
        """Milliseconds of CPU an exchange."""
        return 1000 * self.cpu / self.count


def append_ms(folder: Path) -> float:
    """The median of a bare append of 4 KiB and its fdatasync."""
    descriptor = os.open(folder / "appended", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    times = []
    for _ in range(300):
        began = time.perf_counter()
        os.write(descriptor, b"x" * 4096)
        os.fdatasync(descriptor)
        times.append(time.perf_counter() - began)
    os.close(descriptor)
    return 1000 * statistics.median(times)


def compare(servers: list[Server], rounds: int, seconds: float, folder: Path) -> None:
    """Rates, latencies and CPU of all, by mode and connections."""
    print("exchanges/s (p50 ms, CPU ms each)")
    print(f"{'':14}" + "".join(f"{server.name:>26}" for server in servers) + "   ours / bare   ours / litellm")
    added: dict[str, float] = {}
    for mode in MODES:
        for connections in CONNECTIONS:
            found = {server.name: Rounds() for server in servers}
            for _ in range(rounds):
                for server in servers:
                    found[server.name].take(server, mode, connections, seconds)
            cells = [f"{each.rate:8.0f} ({each.middle:7.2f},{each.cpu_ms:6.2f})" for each in found.values()]
            mine, bare = found["proctor"], found["bare"]
            over = f"{mine.rate / found['litellm'].rate:.1f}" if "litellm" in found else "-"
            print(
                f"{mode:7}{connections:5}  " + "".join(f"{cell:>26}" for cell in cells),
                f"{mine.rate / bare.rate:14.2f} {over:>16}",
                flush=True,
            )
            if connections == 1:
                added[mode] = mine.middle - found["direct"].middle
    append = append_ms(folder)
    print("goal at 64: ours / bare at least 0.40, ours / litellm at least 20 plain and 40 streaming, 0.60 ms CPU each")
    for mode, more in added.items():
        print(
            f"added at one connection, {mode}: {more:.2f} ms at p50; goal: at most {1 + 2 * append:.2f},"
            f" which is 1 ms and twice a bare append and fdatasync ({append:.2f} ms)"
        )


def memory(server: Server, many: int) -> None:
    """What ours has of memory over many exchanges, and while 50 MB stream through it."""
    began, least = server.memory(), 0.0
    done = 0
    while done < many:
        with server.session(AGENTS) as (ports, tokens):
            load(ports, tokens, "plain" if done % (2 * MANY) else "stream", AGENTS, 600, MANY)
        done += MANY
        if done <= max(MANY, many // 10):
            least = server.memory()
    print(
        f"memory of ours: {began:.0f} MB, {least:.0f} MB after {max(MANY, many // 10):,} exchanges,"
        f" {server.memory():.0f} MB after {done:,} more than before (goal: under 120, and flat)"
    )
    server.reset_peak()
    before = server.memory("VmHWM")
    with server.session(1) as (ports, tokens):
        said = load(ports, tokens, "big", 1, 120, 1)
    print(
        f"a stream of 50 MB: {said['p50'] / 1000:.1f} s, {server.memory('VmHWM') - before:+.1f} MB at the peak"
        " (goal: constant)"
    )


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("litellm", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--many", type=int, default=20_000)
    said = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as made:
        folder = Path(made)
        upstream = part("direct", "gateway_upstream.py")
        mine = ours(upstream.port, folder / "run")
        servers = [upstream, part("bare", "gateway_bare.py", str(upstream.port))]
        if said.litellm is not None and said.litellm.exists():
            servers.append(litellm(said.litellm, upstream.port, folder))
        else:
            print("litellm is left out: its program was not named, or is not there")
        servers.append(mine)
        try:
            compare(servers, said.rounds, said.seconds, folder)
            memory(mine, said.many)
        finally:
            for server in reversed(servers):
                server.end()


if __name__ == "__main__":
    main()
