"""Journal throughput: entries a second by number of waiters, and what else makes the same bytes durable in this run.

Run as `PYTHONPATH=src python bench/journal.py [FOLDER]`; FOLDER (default: a temporary one) is on the disk to measure.

The references append as many bytes, one at a time: a bare write and fdatasync, which is the least that can be done;
and one row, one transaction of SQLite in WAL mode with synchronous=FULL, called as it is (which holds up whatever else
the program does) and, as the journal is, awaited from an event loop that goes on meanwhile. SQLite writes over its log
from every thousandth row or so on: a file that does not grow costs some file systems half as much to make durable, so
that it can be faster than a bare append; a journal that readers may see at any time has no such room behind its end.
Each figure is the median of several, taken by turns, so that a disk that slows down slows all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from proctor.evidence.journal import Journal
from proctor.evidence.keys import OperatorKey
from proctor.evidence.kinds import Kind
from proctor.evidence.lock import Lock, opening
from proctor.evidence.notes import VerifierKey
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.scan import scan

ENTRIES = {1: 2_000, 16: 30_000, 64: 100_000}
ALONE = 2_000
TURNS = 5
BODY = {"attempt": "0123456789abcdef/0", "boundary": "pre-verify"}
ADMITTED = {
    "format": 1,
    "run_id": "bench",
    "study": "bench",
    "stage": "bench",
    "manifest": {"path": "manifests/0001.json", "sha256": "0" * 64},
    "design_sha256": "0" * 64,
    "abandoned": [],
    "opening": opening(),
    "planned": {"trials": 0, "blocks": 0},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    given = parser.parse_args().folder
    with tempfile.TemporaryDirectory(dir=given) as folder:
        asyncio.run(measure(Path(folder)))


async def measure(folder: Path) -> None:
    # What the first journal loads is no growth.
    _, warm = await _journal(folder / "warm", 64, 1_000)
    line_bytes = warm.journal_path.stat().st_size // 1_000
    rates: dict[str, list[float]] = {}
    grown = 0
    for turn in range(TURNS):
        line = b"x" * (line_bytes - 1) + b"\n"
        rates.setdefault("bare", []).append(_bare(folder / f"bare-{turn}", line))
        rates.setdefault("sqlite", []).append(_sqlite(folder / f"sqlite-{turn}.db", line))
        rates.setdefault("awaited", []).append(await _sqlite_awaited(folder / f"awaited-{turn}.db", line))
        for waiters, entries in ENTRIES.items():
            before = _rss_kib()
            rate, run = await _journal(folder / f"run-{turn}-{waiters}", waiters, entries)
            grown = max(grown, _rss_kib() - before)
            rates.setdefault(str(waiters), []).append(rate)
    median = {name: statistics.median(each) for name, each in rates.items()}
    print(f"entries of {line_bytes} bytes, each acknowledged once it is durable; medians of {TURNS} turns")
    print(f"bare write + fdatasync               {median['bare']:9,.0f}/s")
    print(f"SQLite (WAL, FULL), called           {median['sqlite']:9,.0f}/s")
    print(f"SQLite (WAL, FULL), awaited          {median['awaited']:9,.0f}/s")
    for waiters in ENTRIES:
        rate = median[str(waiters)]
        ratios = ", ".join(
            f"{rate / median[name]:.2f} x {words}"
            for name, words in (("bare", "bare"), ("sqlite", "SQLite called"), ("awaited", "SQLite awaited"))
        )
        print(f"journal, {waiters:2} waiter{'s' if waiters > 1 else ' '}                 {rate:9,.0f}/s  {ratios}")
    print(f"peak memory +{grown:,} KiB in {max(ENTRIES.values()):,} entries")
    started = time.perf_counter()
    size = scan(run).chain.size
    print(f"reading it again, validated: {size / (time.perf_counter() - started):,.0f} entries/s")


async def _journal(path: Path, waiters: int, entries: int) -> tuple[float, RunFolder]:
    private = Ed25519PrivateKey.generate()
    key = OperatorKey(VerifierKey("bench", private.public_key().public_bytes_raw()), private)
    run = RunFolder(path)
    run.create()
    first = {**ADMITTED, "key": {"vkey": key.vkey, "fingerprint": key.fingerprint}}
    lock = Lock.acquire(run, extra={})
    journal = await Journal.create(run, lock=lock, key=key, run_id="bench", first=(Kind.RUN_ADMITTED, first))

    async def wait(count: int) -> None:
        for _ in range(count):
            await journal.append(Kind.ATTEMPT_BOUNDARY, BODY)

    started = time.perf_counter()
    await asyncio.gather(*(wait(entries // waiters) for _ in range(waiters)))
    rate = entries // waiters * waiters / (time.perf_counter() - started)
    await journal.close(None)
    return rate, run


def _bare(path: Path, line: bytes) -> float:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        started = time.perf_counter()
        for _ in range(ALONE):
            os.write(descriptor, line)
            os.fdatasync(descriptor)
        return ALONE / (time.perf_counter() - started)
    finally:
        os.close(descriptor)


def _sqlite(path: Path, line: bytes) -> float:
    insert = _table(path)
    started = time.perf_counter()
    for _ in range(ALONE):
        insert(line)
    return ALONE / (time.perf_counter() - started)


async def _sqlite_awaited(path: Path, line: bytes) -> float:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as thread:
        insert = await loop.run_in_executor(thread, _table, path)
        started = time.perf_counter()
        for _ in range(ALONE):
            await loop.run_in_executor(thread, insert, line)
        return ALONE / (time.perf_counter() - started)


def _table(path: Path) -> Callable[[bytes], object]:
    """What inserts one row in one transaction."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE entries (seq INTEGER PRIMARY KEY, line BLOB)")
    return lambda line: database.execute("INSERT INTO entries (line) VALUES (?)", (line,))


def _rss_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
