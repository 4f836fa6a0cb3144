"""Attestations of a written run, made from the format's page, and one fault at a time planted in them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from primitives import Body, Signer, canonical, sha256
from proof_plants import STRANGER, b64

TYPE = "application/vnd.in-toto+json"
Alter = Callable[[Body], None]
Seal = Callable[[bytes, Signer], Body]


def statement(run: Path) -> Body:
    """What is true of a run that is over."""
    lines = (run / "journal.jsonl").read_bytes().splitlines()
    first, last = json.loads(lines[0])["body"], json.loads(lines[-1])["body"]
    note = run / f"checkpoints/{len(lines):012d}.note"
    origin, _, root, *_ = note.read_text().split("\n")
    names = ["design.json", f"checkpoints/{note.name}", *(file["path"] for file in last["files"])]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": sha256((run / name).read_bytes())}} for name in names],
        "predicateType": "urn:proctor:run:v1",
        "predicate": {
            "format": 1,
            "run_id": first["run_id"],
            "study": first["study"],
            "stage": first["stage"],
            "selection": json.loads((run / "design.json").read_bytes()).get("selection"),
            "complete": last["complete"],
            "totals": last["totals"],
            "synthetic": [],
            "checkpoint": {"origin": origin, "size": len(lines), "root": base64.b64decode(root).hex()},
            "verification": {"version": "0.1.0", "checks": {"journal.lines": "pass", "packs.frames": "not applicable"}},
            "anchored": [],
            "timestamp": None,
            "vkey": Signer().vkey,
        },
    }


def seal(payload: bytes, signer: Signer, kind: str = TYPE) -> Body:
    """The envelope."""
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind.encode(), len(payload), payload)
    signatures = [{"keyid": "any", "sig": b64(signer.sign(signed))}]
    return {"payload": b64(payload), "payloadType": TYPE, "signatures": signatures}


@dataclass(frozen=True)
class Fault:
    """A fault: the check that must find it, what it is, and where it comes in."""

    check: str
    what: str
    alter: Alter = lambda said: None
    written: Callable[[Body], bytes] = canonical
    seal: Seal = seal
    envelope: Alter = lambda envelope: None
    spoil: Callable[[bytes], bytes] = lambda data: data
    signer: Signer | None = None
    run: bool = False
    spoil_run: Callable[[Path], None] = lambda run: None

    @property
    def id(self) -> str:
        return f"{self.check}: {self.what}"

    def make(self, run: Path) -> bytes:
        said = statement(run)
        self.alter(said)
        envelope = self.seal(self.written(said), self.signer or Signer())
        self.envelope(envelope)
        return self.spoil(canonical(envelope))


def set_(*path: str, to: Any) -> Alter:
    """Another value at a place of the statement, or of the envelope."""

    def alter(said: Body) -> None:
        for name in path[:-1]:
            said = said[name]
        said[path[-1]] = to

    return alter


def told(*path: str, to: Any) -> Alter:
    return set_("predicate", *path, to=to)


def _drop(name: str) -> Alter:
    def alter(said: Body) -> None:
        said["subject"] = [each for each in said["subject"] if not each["name"].startswith(name)]

    return alter


def _digest(nth: int, to: str) -> Alter:
    return lambda said: said["subject"][nth]["digest"].update(sha256=to)


def _also(name: str) -> Alter:
    return lambda said: said["subject"].append({"name": name, "digest": {"sha256": "0" * 64}})


def _both(*alters: Alter) -> Alter:
    def alter(said: Body) -> None:
        for each in alters:
            each(said)

    return alter


def _more_trials(said: Body) -> None:
    said["predicate"]["totals"]["trials"] += 1
    said["predicate"]["complete"] = False


def _an_earlier_head(said: Body) -> None:
    """The checkpoint after the first entry, whose root is that entry's leaf."""
    head = said["predicate"]["checkpoint"]
    old = f"checkpoints/{head['size']:012d}.note"
    head.update(size=EARLIER["size"], root=EARLIER["root"])
    for each in said["subject"]:
        if each["name"] == old:
            each.update(name=EARLIER["name"], digest={"sha256": EARLIER["sha256"]})


EARLIER: Body = {}


def remember(run: Path) -> None:
    """The first checkpoint of the run, for a fault that takes it for the last."""
    note = min((run / "checkpoints").glob("*.note"))
    _, size, root, *_ = note.read_text().split("\n")
    EARLIER.update(
        size=int(size),
        root=base64.b64decode(root).hex(),
        name=f"checkpoints/{note.name}",
        sha256=sha256(note.read_bytes()),
    )


def _kept(run: Path) -> None:
    (run / "scratch").mkdir()
    (run / "scratch/kept").write_bytes(b"kept")


def _and_what_is_kept(said: Body) -> None:
    said["subject"].append({"name": "scratch/kept", "digest": {"sha256": sha256(b"kept")}})


def _flip(run: Path) -> None:
    file = next(path for path in sorted((run / "trials").rglob("stdout.log")))
    file.write_bytes(file.read_bytes() + b"x")


FORM = [
    Fault("attestation.form", "another type of payload", envelope=set_("payloadType", to="text/plain")),
    Fault(
        "attestation.form",
        "a payload with spare bits",
        spoil=lambda data: data.replace(b'"payload":"', b'"payload":"='),
    ),
    Fault("attestation.form", "a field of the envelope too many", envelope=set_("more", to=1)),
    Fault("attestation.form", "no signatures", envelope=set_("signatures", to=[])),
    Fault("attestation.form", "65 signatures", envelope=lambda e: e.update(signatures=e["signatures"] * 65)),
    Fault("attestation.form", "a signature that is no base64", envelope=lambda e: e["signatures"][0].update(sig="*")),
    Fault(
        "attestation.form", "a key twice", spoil=lambda data: data.replace(b'"payload":', b'"payload":"","payload":')
    ),
    Fault("attestation.form", "bytes that are no UTF-8", spoil=lambda data: data[:-1] + b"\xff}"),
    Fault("attestation.form", "more bytes than allowed", spoil=lambda data: data + b" " * 1_048_576),
    Fault("attestation.form", "cut short", spoil=lambda data: data[:-1]),
    Fault("attestation.form", "a payload that is no JSON", written=lambda said: b"{"),
    Fault("attestation.form", "a payload that is deep", written=lambda said: b"[" * 9000 + b"]" * 9000),
    Fault("attestation.form", "a payload with a key twice", written=lambda s: canonical(s)[:-1] + b',"_type":""}'),
    Fault("attestation.form", "an older Statement", set_("_type", to="https://in-toto.io/Statement/v0.1")),
    Fault("attestation.form", "another predicate", set_("predicateType", to="urn:proctor:run:v2")),
    Fault("attestation.form", "no subjects", set_("subject", to=[])),
    Fault("attestation.form", "a subject twice", lambda said: said["subject"].append(said["subject"][0])),
    Fault("attestation.form", "a digest in capitals", _digest(0, "A" * 64)),
    Fault("attestation.form", "a field too many", told("more", to=1)),
    Fault("attestation.form", "a field too few", lambda said: said["predicate"].pop("anchored")),
    Fault("attestation.form", "a total that is a double", told("totals", "trials", to=1.5)),
    Fault("attestation.form", "a check that came out otherwise", told("verification", "checks", to={"a": "well"})),
    Fault("attestation.form", "a selection of no known form", told("selection", to={"limit": 0})),
    Fault("attestation.form", "a key that is none", told("vkey", to="none")),
    Fault("attestation.form", "a time that is none", told("timestamp", to={"time": "now", "sha256": "0" * 64})),
]
SIGNED = [
    Fault("attestation.signed", "another signed it", signer=STRANGER),
    Fault("attestation.signed", "another signed it, whom it names", told("vkey", to=STRANGER.vkey), signer=STRANGER),
    Fault("attestation.signed", "signed as another type", seal=lambda payload, key: seal(payload, key, "text/plain")),
    Fault("attestation.signed", "a short signature", envelope=lambda e: e["signatures"][0].update(sig=b64(b"s" * 63))),
    Fault(
        "attestation.signed",
        "a payload that was changed",
        seal=lambda payload, key: {**seal(payload, key), "payload": b64(payload.replace(b'"0.1.0"', b'"0.1.1"'))},
    ),
]
AGREES = [
    Fault("attestation.agrees", "without the design", _drop("design")),
    Fault("attestation.agrees", "without the checkpoint", _drop("checkpoints/")),
    Fault("attestation.agrees", "a checkpoint of another run", told("checkpoint", "origin", to="proctor/run/x")),
    Fault("attestation.agrees", "totals that do not add up", told("totals", "pass", to=0)),
    Fault("attestation.agrees", "more finals than trials", told("totals", "trials", to=1)),
    Fault("attestation.agrees", "not complete, with all finals", told("complete", to=False)),
    Fault("attestation.agrees", "a check that failed", told("verification", "checks", to={"a": "fail"})),
    Fault("attestation.agrees", "a check that could not tell", told("verification", "checks", to={"a": "cannot tell"})),
    Fault("attestation.agrees", "nothing was checked", told("verification", "checks", to={})),
]
SUBJECTS = [
    Fault("attestation.subjects", "another digest", _digest(2, "0" * 64), run=True),
    Fault("attestation.subjects", "a file that is not there", _also("more.json"), run=True),
    Fault("attestation.subjects", "a file outside", _also("../journal.jsonl"), run=True),
    Fault("attestation.subjects", "a folder", _also("checkpoints"), run=True),
    Fault("attestation.subjects", "no name", _also(""), run=True),
    Fault("attestation.subjects", "what no entry speaks of", _and_what_is_kept, run=True, spoil_run=_kept),
    Fault("attestation.subjects", "another root", told("checkpoint", "root", to="0" * 64), run=True),
]
RUN = [
    Fault("attestation.run", "another study", told("study", to="another"), run=True),
    Fault("attestation.run", "another stage", told("stage", to="another"), run=True),
    Fault(
        "attestation.run",
        "another id",
        _both(told("run_id", to="another"), told("checkpoint", "origin", to="proctor/run/another")),
        run=True,
    ),
    Fault("attestation.run", "more trials", _more_trials, run=True),
    Fault("attestation.run", "a part, it says", told("selection", to={"limit": 2}), run=True),
    Fault("attestation.run", "a model that is said to be made up", told("synthetic", to=["m"]), run=True),
    Fault("attestation.run", "an earlier checkpoint", _an_earlier_head, run=True),
    Fault(
        "attestation.run",
        "an anchor of which there is no receipt",
        told("anchored", to=[{"anchor": "drop", "location": "../heads", "commit": None}]),
        run=True,
    ),
    Fault(
        "attestation.run",
        "a check that passed, of which there is nothing",
        told("verification", "checks", to={"anchors.remote": "pass"}),
        run=True,
    ),
    Fault("attestation.run", "a run that does not hold now", run=True, spoil_run=_flip),
]
FAULTS = [*FORM, *SIGNED, *AGREES, *SUBJECTS, *RUN]
