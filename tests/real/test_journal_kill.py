"""A writer is killed (-9) again and again; whoever was told that an entry is durable finds it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from journal_parts import ended, reopen
from proctor.evidence.entries import Entry
from proctor.evidence.fold import RunState
from proctor.evidence.kinds import Kind
from proctor.evidence.lock import read_lock
from proctor.evidence.reader import read_blob, read_entries
from proctor.evidence.runfolder import RunFolder

pytestmark = pytest.mark.real

TESTS = Path(__file__).resolve().parents[1]
KILLS = int(os.environ.get("PROCTOR_JOURNAL_KILLS", "20"))

WRITER = """
import asyncio, itertools, json, os, sys
from pathlib import Path
from journal_parts import agent_started, attempt_admitted, attempt_ended, boundary, create, reopen
from proctor.evidence.kinds import Kind
from proctor.evidence.runfolder import RunFolder

path, opening = Path(sys.argv[1]), int(sys.argv[2])

def say(*words):
    os.write(1, json.dumps(words).encode() + b"\\n")

async def lane(run, journal, name):
    for number in itertools.count():
        task = f"{opening}-{name}-{number}"
        body = attempt_admitted(task)
        attempt = body["attempt"]
        async def append(kind, body, content=None):
            blobs = None if content is None else {"instruction": content}
            seq = await journal.append(kind, body, blobs=blobs)
            say(seq, kind.id, attempt, None if content is None else content.decode())
        await append(Kind.ATTEMPT_ADMITTED, body)
        run.write_atomic(f"{body['folder']}/agent/log.txt", task.encode())
        await append(Kind.AGENT_STARTED, agent_started(attempt), f"instruction {task} ".encode() * (number % 50))
        await append(Kind.ATTEMPT_BOUNDARY, boundary(attempt))
        await append(Kind.ATTEMPT_ENDED, attempt_ended(attempt))

async def main():
    say("opening")
    admitted = RunFolder(path).is_admitted()
    run, journal = await (reopen(path) if admitted else create(path))
    say("open")
    await asyncio.gather(*(lane(run, journal, name) for name in range(16)))

asyncio.run(main())
"""


def _run_until_killed(path: Path, opening: int, acknowledgements: int) -> list[list[str]]:
    """What the writer said before it was killed, at the latest just after it said so much."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])}
    command = [sys.executable, "-c", WRITER, str(path), str(opening)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(acknowledgements)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
        assert process.wait(timeout=600) == -signal.SIGKILL
    # The last word may be cut: then it was not said.
    return [json.loads(line) for line in said if line.endswith(b"\n")]


def test_nothing_acknowledged_is_lost_to_kills(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    acknowledged: dict[int, list[str]] = {}
    words = [chance.randint(1, chance.choice([1, 2, 5, 50, 500])) for _ in range(KILLS)]
    # one at least says more than all that is wanted of them
    words[chance.randrange(KILLS)] = 50 + 2 * KILLS
    for opening, many in enumerate(words):
        for word in _run_until_killed(tmp_path, opening, many):
            if isinstance(word[0], int):
                assert word[0] not in acknowledged
                acknowledged[word[0]] = word
        assert not read_lock(RunFolder(tmp_path)).live
    entries = asyncio.run(_ended(tmp_path))
    assert len(acknowledged) > KILLS
    for seq, (_, kind, attempt, content) in acknowledged.items():
        entry = entries[seq]
        assert isinstance(entry.kind, Kind)
        assert (entry.kind.id, entry.body["attempt"]) == (kind, attempt)
        if content is not None:
            assert read_blob(RunFolder(tmp_path), entry.body["instruction"]) == content.encode()
    state = RunState.of(entries)
    assert (state.open, state.ended) == ({}, ended())
    _check_files(tmp_path, {entry.body["path"] for entry in entries if entry.kind is Kind.CHECKPOINT_MADE})


async def _ended(path: Path) -> list[Entry]:
    run, journal = await reopen(path)
    await journal.close(ended())
    return list(read_entries(run.journal_path))


def _check_files(path: Path, named: set[str]) -> None:
    run = RunFolder(path)
    standing = {run.relative(note) for note in run.checkpoints.iterdir() if not note.name.startswith(".")}
    assert len(standing - named) == 1
    recovered = [e.body for e in read_entries(run.journal_path) if e.kind is Kind.RUN_RECOVERED]
    set_aside = {item["path"]: item["sha256"] for body in recovered for item in body["quarantined"]}
    stands = [file for file in run.quarantine.rglob("*") if file.is_file()]
    assert {run.relative(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in stands} == set_aside
