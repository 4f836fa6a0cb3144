"""An attestation of a run that is over: verified by the second program first, timestamped where that is asked for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor import __version__
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.attestation import Timestamp, Verified, read_ended, sealed, statement
from proctor.evidence.keys import OperatorKey
from proctor.evidence.lock import read_lock
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.timestamps import Stamped, roots_of, stamp
from proctor.runner.verifying import NoReport, report_of, second_program

_FINE = frozenset({"pass", "not applicable"})


@dataclass(frozen=True)
class TimestampAuthority:
    """Who gives the time: its address, and a PEM file of the certificates that its answer must lead to."""

    url: str
    roots: Path


@dataclass(frozen=True)
class Attestation:
    """What was made: the statement, the envelope's bytes, and the timestamp where one was asked for."""

    said: dict[str, Any]
    envelope: bytes
    stamped: Stamped | None


def attest(run: RunFolder, key: OperatorKey, authority: TimestampAuthority | None = None) -> Attestation:
    """Attest a run of one's own that is over and holds.

    Raises:
        Refusal: `run_locked` while it is written, `evidence_damaged` where it did not end or does not hold (by another
            key, too), `timestamp_failed`, `extra_missing`, `evidence_unreadable`, `run_not_found`.
    """
    lock = read_lock(run)
    if lock.live:
        raise Refusal(Reason.RUN_LOCKED, f"process {lock.pid} on {lock.host} writes this run", path=str(run.path))
    # before anything in it is believed
    verified = _verified(run, key)
    ended = read_ended(run)
    stamped = _stamped(ended.note, authority) if authority is not None else None
    timestamp = None
    if stamped is not None:
        digest = hashlib.sha256(stamped.answer).hexdigest()
        timestamp = Timestamp(stamped.time.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), digest)
    said = statement(ended, verified, timestamp, key)
    return Attestation(said, sealed(said, key), stamped)


def _stamped(note: bytes, authority: TimestampAuthority) -> Stamped:
    try:
        pem = authority.roots.read_bytes()
    except OSError as error:
        message = f"the file of root certificates cannot be read: {error.strerror or error}"
        raise Refusal(Reason.TIMESTAMP_FAILED, message, path=str(authority.roots)) from error
    return stamp(note, authority.url, roots_of(pem, str(authority.roots)))


def _verified(run: RunFolder, key: OperatorKey) -> Verified:
    try:
        status, report = report_of(second_program(run.path, key.fingerprint, as_json=True))
    except NoReport as error:
        message = "the second program made no report"
        raise Refusal(Reason.EVIDENCE_UNREADABLE, message, path=str(run.path), observed=error.said) from error
    checks = {check["check"]: check["status"] for check in report["checks"]}
    bad = sorted(check for check, status in checks.items() if status not in _FINE)
    if status != 0 or bad:
        raise Refusal(
            Reason.EVIDENCE_DAMAGED,
            "the run does not hold by your key, and what does not hold is not attested",
            path=str(run.path),
            observed=report["unreadable"] or bad,
            remedy="See `proctor verify RUN --key …`; only who signed a run attests it.",
        )
    return Verified(__version__, checks, tuple(report["synthetic"]), report["scope"]["selection"])
