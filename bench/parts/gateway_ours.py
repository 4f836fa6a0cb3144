"""The gateway as runs have it, on a real journal: a number on standard input opens a door for each of as many attempts.

    python bench/parts/gateway_ours.py UPSTREAM_PORT FOLDER

Prints their ports, and their tokens, on one line, divided by commas. The next line on standard input, whatever it is,
ends these attempts; it ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import sys
from pathlib import Path

from proctor.budget.authority import Authority
from proctor.budget.ceiling import Limits, ModelLimits
from proctor.core.clock import SystemClock
from proctor.core.collecting import collect_seldom
from proctor.core.ids import attempt_id, new_run_id
from proctor.core.money import ZERO, Usd
from proctor.core.prices import PriceRow, Prices
from proctor.core.tokens import seal_admitted
from proctor.evidence.fold import RunState
from proctor.evidence.journal import Journal
from proctor.evidence.keys import load_or_create
from proctor.evidence.kinds import Kind
from proctor.evidence.lock import Lock, opening
from proctor.evidence.reader import read_entries
from proctor.evidence.runfolder import RunFolder
from proctor.gateway.gateway import Gateway
from proctor.rollout.record import Record
from proctor.study.design import ModelDesign

_CAP = Usd.parse("1000000")
_NO_FILE = {"path": "manifests/0001.json", "sha256": "0" * 64}
_PRICE = Prices("made up", tuple(PriceRow(bucket, 0, "2.000000000000") for bucket in ("input", "output", "reasoning")))


def _model(upstream: int) -> ModelDesign:
    return ModelDesign(
        name="m",
        provider="openai",
        model="gpt-x",
        api="chat",
        base_url=f"http://127.0.0.1:{upstream}/v1",
        effort=None,
        max_output_tokens=1_000,
        request_timeout_sec=60,
        api_key_env="BENCH_KEY",
        rpm=None,
        tpm=None,
        price=_PRICE,
    )


async def _journal(run: RunFolder) -> tuple[Journal, str]:
    key, _ = load_or_create(run.path / "key")
    run_id = new_run_id()
    first = {
        "format": 1,
        "run_id": run_id,
        "study": "bench",
        "stage": "main",
        "manifest": _NO_FILE,
        "design_sha256": "0" * 64,
        "abandoned": [],
        "opening": opening(),
        "key": {"vkey": key.vkey, "fingerprint": key.fingerprint},
        "planned": {"trials": 1, "blocks": 1},
    }
    lock = Lock.acquire(run, extra={})
    return await Journal.create(run, lock=lock, key=key, run_id=run_id, first=(Kind.RUN_ADMITTED, first)), run_id


def _attempt(journal: Journal, run: RunFolder, number: int) -> tuple[str, Record]:
    trial = hashlib.sha256(str(number).encode()).hexdigest()[:16]
    attempt = attempt_id(trial, 0)
    folder = f"trials/{trial}/0"
    record = Record(journal, run, attempt, folder)
    record.post(
        Kind.ATTEMPT_ADMITTED,
        trial=trial,
        number=0,
        block=0,
        task="bench",
        model="m",
        arm="baseline",
        epoch=1,
        folder=folder,
        supersedes=None,
        replaces=None,
    )
    return attempt, record


def _listening() -> socket.socket:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.listen(1024)
    sock.setblocking(False)
    return sock


async def _main(upstream: int, path: Path) -> None:
    run = RunFolder(path)
    run.create()
    journal, run_id = await _journal(run)
    token = seal_admitted(run_id=run_id, run_dir=path, design_sha256="0" * 64, label="proctor-bench")
    limits = Limits(ZERO, _CAP, ZERO, {"m": ModelLimits(_CAP, ZERO)})
    authority = Authority(token, limits, journal, RunState.of(read_entries(run.journal_path)))
    await authority.admit_block(0, "bench", "m", 1)
    gateway = Gateway(token, {"BENCH_KEY": "sk-bench-" + os.urandom(12).hex()}, SystemClock())
    model = _model(upstream)
    number = 0
    while line := await asyncio.to_thread(sys.stdin.readline):
        doors = []
        for _ in range(int(line)):
            attempt, record = _attempt(journal, run, number)
            lease = authority.lease(attempt, 0, "m")
            doors.append((record, await gateway.open(model, lease, record, attempt, _listening())))
            number += 1
        ports = ",".join(opened.door.base_url.rpartition(":")[2] for _, opened in doors)
        print(ports, ",".join(opened.door.token for _, opened in doors), flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        for record, opened in doors:
            await opened.close()
            record.post(Kind.ATTEMPT_ENDED, outcome="completed", exception=None, message=None, timing={})
            await record.settle()
        print("closed", flush=True)
    await gateway.close()
    await journal.close(None)


if __name__ == "__main__":
    # as the command does
    collect_seldom()
    asyncio.run(_main(int(sys.argv[1]), Path(sys.argv[2])))
