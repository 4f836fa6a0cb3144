"""What an attestation is: a DSSE envelope around an in-toto Statement about a run, with exactly the fields of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from proctor_verify import notes
from proctor_verify.design_parts import SELECTION
from proctor_verify.elsewhere import NOTHING, Asked
from proctor_verify.errors import Unreadable
from proctor_verify.report import Report, Status
from proctor_verify.schema import RUN_ID
from proctor_verify.scope import Scope
from proctor_verify.shapes import (
    COUNT,
    FLAG,
    FROM_ONE,
    SHA256,
    TEXT,
    TIME,
    Shape,
    list_of,
    or_null,
    record,
    where,
    with_optional,
)
from proctor_verify.standalone import MAX_BYTES
from proctor_verify.strictbase64 import decoded
from proctor_verify.strictjson import loads
from proctor_verify.trial_receipts import ANCHORED

START = b"{"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:proctor:run:v1"
MAX_SIGNATURES = 64

_STATUSES = frozenset(status.value for status in Status)
_ENVELOPE = record(
    payload=TEXT,
    payloadType=Shape(PAYLOAD_TYPE, lambda v: v == PAYLOAD_TYPE),
    signatures=where(
        list_of(record(keyid=TEXT, sig=TEXT)), f"1 to {MAX_SIGNATURES} of them", lambda v: 1 <= len(v) <= MAX_SIGNATURES
    ),
)
_TOTALS = record(**{"trials": COUNT, "finals": COUNT, "pass": COUNT, "fail": COUNT, "ungraded": COUNT})
_CHECKS = Shape(
    "an object of how checks came out",
    lambda v: type(v) is dict and all(type(each) is str and each in _STATUSES for each in v.values()),
)
# those that were made before there was a `selection` are without it
_PREDICATE = with_optional(
    record(
        format=Shape("1", lambda v: type(v) is int and v == 1),
        run_id=RUN_ID,
        study=TEXT,
        stage=TEXT,
        complete=FLAG,
        totals=_TOTALS,
        synthetic=list_of(TEXT),
        checkpoint=record(origin=TEXT, size=FROM_ONE, root=SHA256),
        verification=record(version=TEXT, checks=_CHECKS),
        anchored=ANCHORED,
        timestamp=or_null(record(time=TIME, sha256=SHA256)),
        vkey=TEXT,
    ),
    selection=or_null(SELECTION),
)
_SUBJECTS = where(
    list_of(record(name=TEXT, digest=record(sha256=SHA256))),
    "each name once",
    lambda v: len({each["name"] for each in v}) == len(v) > 0,
)
_STATEMENT = record(
    _type=Shape(STATEMENT_TYPE, lambda v: v == STATEMENT_TYPE),
    subject=_SUBJECTS,
    predicateType=Shape(PREDICATE_TYPE, lambda v: v == PREDICATE_TYPE),
    predicate=_PREDICATE,
)


@dataclass(frozen=True)
class Attestation:
    """An attestation that could be read, who is trusted, and what it is held against.

    `run` is the folder that was named, `found` what a verification of it says; both are None where none was named.
    """

    signed: bytes
    signatures: tuple[bytes, ...]
    subjects: dict[str, str]
    said: dict[str, Any]
    key: notes.Key
    trust: notes.TrustRoot | None
    run: str | None
    asked: Asked = NOTHING
    found: Report | None = None

    @property
    def scope(self) -> Scope:
        """How much of its stage the run is of: as the run at hand has it, else as is said."""
        totals = self.said["totals"]
        of_run = self.found.scope if self.found is not None else None
        selection = of_run.selection if of_run is not None else self.said.get("selection")
        return Scope(selection, totals["trials"], totals["finals"])


def read_attestation(data: bytes, trust: notes.TrustRoot | None, run: str | None) -> Attestation:
    """Take an envelope and its statement apart.

    Raises:
        Unreadable: it is none.
    """
    envelope = loads(data, max_bytes=MAX_BYTES)
    if not _ENVELOPE.holds(envelope):
        raise Unreadable(f"the envelope is not {_ENVELOPE.words}")
    payload = decoded(envelope["payload"])
    said = loads(payload, max_bytes=MAX_BYTES)
    if not _STATEMENT.holds(said):
        raise Unreadable("the statement is not an in-toto Statement about a run, with exactly its fields")
    return Attestation(
        b"DSSEv1 %d %b %d %b" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload),
        tuple(decoded(each["sig"]) for each in envelope["signatures"]),
        {each["name"]: each["digest"]["sha256"] for each in said["subject"]},
        said["predicate"],
        notes.verifier_key(said["predicate"]["vkey"]),
        trust,
        run,
    )
