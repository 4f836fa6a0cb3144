"""What an operator attests of a run that is over: an in-toto Statement, and the DSSE envelope around it.

The envelope is made by securesystemslib, of the extra `attest`. `docs/evidence-format.md`, section 13, has the fields.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from proctor.core.canonical import encode
from proctor.core.extras import require_extra
from proctor.evidence import notes
from proctor.evidence.anchors.receipts import Anchored, anchored
from proctor.evidence.checkpoints import name_of
from proctor.evidence.disk import open_regular, unreadable
from proctor.evidence.entries import JOURNAL, damaged
from proctor.evidence.keys import OperatorKey
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_entries
from proctor.evidence.runfolder import FileRef, RunFolder

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:proctor:run:v1"


@dataclass(frozen=True)
class Ended:
    """A run that is over, as far as it is attested. `files` are the subjects, `note` is the checkpoint over all."""

    run_id: str
    study: str
    stage: str
    complete: bool
    totals: Mapping[str, int]
    files: tuple[FileRef, ...]
    head: notes.Checkpoint
    note: bytes
    anchored: tuple[Anchored, ...]


@dataclass(frozen=True)
class Verified:
    """What the second program said: its version, how each check came out, which models are made up, and what was
    selected of the stage (None where nothing was).
    """

    version: str
    checks: Mapping[str, str]
    synthetic: tuple[str, ...]
    selection: Mapping[str, Any] | None


@dataclass(frozen=True)
class Timestamp:
    """A timestamp over the checkpoint: the authority's time (RFC 3339), and the file that proves it."""

    time: str
    sha256: str


def read_ended(run: RunFolder) -> Ended:
    """What is attested of a run.

    Raises:
        Refusal: `evidence_damaged` where it did not end, or no checkpoint covers all of it; `run_not_found`,
            `evidence_unreadable`.
    """
    first: Mapping[str, Any] | None = None
    last, size = None, 0
    for entry in read_entries(run.journal_path, validate=False):
        first = first if first is not None else entry.body
        last, size = entry, size + 1
    if first is None or last is None or last.kind is not Kind.RUN_ENDED:
        raise damaged("the run did not end", JOURNAL)
    checkpoint = f"checkpoints/{name_of(size)}"
    try:
        note = _read(run, checkpoint)
        files = [_digest(run, path) for path in ("design.json", *_derived(last.body))]
        run_id, study, stage = str(first["run_id"]), str(first["study"]), str(first["stage"])
    except FileNotFoundError as error:
        name = str(error.filename).removeprefix(f"{run.path}/")
        raise damaged("a file is missing that a run which is over has", name) from error
    except OSError as error:
        raise unreadable("a file of the run", str(run.path), error) from error
    except (KeyError, TypeError) as error:
        raise damaged(f"an entry's body cannot be understood: {error!r}", JOURNAL) from error
    head = notes.Checkpoint.parse(notes.parse(note).text)
    subjects = (files[0], FileRef.of(checkpoint, note), *files[1:])
    totals, complete = last.body["totals"], last.body["complete"]
    return Ended(run_id, study, stage, complete, totals, subjects, head, note, anchored(run, size))


def statement(ended: Ended, verified: Verified, timestamp: Timestamp | None, key: OperatorKey) -> dict[str, Any]:
    """The in-toto Statement, v1."""
    predicate = {
        "format": 1,
        "run_id": ended.run_id,
        "study": ended.study,
        "stage": ended.stage,
        "selection": None if verified.selection is None else dict(verified.selection),
        "complete": ended.complete,
        "totals": dict(ended.totals),
        "synthetic": list(verified.synthetic),
        "checkpoint": ended.head.as_record(),
        "verification": {"version": verified.version, "checks": dict(verified.checks)},
        "anchored": list(ended.anchored),
        "timestamp": None if timestamp is None else asdict(timestamp),
        "vkey": key.vkey,
    }
    subjects = [{"name": file.path, "digest": {"sha256": file.sha256}} for file in ended.files]
    return {"_type": STATEMENT_TYPE, "subject": subjects, "predicateType": PREDICATE_TYPE, "predicate": predicate}


def sealed(said: Mapping[str, Any], key: OperatorKey) -> bytes:
    """The DSSE envelope over a statement, as canonical JSON, signed by the key under its fingerprint.

    Raises:
        Refusal: `extra_missing` where securesystemslib is not installed.
    """
    dsse, signer = (of_the_extra(f"securesystemslib.{name}", "securesystemslib") for name in ("dsse", "signer"))
    public = signer.SSlibKey.from_crypto(key.private.public_key(), keyid=key.fingerprint)
    envelope = dsse.Envelope(encode(dict(said)), PAYLOAD_TYPE, {})
    envelope.sign(signer.CryptoSigner(key.private, public))
    return encode(envelope.to_dict())


def of_the_extra(module: str, package: str) -> Any:
    """A module of the extra `attest`. Raises the Refusal `extra_missing` where it is not installed."""
    return require_extra(module, package, "attest", does="attestations are made with", path="proctor attest")


def _derived(body: Mapping[str, Any]) -> Sequence[str]:
    return sorted(str(file["path"]) for file in body["files"])


def _read(run: RunFolder, path: str) -> bytes:
    with open_regular(run.path / path) as file:
        return file.read(notes.MAX_NOTE_BYTES + 1)


def _digest(run: RunFolder, path: str) -> FileRef:
    with open_regular(run.path / path) as file:
        return FileRef(path, hashlib.file_digest(file, "sha256").hexdigest(), file.tell())
