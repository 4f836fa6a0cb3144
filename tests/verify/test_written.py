"""What the first program's journal writes, crashes and recoveries included, the second program finds in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from designs import make_design
from primitives import canonical, drawn_order, sha256

from proctor.core.ids import attempt_id, trial_folder, trial_id
from proctor.evidence.journal import Journal
from proctor.evidence.keys import OperatorKey
from proctor.evidence.kinds import Kind
from proctor.evidence.lock import Lock, opening
from proctor.evidence.notes import VerifierKey
from proctor.evidence.runfolder import RunFolder
from proctor_verify import Status, verify

_PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
KEY = OperatorKey(VerifierKey("test-operator", _PRIVATE.public_key().public_bytes_raw()), _PRIVATE)
DESIGN = make_design(tasks=3, arms=2, epochs=1)
RUN_ID = "r" * 26
LARGE = bytes(range(256)) * 5000


def _manifest(run: RunFolder) -> dict[str, str]:
    head: dict[str, Any] = {
        "format": 1,
        "command": "run",
        "requested": {},
        "started": "2031-01-01T00:00:00.000000Z",
        "verdict": "pending",
        "exit_status": None,
        "refusals": [],
        "waivers": {"requested": [], "used": []},
        "probes": {},
        "design_sha256": sha256(canonical(DESIGN)),
    }
    return run.new_manifest(head).rewrite({**head, "verdict": "admitted"}).named()


def _opened(run: RunFolder) -> dict[str, Any]:
    key = {"vkey": KEY.vkey, "fingerprint": KEY.fingerprint}
    return {"manifest": _manifest(run), "abandoned": [], "opening": opening(), "key": key}


async def _create(path: Path) -> tuple[RunFolder, Journal]:
    run = RunFolder(path)
    run.create()
    lock = Lock.acquire(run, extra={})
    run.write_atomic("design.json", canonical(DESIGN))
    first = {
        **_opened(run),
        "format": 1,
        "run_id": RUN_ID,
        "study": "story",
        "stage": "main",
        "design_sha256": sha256(canonical(DESIGN)),
        "planned": {"trials": 6, "blocks": 3},
    }
    return run, await Journal.create(run, lock=lock, key=KEY, run_id=RUN_ID, first=(Kind.RUN_ADMITTED, first))


async def _reopen(path: Path) -> tuple[RunFolder, Journal]:
    run = RunFolder(path)
    lock = Lock.acquire(run, extra={})
    return run, await Journal.reopen(run, lock=lock, key=KEY, resumed_body=_opened(run))


async def _start(run: RunFolder, journal: Journal, index: int, number: int, content: bytes) -> str:
    """Admits an attempt that supersedes the one before, starts its agent, and leaves a file that no entry names."""
    (task, _, epoch), [arm, _] = drawn_order(DESIGN)[index]
    trial = trial_id(task, None, arm, epoch)
    attempt, folder = attempt_id(trial, number), f"trials/{trial_folder(task, None, arm, epoch)}/{number}"
    of_block = {"block": index, "task": task, "model": None, "epoch": epoch}
    await journal.append(Kind.BLOCK_ADMITTED, {**of_block, "reserve": None})
    before = {"supersedes": attempt_id(trial, number - 1) if number else None, "replaces": None}
    body = {"attempt": attempt, "trial": trial, "number": number, "arm": arm, "folder": folder}
    await journal.append(Kind.ATTEMPT_ADMITTED, {**of_block, **body, **before})
    (run.path / folder).mkdir(parents=True)
    (run.path / folder / "stdout.log").write_bytes(content[:100])
    world = {"role": "agent", "from_snapshot": False, "limits": [], "base_substituted": None}
    there = {"facts": {"kind": "namespace", "network": "none"}}
    await journal.append(Kind.SANDBOX_STARTED, {"attempt": attempt, **world, **there})
    facts = {
        "attempt": attempt,
        "agent": "oracle",
        "version": {"available": False, "value": None, "reason": "none"},
        "settings": {},
        "skills": [],
        "timeout_sec": 60,
    }
    await journal.append(Kind.AGENT_STARTED, facts, blobs={"instruction": content})
    return attempt


def _ended() -> dict[str, Any]:
    totals = {"trials": 6, "finals": 0, "pass": 0, "fail": 0, "ungraded": 0}
    return {"exit_status": 4, "reason": "stage_deadline", "complete": False, "totals": totals, "files": []}


async def _end(journal: Journal) -> None:
    await journal.append(Kind.RUN_DRAINING, {"cause": "deadline"})
    await journal.close(_ended())


def _die(run: RunFolder, tail: bytes) -> None:
    """Leaves the beginning of a line and of a frame, and a blob that no entry names, as a crash does."""
    for path in (run.journal_path, sorted(run.packs.iterdir())[-1]):
        with path.open("ab") as file:
            file.write(tail)
    stray = run.blobs / "00" / ("0" * 64)
    stray.parent.mkdir(parents=True, exist_ok=True)
    stray.write_bytes(tail)


def _holds(run: RunFolder) -> bool:
    report = verify(run.path, KEY.fingerprint)
    assert [result for result in report.results if result.status in (Status.FAIL, Status.CANNOT_TELL)] == []
    return report.exit_status == 0


async def test_a_run_that_ended_twice(tmp_path: Path) -> None:
    run, journal = await _create(tmp_path)
    await _end(journal)
    assert _holds(run)
    run, journal = await _reopen(tmp_path)
    await journal.append(Kind.RUN_PAUSED, {})
    await _end(journal)
    assert _holds(run)


async def test_a_run_that_ended_and_then_got_bytes_that_no_entry_names(tmp_path: Path) -> None:
    run, journal = await _create(tmp_path)
    attempt = await _start(run, journal, 0, 0, b"Do it.\n")
    files = [{"path": "stdout.log", "sha256": sha256(b"Do it.\n"), "size": 7, "role": "source"}]
    await journal.append(Kind.ATTEMPT_FILES, {"attempt": attempt, "files": files})
    end = {"outcome": "interrupted", "exception": "interrupted", "message": None, "timing": {}}
    await journal.append(Kind.ATTEMPT_ENDED, {"attempt": attempt, **end})
    await _end(journal)
    _die(run, b"{")
    run, journal = await _reopen(tmp_path)
    await _end(journal)
    assert _holds(run)
    kinds = [json.loads(line)["kind"] for line in run.journal_path.read_bytes().splitlines()]
    assert kinds[kinds.index("run.resumed") + 1] == "run.recovered"


async def test_a_run_that_died_between_its_derived_files_and_its_end(tmp_path: Path) -> None:
    run, journal = await _create(tmp_path)
    attempt = await _start(run, journal, 0, 0, b"Do it.\n")
    trial, _, number = attempt.partition("/")
    [folder] = run.trials.glob(f"*-{trial[:8]}/{number}")
    (folder / "attempt.json").write_bytes(b"{}")
    files = [{"path": "attempt.json", "sha256": sha256(b"{}"), "size": 2, "role": "derived"}]
    await journal.append(Kind.ATTEMPT_FILES, {"attempt": attempt, "files": files})
    await journal.close(None)
    run, journal = await _reopen(tmp_path)
    await _end(journal)
    assert _holds(run)


@pytest.mark.parametrize("tail", [b"", b"{", b"\0" * 5_000], ids=["whole", "brace", "zeros"])
async def test_a_run_that_died_three_times(tmp_path: Path, tail: bytes) -> None:
    run, journal = await _create(tmp_path)
    contents = [b"Do it.\n", b"Do it at length.\n" * 60, LARGE]
    for number, content in enumerate(contents):
        await _start(run, journal, 0, number, content)
        await journal.close(None)
        open_run = verify(tmp_path, KEY.fingerprint)
        assert set(open_run.failed()) == {"run.ended", "flight.empty"}
        _die(run, tail)
        run, journal = await _reopen(tmp_path)
    await _end(journal)
    assert _holds(run)
    assert len(list(run.packs.iterdir())) == 1 and len([p for p in run.blobs.rglob("*") if p.is_file()]) == 1
