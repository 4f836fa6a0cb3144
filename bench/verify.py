"""How fast runs are re-checked, by one processor and by all, and in how much memory.

Run as `PYTHONPATH=src:tests/verify python bench/verify.py [--large]`.

Builds runs in a temporary folder and verifies each in a process of its own. References, in the same run: SHA-256 and
`json.loads` of the same lines, the least that any reader of a journal does; and `openssl dgst -sha256` of the same
packs and blobs. Speeds are medians of turns, each of which takes every one of them once. What two processors come to is
told twice: by the clock, which counts whoever else works on the machine, and by the processor time of the process that
takes most of it, which is what the clock shows where nobody else does. Bytes a trial are the growth of the peak between
a run of a tenth of the size and this one; the design, read whole, is in it. `--large` measures the memory for
10,000,000 entries of 100,000 trials.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from parts.made_runs import build, build_bytes

ROOT = Path(__file__).resolve().parent.parent
ENTRIES = 300_000
WITH_FILES = 60_000
MEGABYTES = 512
LARGE = 10_000_000
# of the large run, so that it has one trial for 100 entries
EXCHANGES = 46
TURNS = 3
STRUCTURE = ("journal.", "checkpoints.", "key.")
BYTES = ("packs.frames", "blobs.files")

_MEASURED = """
import json, os, re, resource, sys, time
from proctor_verify import verify
from proctor_verify.checks import CHECKS

folder, cores, prefixes = sys.argv[1], int(sys.argv[2]), tuple(sys.argv[3].split(","))
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])

def peak():
    # Of this program alone: ru_maxrss begins with what the parent had at the fork.
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024

before = peak()
wall, cpu = time.perf_counter(), time.process_time()
report = verify(folder, checks=[check for check in CHECKS if check.id.startswith(prefixes)])
took = {"wall": time.perf_counter() - wall, "own": time.process_time() - cpu}
others = resource.getrusage(resource.RUSAGE_CHILDREN)
took["cpu"] = took["own"] + others.ru_utime + others.ru_stime
memory = {"peak": peak(), "grown": peak() - before, "other": others.ru_maxrss * 1024}
print(json.dumps({**took, **memory, "failed": report.failed(), "entries": report.entries}))
"""


def measure(folder: Path, cores: int, prefixes: tuple[str, ...] = ("",)) -> dict[str, float]:
    """Verifies in a process of its own, so that its peak of memory is its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", _MEASURED, str(folder), str(cores), ",".join(prefixes)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, timeout=7200)
    measured: dict[str, float] = json.loads(done.stdout)
    if measured["failed"]:
        raise SystemExit(f"the run that was built does not verify: {measured['failed']}")
    return measured


def reference(journal: Path) -> float:
    """Processor seconds for the least that any reader does."""
    start = time.process_time()
    with journal.open("rb") as stream:
        for line in stream:
            hashlib.sha256(line[:-1]).hexdigest()
            json.loads(line)
    return time.process_time() - start


def speed(folder: Path, what: str) -> None:
    """Lines a second: structure alone, every check, and every check by all processors."""
    cores = len(os.sched_getaffinity(0))
    turns: list[dict[str, Any]] = [
        {
            "least": reference(folder / "journal.jsonl"),
            "structure": measure(folder, 1, STRUCTURE),
            "alone": measure(folder, 1),
            "together": measure(folder, cores),
        }
        for _ in range(TURNS)
    ]
    entries = int(turns[0]["alone"]["entries"])
    least = statistics.median(turn["least"] for turn in turns)

    def median(name: str, of: str) -> float:
        return statistics.median(float(turn[name][of]) for turn in turns)

    print(f"\n{what}: {entries:,} lines, medians of {TURNS} turns")
    print(f"least of any reader   {entries / least:>9,.0f} lines/s of one processor (SHA-256, json.loads)")
    for name, words in (("structure", "structure"), ("alone", "every check")):
        taken = median(name, "cpu")
        print(f"{words:<21} {entries / taken:>9,.0f} lines/s of one processor, {least / taken:.2f} x the least")
    by_clock = statistics.median(turn["alone"]["wall"] / turn["together"]["wall"] for turn in turns)
    busiest = statistics.median(_busiest(turn["together"]) for turn in turns)
    words, rate = f"every check, {cores} of them", entries / median("together", "wall")
    print(f"{words:<21} {rate:>9,.0f} lines/s, {by_clock:.2f} x as fast as one by the clock")
    gain = median("alone", "cpu") / busiest
    print(f"{'':<21} {entries / busiest:>9,.0f} lines/s, {gain:.2f} x by its busiest process")


def _busiest(taken: dict[str, float]) -> float:
    """Processor seconds of the process that takes most; there is one other where there are two processors."""
    return max(taken["own"], taken["cpu"] - taken["own"])


def hashing(folder: Path) -> None:
    """Bytes a second of packs and blobs, beside openssl."""
    held = build_bytes(folder, MEGABYTES)
    size, cores = sum(path.stat().st_size for path in held) / 1e6, len(os.sched_getaffinity(0))
    print(f"\npacks and blobs: {size:,.0f} MB in frames of 1 MiB and blobs of 8 MiB")
    openssl = shutil.which("openssl")
    if openssl is None:
        print("openssl is not on this machine")
        return
    taken: dict[str, list[float]] = {"openssl": [], "one": [], "openssl by the clock": [], "all": []}
    for _ in range(TURNS):
        before, started = _of_children(), time.perf_counter()
        subprocess.run([openssl, "dgst", "-sha256", *map(str, held)], check=True, stdout=subprocess.DEVNULL)
        taken["openssl"].append(_of_children() - before)
        taken["openssl by the clock"].append(time.perf_counter() - started)
        taken["one"].append(measure(folder, 1, BYTES)["cpu"])
        taken["all"].append(measure(folder, cores, BYTES)["wall"])
    median = {name: statistics.median(each) for name, each in taken.items()}
    one, together = median["openssl"] / median["one"], median["openssl by the clock"] / median["all"]
    print(f"openssl dgst -sha256  {size / median['openssl']:>9,.0f} MB/s of one processor; medians of {TURNS} turns")
    print(f"verify                {size / median['one']:>9,.0f} MB/s of one processor, {one:.2f} x openssl")
    words = f"verify, {cores} processors"
    print(f"{words:<21} {size / median['all']:>9,.0f} MB/s by the clock, {together:.2f} x openssl by the clock")


def _of_children() -> float:
    """Processor seconds of all processes that this one began and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def memory(folder: Path, entries: int, exchanges: int) -> None:
    """The peak for so many entries, and what each trial adds to it."""
    few = build(folder / "few", entries // 10, rows=True, exchanges=exchanges)
    many = build(folder / "many", entries, rows=True, exchanges=exchanges)
    cores = len(os.sched_getaffinity(0))
    of_few, of_many = measure(folder / "few", cores), measure(folder / "many", cores)
    growth = (of_many["grown"] - of_few["grown"]) / (many - few)
    print(f"\nmemory: {int(of_many['entries']):,} entries of {many:,} trials, in {of_many['wall']:,.0f} s")
    print(
        f"{of_many['peak'] / 2**20:,.0f} MiB at the peak, {of_many['grown'] / 2**20:,.0f} of them while verifying, "
        f"{growth:,.0f} bytes a trial; each other process {of_many['other'] / 2**20:,.0f} MiB"
    )


def main() -> None:
    """Prints the figures."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--large", action="store_true", help="10,000,000 entries, which takes ten minutes and 10 GB")
    large = options.parse_args().large
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        build(folder / "plain", ENTRIES)
        speed(folder / "plain", "tasks without files")
        build(folder / "rows", ENTRIES, rows=True)
        speed(folder / "rows", "question rows, two exchanges each")
        build(folder / "files", WITH_FILES, files=True)
        speed(folder / "files", "tasks with their files")
        hashing(folder / "bytes")
        memory(folder / "memory", LARGE if large else ENTRIES, EXCHANGES)


if __name__ == "__main__":
    main()
