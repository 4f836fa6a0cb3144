"""Six processes want one journal at once: each waits for its turn or is refused; some are killed; nothing is lost."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from journal_parts import KEY, ended, reopen
from proctor.evidence.fold import RunState
from proctor.evidence.kinds import Kind
from proctor.evidence.lock import read_lock
from proctor.evidence.reader import read_blob, read_entries
from proctor.evidence.runfolder import RunFolder
from proctor_verify import verify

pytestmark = pytest.mark.real

TESTS = Path(__file__).resolve().parents[1]
WRITERS = 6
KILLS = int(os.environ.get("PROCTOR_WRITER_KILLS", "15"))
# After so many words the writers are asked to end, once there were enough kills.
WORDS = 1_500

# Told over one pipe: a line that is shorter than a pipe's buffer comes whole.
WRITER = """
import asyncio, fcntl, json, os, random, sys
from pathlib import Path
from journal_parts import KEY, RUN_ID, admitted, agent_started, attempt_admitted, attempt_ended, ended, resumed
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.journal import Journal
from proctor.evidence.kinds import Kind
from proctor.evidence.lock import Lock
from proctor.evidence.runfolder import RunFolder

path, pipe, stop = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
chance = random.Random(os.getpid())

def say(*words):
    os.write(pipe, json.dumps([os.getpid(), *words]).encode() + b"\\n")

async def lane(journal, name, many):
    for number in range(many):
        body = attempt_admitted(f"{os.getpid()}-{name}-{number}")
        async def append(kind, body, content=None):
            blobs = None if content is None else {"instruction": content}
            seq = await journal.append(kind, body, blobs=blobs)
            say("durable", seq, kind.id, body["attempt"], None if content is None else content.decode())
        await append(Kind.ATTEMPT_ADMITTED, body)
        text = f"instruction {body['attempt']} ".encode() * chance.randint(1, 40)
        await append(Kind.AGENT_STARTED, agent_started(body["attempt"]), text)
        await append(Kind.ATTEMPT_ENDED, attempt_ended(body["attempt"]))

async def turn(run, lock):
    if run.is_admitted():
        journal = await Journal.reopen(run, lock=lock, key=KEY, resumed_body=resumed())
    else:
        journal = await Journal.create(run, lock=lock, key=KEY, run_id=RUN_ID, first=(Kind.RUN_ADMITTED, admitted()))
    say("open")
    await asyncio.gather(*(lane(journal, f"{chance.random()}-{name}", chance.randint(1, 4)) for name in range(8)))
    await journal.close(ended() if chance.random() < 0.5 else None)

while not stop.exists():
    run = RunFolder(path)
    run.create()
    try:
        lock = Lock.acquire(run, extra={})
    except Refusal as refusal:
        assert refusal.reason is Reason.RUN_LOCKED, refusal
        say("refused")
        with run.lock_path.open() as held:
            fcntl.flock(held, fcntl.LOCK_SH)  # returns when whoever writes has let go
        continue
    try:
        asyncio.run(turn(run, lock))
    finally:
        lock.release()
"""


def test_six_writers(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    path, stop = tmp_path / "run", tmp_path / "stop"
    reads, writes = os.pipe()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])}

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", WRITER, str(path), str(writes), str(stop)]
        return subprocess.Popen(command, env=environment, pass_fds=[writes], stderr=subprocess.PIPE)

    writers = [start() for _ in range(WRITERS)]
    acknowledged: dict[int, list[str]] = {}
    said: dict[str, int] = {"open": 0, "refused": 0, "durable": 0}
    kills, next_kill, words = 0, chance.randint(1, 60), 0
    try:
        with os.fdopen(reads, "rb") as told:
            for line in told:
                pid, word, *more = json.loads(line)
                words += 1
                said[word] += 1
                if word == "durable":
                    assert more[0] not in acknowledged, "two writers were given one place"
                    acknowledged[more[0]] = more
                if kills < KILLS and words >= next_kill:
                    # whoever spoke last is most often the one who writes
                    at = next((n for n, each in enumerate(writers) if each.pid == pid), 0)
                    at = at if chance.random() < 0.7 else chance.randrange(WRITERS)
                    _kill(writers[at])
                    writers[at] = start()
                    kills, next_kill = kills + 1, words + chance.randint(1, 120)
                elif kills == KILLS and words >= WORDS and not stop.exists():
                    stop.touch()
                    os.close(writes)
        for writer in writers:
            _, errors = writer.communicate(timeout=600)
            assert writer.returncode == 0, errors.decode()
    finally:
        for writer in writers:
            _kill(writer)
    print(f"{said}, {kills} kills")
    assert min(said.values()) > 0 and kills == KILLS
    _check(path, acknowledged)


def _kill(writer: subprocess.Popen[bytes]) -> None:
    if writer.poll() is None:
        writer.send_signal(signal.SIGKILL)
    writer.communicate(timeout=600)


def _check(path: Path, acknowledged: dict[int, list[str]]) -> None:
    run = RunFolder(path)
    assert not read_lock(run).live
    asyncio.run(_ended(path))
    entries = list(read_entries(run.journal_path))
    seen = [(entry.kind.id, entry.body["attempt"]) for entry in entries if _is_a_writers(entry.kind)]
    assert len(set(seen)) == len(seen)
    for seq, (_, kind, attempt, content) in acknowledged.items():
        entry = entries[seq]
        assert isinstance(entry.kind, Kind) and (entry.kind.id, entry.body["attempt"]) == (kind, attempt)
        if content is not None:
            assert read_blob(run, entry.body["instruction"]) == content.encode()
    assert RunState.of(entries).open == {}
    failed = verify(path, KEY.fingerprint).failed()
    assert [check for check in failed if check.startswith(("journal.", "checkpoints.", "key.", "packs."))] == []


def _is_a_writers(kind: Kind | str) -> bool:
    return kind in (Kind.ATTEMPT_ADMITTED, Kind.AGENT_STARTED, Kind.ATTEMPT_ENDED)


async def _ended(path: Path) -> None:
    _, journal = await reopen(path)
    await journal.close(ended())
