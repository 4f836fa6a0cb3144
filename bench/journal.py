"""Journal throughput: entries a second by number of waiters, beside bare fdatasync appends of the same lines.

Run as `PYTHONPATH=src python bench/journal.py [FOLDER]`; FOLDER (default: a temporary one) is on the disk to measure.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import tempfile
import time
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
BARE_APPENDS = 2_000
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
    await _journal(folder / "warm", 64, 1_000)
    for waiters, entries in ENTRIES.items():
        before = _rss_kib()
        rate, run = await _journal(folder / f"run-{waiters}", waiters, entries)
        grown = _rss_kib() - before
        line_bytes = run.journal_path.stat().st_size // entries
        bare = _bare(folder / "bare", line_bytes)
        print(
            f"{waiters:3} waiters: {rate:9,.0f} entries/s of {line_bytes} bytes; {rate / bare:6.1f} times one bare "
            f"write + fdatasync each ({bare:,.0f}/s); peak memory +{grown:,} KiB in {entries:,} entries"
        )
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


def _bare(path: Path, line_bytes: int) -> float:
    line = b"x" * (line_bytes - 1) + b"\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        started = time.perf_counter()
        for _ in range(BARE_APPENDS):
            os.write(descriptor, line)
            os.fdatasync(descriptor)
        return BARE_APPENDS / (time.perf_counter() - started)
    finally:
        os.close(descriptor)


def _rss_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
