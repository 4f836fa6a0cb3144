"""Attestations, as section 13 of the evidence format has them: who signed one, and whether its run is as it says."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from proctor_verify import notes
from proctor_verify.anchors import Commit, Receipts
from proctor_verify.checks import CHECKS
from proctor_verify.contradicted import in_words, lead
from proctor_verify.elsewhere import NOTHING, Asked
from proctor_verify.errors import Unreadable
from proctor_verify.folder import Folder
from proctor_verify.journal import MAX_LINE
from proctor_verify.places import RunName
from proctor_verify.proves import NO_KEY
from proctor_verify.report import Result, Status, exit_of, failed_of, marks_of
from proctor_verify.schema import body_fault, envelope_fault
from proctor_verify.standalone import (
    FileCheck,
    FileReport,
    Verdict,
    cannot_tell,
    failed,
    holds,
    judge,
    not_applicable,
    passed,
)
from proctor_verify.stands import NOT_ASKED, Covered, of_the_time, stands
from proctor_verify.statements import Attestation, read_attestation
from proctor_verify.strictjson import loads_canonical
from proctor_verify.verification import verify

NO_RUN = "that the run which it speaks of is as it says: name the run too"
NOT_SAID = "whether it is a part of its stage: it is of an older form, which does not say; name the run"
OWN_WORD = (
    "what the operator did not record, and since when any of it stood, but for what an anchor or a timestamp shows"
)

# Of all subjects together: a summary is of 64 MiB at most, and a hole in a file is as large as one likes.
MAX_SUBJECTS = 1 << 30
_CHUNK = 1 << 20
_ANCHORS = "anchors.remote"
_FINE = frozenset({"pass", "not applicable"})
_KNOWN = frozenset(check.id for check in CHECKS)
_UNSIGNED = not_applicable("its signature fails: nothing of the run is read for it")


def _signed(attestation: Attestation) -> Verdict:
    public = Ed25519PublicKey.from_public_bytes(attestation.key.raw)
    if not any(_holds(public, signature, attestation.signed) for signature in attestation.signatures):
        return failed("is not signed by the key that it names", "signatures")
    if attestation.trust is None:
        return cannot_tell("nobody said with --key whose it should be")
    if not attestation.trust.trusts(attestation.key):
        return failed("is signed by another key than --key names", "signatures")
    return passed("by the key that --key names")


def _holds(public: Ed25519PublicKey, signature: bytes, signed: bytes) -> bool:
    try:
        public.verify(signature, signed)
    except InvalidSignature:
        return False
    return True


def _agrees(attestation: Attestation) -> Verdict:
    said, totals = attestation.said, attestation.said["totals"]
    head = said["checkpoint"]
    missing = sorted({"design.json", notes.path_of(head["size"])} - attestation.subjects.keys())
    not_fine = sorted(check for check, status in said["verification"]["checks"].items() if status not in _FINE)
    if missing:
        return failed(f"{missing[0]} is no subject", "subject")
    if head["origin"] != notes.origin_of(said["run_id"]):
        return failed(f"the checkpoint is of {head['origin']}", "predicate.checkpoint")
    if totals["finals"] != totals["pass"] + totals["fail"] + totals["ungraded"] or totals["finals"] > totals["trials"]:
        return failed("the totals do not add up", "predicate.totals")
    if said["complete"] != (totals["finals"] == totals["trials"]):
        return failed("complete is not what the totals say", "predicate.complete")
    if not_fine or not said["verification"]["checks"]:
        return failed(f"the run did not hold then: {', '.join(not_fine[:5]) or 'nothing was checked'}", "verification")
    if unknown := sorted(said["verification"]["checks"].keys() - _KNOWN):
        return cannot_tell(f"checks that it names are not known here: {', '.join(unknown[:5])}")
    return passed("as its parts have it")


def _subjects(attestation: Attestation) -> Verdict:
    if attestation.run is None:
        return not_applicable("no run was named")
    if attestation.found is None:
        return _UNSIGNED
    last = _ends(attestation.run)[1]["body"]
    told = {"design.json", notes.path_of(attestation.said["checkpoint"]["size"])}
    told.update(file["path"] for file in last["files"])
    if others := sorted(attestation.subjects.keys() - told):
        return failed("is neither the design, nor the checkpoint, nor a file of the run's end", f"subject {others[0]}")
    try:
        folder = Folder(Path(attestation.run))
    except Unreadable as error:
        return cannot_tell(f"the run cannot be read: {error}")
    try:
        left = MAX_SUBJECTS
        for name, required in attestation.subjects.items():
            try:
                with folder.open(name) as file:
                    left -= os.fstat(file.fileno()).st_size
                    if left < 0:
                        return failed(f"subjects have more than {MAX_SUBJECTS:,} bytes, and are not read", "subject")
                    found = _digest(file)
            except Unreadable as error:
                return failed(str(error), f"subject {name}")
            if found != required:
                return failed("has another digest in the run", f"subject {name}")
        fault = _head_fault(attestation, folder)
        return passed(f"files: {len(attestation.subjects)}") if fault is None else failed(fault, "predicate.checkpoint")
    except OSError as error:
        return cannot_tell(f"the run cannot be read: {error.strerror}")
    finally:
        folder.close()


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _head_fault(attestation: Attestation, folder: Folder) -> str | None:
    """What is wrong with the checkpoint as it is told; its file is a subject, whose digest is right by now."""
    said = attestation.said["checkpoint"]
    name = notes.path_of(said["size"])
    if name not in attestation.subjects:
        return None
    head = notes.checkpoint(notes.parse(folder.read(name, notes.MAX_NOTE_BYTES)).text)
    told = (said["size"], said["root"])
    return None if (head.size, head.root.hex()) == told else "is not what the checkpoint's file says"


def _run(attestation: Attestation) -> Verdict:
    said, report = attestation.said, attestation.found
    if attestation.run is None:
        return not_applicable("no run was named")
    if report is None:
        return _UNSIGNED
    if report.unreadable is not None:
        return cannot_tell(f"the run cannot be read: {report.unreadable}")
    # what stands at places that were named is a check of its own
    results = [each for each in report.results if not (attestation.asked.anchors and each.check == _ANCHORS)]
    if exit_of(results, None) != 0:
        return failed(f"the run does not hold: {', '.join(failed_of(results)) or 'something cannot be told'}", "RUN")
    size = said["checkpoint"]["size"]
    if (report.run_id, report.entries) != (said["run_id"], size):
        return failed(
            f"is run {report.run_id} with {report.entries:,} entries, not {said['run_id']} with {size:,}", "RUN"
        )
    found = {result.check: result.status.value for result in results}
    for check, status in said["verification"]["checks"].items():
        if status == "pass" and found.get(check, status) != status:
            return failed(f"{check} passed, it says, and is {found[check]}", "predicate.verification")
    receipts = _anchored(attestation.run, size)
    if missing := [each for each in said["anchored"] if each not in receipts]:
        return failed(f"no receipt says that the checkpoint stands at {missing[0]['location']}", "predicate.anchored")
    if list(report.synthetic) != said["synthetic"]:
        return failed(f"its made-up models are {', '.join(report.synthetic) or 'none'}", "predicate.synthetic")
    selection = report.scope.selection if report.scope is not None else None
    if "selection" in said and said["selection"] != selection:
        return failed("what was selected of the stage is not what the run's design says", "predicate.selection")
    first, last = (entry["body"] for entry in _ends(attestation.run))
    told = [said[name] for name in ("study", "stage", "complete", "totals")]
    if [first["study"], first["stage"], last["complete"], last["totals"]] != told:
        return failed("the run's first and last entries say otherwise", "predicate")
    return passed(f"holds, {size:,} entries")


def _stands(attestation: Attestation) -> Verdict:
    if not attestation.asked.anchors:
        return NOT_ASKED
    said = attestation.said["checkpoint"]
    run = RunName(attestation.said["run_id"], attestation.key)
    verdict = stands(attestation.asked.anchors, run, Covered(said["size"], bytes.fromhex(said["root"])))
    found = _of_anchors(attestation)
    if verdict.status is not Status.PASS or found is None or found.status in (Status.PASS, Status.NOT_APPLICABLE):
        return verdict
    if found.status is Status.CANNOT_TELL:
        return cannot_tell(found.seen)
    return failed(found.findings[0].seen, found.findings[0].path)


def _of_anchors(attestation: Attestation) -> Result | None:
    """What was found of the run, where one was named, at the places that were."""
    results = attestation.found.results if attestation.found is not None else ()
    return next((each for each in results if each.check == _ANCHORS), None)


def _anchored(run: str, size: int) -> list[dict[str, Any]]:
    """Where a checkpoint stands, as the receipts in a run say."""
    folder = Folder(Path(run))
    try:
        return [
            {
                "anchor": receipt.anchor,
                "location": receipt.location,
                "commit": receipt.snapshot.id if isinstance(receipt.snapshot, Commit) else None,
            }
            for receipt in Receipts(folder).sound
            if receipt.of == size
        ]
    finally:
        folder.close()


def _ends(run: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A journal's first and last entry, of a run that is over. Raises Unreadable where they are not those."""
    folder = Folder(Path(run))
    try:
        with folder.open("journal.jsonl") as journal:
            first = journal.read(MAX_LINE + 1).partition(b"\n")[0]
            journal.seek(max(0, journal.seek(0, 2) - MAX_LINE - 2))
            last = journal.read(MAX_LINE + 2).rstrip(b"\n").rpartition(b"\n")[2]
    except OSError as error:
        raise Unreadable(f"the journal cannot be read: {error.strerror}") from error
    finally:
        folder.close()
    return _entry(first, "run.admitted"), _entry(last, "run.ended")


def _entry(line: bytes, kind: str) -> dict[str, Any]:
    entry: dict[str, Any] = loads_canonical(line)
    fault = envelope_fault(entry) or (None if entry["kind"] == kind else "is of another kind")
    fault = fault or body_fault(kind, entry["body"])
    if fault is not None:
        raise Unreadable(fault)
    return entry


def _caveats(attestation: Attestation) -> Iterator[str]:
    """What is to be said of its parts that nothing here holds."""
    said = attestation.said
    if left_out := len(_KNOWN - said["verification"]["checks"].keys()):
        yield f"how {left_out:,} of the {len(_KNOWN):,} checks known here came out then: it does not name them"
    if said["timestamp"] is None:
        return
    yield "whether its timestamp is one: nobody looked at its .tsr file"
    if attestation.run is not None and attestation.found is not None and attestation.found.exit_status == 0:
        ended = _ends(attestation.run)[1]["time"]
        yield from in_words([lead(ended, said["timestamp"]["time"])], "its timestamp is dated", "before the run's end")


ATTESTATION_CHECKS: tuple[FileCheck[Attestation], ...] = (
    FileCheck(
        "attestation.form",
        "the file is a DSSE envelope around an in-toto Statement about a run, with exactly the fields of both",
    ),
    FileCheck(
        "attestation.signed", "a signature is that of the key in `vkey`, which is the one given with `--key`", _signed
    ),
    FileCheck(
        "attestation.agrees",
        "design and checkpoint are subjects, totals add up, `complete` follows from them, and every check, each a "
        "known one, held",
        _agrees,
    ),
    FileCheck(
        "attestation.subjects",
        "with the run: each subject is its design, the checkpoint or a file that its last entry names, with that "
        "digest, and the checkpoint is as told",
        _subjects,
    ),
    FileCheck(
        "attestation.run",
        "with the run: it holds by that key, is of that id and size, its design has that selection, its first and last "
        "entries say the same, what is said to pass does, and receipts say where it is anchored",
        _run,
    ),
    FileCheck(
        "attestation.anchored",
        "at each place given with `--anchor` stand signed checkpoints of the run, that of the attestation among them; "
        "with the run: nothing there contradicts it",
        _stands,
    ),
)


def verify_attestation(
    data: bytes,
    trust: notes.TrustRoot | None,
    run: str | None = None,
    asked: Asked = NOTHING,
    *,
    checks: Sequence[FileCheck[Attestation]] = ATTESTATION_CHECKS,
) -> FileReport:
    """Check an envelope's bytes, and the run that it speaks of, and places where that should stand, where named."""
    attestation, fault = None, ""
    try:
        attestation = read_attestation(data, trust, run)
        sound = run is not None and _signed(attestation).status is not Status.FAIL
        found = verify(run, attestation.said["vkey"], anchors=asked.anchors) if run is not None and sound else None
        attestation = replace(attestation, asked=asked, found=found)
    except Unreadable as error:
        fault = str(error)
    results = judge(checks, attestation, fault)
    lenient = "attestation.signed" if trust is None else None
    caveats = (*(() if trust is not None else (NO_KEY,)), *(() if run is not None else (NO_RUN,)))
    if attestation is None:
        return FileReport("attestation of a run", results, caveats=(*caveats, OWN_WORD), lenient=lenient)
    said, totals = attestation.said, attestation.said["totals"]
    grades = (
        f"{totals['pass']:,} pass, {totals['fail']:,} fail, {totals['ungraded']:,} ungraded of {totals['trials']:,}"
    )
    stamped, scope = said["timestamp"], attestation.scope
    part = scope.selected()
    marked = {
        "SYNTHETIC": f"{', '.join(said['synthetic'])}: made up by rules, no model was called"
        if said["synthetic"]
        else None,
        "PART": f"of the stage, selected before it began: {part}" if part is not None else None,
    }
    untold = (NOT_SAID,) if "selection" not in said and run is None else ()
    return FileReport(
        "attestation of a run",
        results,
        facts={
            **{mark: words for mark, words in marked.items() if words is not None},
            "run": f"{said['run_id']}, {said['study']}/{said['stage']}, {said['checkpoint']['size']:,} entries",
            "grades": grades + ("" if said["complete"] else " (not complete)"),
            "signed by": f"{attestation.key.name}, {attestation.key.fingerprint}",
            "timestamp": "none" if stamped is None else f"{stamped['time']}, by its own word",
        },
        shown=(
            *((f"its checkpoint stands at {', '.join(asked.anchors)} now",) if asked.anchors else ()),
            _told(attestation, grades),
        ),
        caveats=(
            *scope.caveats(),
            *untold,
            *caveats,
            *_caveats(attestation),
            *of_the_time(holds(results, "attestation.anchored")),
            OWN_WORD,
        ),
        lenient=lenient,
        marks=marks_of(scope, said["synthetic"]),
        held="without the run" if run is None else "with the run",
    )


def _told(attestation: Attestation, grades: str) -> str:
    """What follows of the run, where all holds."""
    run = f"run {attestation.said['run_id']}"
    if attestation.run is not None:
        return f"{run} stands here, holds by the key of the attestation, and came to {grades}, as is said"
    who = "whoever signed it" if attestation.trust is None else "the operator"
    return f"{who} says that {run} came to {grades}, and was verified; nobody looked at the run itself"
