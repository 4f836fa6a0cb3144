"""Bodies of entries and openers of journals, for tests of whatever stands on a journal."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from proctor.core.clock import Clock
from proctor.core.ids import attempt_id, trial_folder, trial_id
from proctor.evidence.disk import Disk
from proctor.evidence.journal import Journal
from proctor.evidence.keys import OperatorKey
from proctor.evidence.kinds import Kind
from proctor.evidence.lock import Lock, opening
from proctor.evidence.notes import VerifierKey
from proctor.evidence.runfolder import RunFolder

_PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
KEY = OperatorKey(VerifierKey("test-operator", _PRIVATE.public_key().public_bytes_raw()), _PRIVATE)
RUN_ID = "a" * 26
EMPTY = hashlib.sha256(b"{}").hexdigest()
MANIFEST = {"path": "manifests/0001.json", "sha256": EMPTY}


def admitted(planned: int = 1) -> dict[str, Any]:
    return {
        "format": 1,
        "run_id": RUN_ID,
        "study": "study",
        "stage": "stage",
        "manifest": MANIFEST,
        "design_sha256": EMPTY,
        "abandoned": [],
        "opening": opening(),
        "key": {"vkey": KEY.vkey, "fingerprint": KEY.fingerprint},
        "planned": {"trials": planned, "blocks": planned},
    }


def resumed() -> dict[str, Any]:
    key = {"vkey": KEY.vkey, "fingerprint": KEY.fingerprint}
    return {"manifest": MANIFEST, "abandoned": [], "opening": opening(), "key": key}


def ended(**changes: Any) -> dict[str, Any]:
    totals = {"trials": 1, "finals": 0, "pass": 0, "fail": 0, "ungraded": 0}
    return {"exit_status": 4, "reason": None, "complete": False, "totals": totals, "files": [], **changes}


def attempt_admitted(task: str = "task", number: int = 0, **changes: Any) -> dict[str, Any]:
    trial = trial_id(task, None, "base", 1)
    return {
        "attempt": attempt_id(trial, number),
        "trial": trial,
        "number": number,
        "block": 0,
        "task": task,
        "model": None,
        "arm": "base",
        "epoch": 1,
        "folder": f"trials/{trial_folder(task, None, 'base', 1)}/{number}",
        "supersedes": None,
        "replaces": None,
        **changes,
    }


def attempt_ended(attempt: str, outcome: str = "completed", exception: str | None = None) -> dict[str, Any]:
    return {"attempt": attempt, "outcome": outcome, "exception": exception, "message": None, "timing": {}}


def boundary(attempt: str) -> dict[str, Any]:
    return {"attempt": attempt, "boundary": "env-ready"}


def agent_started(attempt: str) -> dict[str, Any]:
    """All but `instruction`, which is a blob."""
    version = {"available": False, "value": None, "reason": "none"}
    return {
        "attempt": attempt,
        "agent": "nop",
        "version": version,
        "settings": {},
        "skills": [],
        "timeout_sec": None,
    }


async def create(path: Path, *, disk: Disk | None = None, clock: Clock | None = None) -> tuple[RunFolder, Journal]:
    run = RunFolder(path, disk=disk)
    run.create()
    lock = Lock.acquire(run, extra={})
    try:
        first = (Kind.RUN_ADMITTED, admitted())
        return run, await Journal.create(run, lock=lock, key=KEY, run_id=RUN_ID, first=first, clock=clock)
    except BaseException:
        lock.release()
        raise


def write_empty(run: RunFolder) -> None:
    """The design and the manifest that `admitted` names."""
    for name in ("design.json", "manifests/0001.json"):
        run.write_atomic(name, b"{}")


async def reopen(path: Path, *, disk: Disk | None = None, clock: Clock | None = None) -> tuple[RunFolder, Journal]:
    run = RunFolder(path, disk=disk)
    lock = Lock.acquire(run, extra={})
    try:
        return run, await Journal.reopen(run, lock=lock, key=KEY, resumed_body=resumed(), clock=clock)
    except BaseException:
        lock.release()
        raise
