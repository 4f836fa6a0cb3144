"""How fast runs are re-checked, by one processor and by all, and in how much memory.

Run as `PYTHONPATH=src:tests/verify python bench/verify.py [--large]`.

Builds runs in a temporary folder and verifies each in a process of its own. References, in the same run: SHA-256 and
`json.loads` of the same lines, the least that any reader of a journal does; and `openssl dgst -sha256` of the same
packs and blobs. Bytes a trial are the growth of the peak between a run of a tenth of the size and this one; the design,
read whole, is in it. `--large` measures the memory for 10,000,000 entries of 100,000 trials.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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
took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
others = resource.getrusage(resource.RUSAGE_CHILDREN)
took["cpu"] += others.ru_utime + others.ru_stime
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
    least = reference(folder / "journal.jsonl")
    structure, alone, together = measure(folder, 1, STRUCTURE), measure(folder, 1), measure(folder, cores)
    entries = int(alone["entries"])
    print(f"\n{what}: {entries:,} lines")
    print(f"least of any reader   {entries / least:>9,.0f} lines/s of one processor (SHA-256, json.loads)")
    for name, taken in (("structure", structure), ("every check", alone)):
        rate = entries / taken["cpu"]
        print(f"{name:<21} {rate:>9,.0f} lines/s of one processor, {least / taken['cpu']:.2f} x the least")
    times = alone["wall"] / together["wall"]
    print(f"every check, {cores} of them  {entries / together['wall']:>9,.0f} lines/s, {times:.2f} x as fast as one")


def hashing(folder: Path) -> None:
    """Bytes a second of packs and blobs, beside openssl."""
    held = build_bytes(folder, MEGABYTES)
    size, cores = sum(path.stat().st_size for path in held) / 1e6, len(os.sched_getaffinity(0))
    print(f"\npacks and blobs: {size:,.0f} MB in frames of 1 MiB and blobs of 8 MiB")
    openssl = shutil.which("openssl")
    if openssl is None:
        print("openssl is not on this machine")
        return
    walls: dict[str, list[float]] = {"openssl": [], "one": [], "all": []}
    for _ in range(TURNS):
        started = time.perf_counter()
        subprocess.run([openssl, "dgst", "-sha256", *map(str, held)], check=True, stdout=subprocess.DEVNULL)
        walls["openssl"].append(time.perf_counter() - started)
        walls["one"].append(measure(folder, 1, BYTES)["wall"])
        walls["all"].append(measure(folder, cores, BYTES)["wall"])
    median = {name: statistics.median(each) for name, each in walls.items()}
    print(f"openssl dgst -sha256  {size / median['openssl']:>9,.0f} MB/s; medians of {TURNS} turns")
    for name, words in (("one", "verify"), ("all", f"verify, {cores} processors")):
        ratio = median["openssl"] / median[name]
        print(f"{words:<21} {size / median[name]:>9,.0f} MB/s, {ratio:.2f} x openssl")


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
