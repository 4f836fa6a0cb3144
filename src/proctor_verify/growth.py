"""Proofs of consistency: that one checkpoint of a run extends another that somebody kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proctor_verify import notes
from proctor_verify.elsewhere import NOTHING, Asked
from proctor_verify.errors import Unreadable
from proctor_verify.merkle import consistent
from proctor_verify.places import RunName
from proctor_verify.proof_lines import Signed, halves, hashes_of, number, signed
from proctor_verify.proves import NO_KEY
from proctor_verify.report import Status
from proctor_verify.standalone import FileCheck, FileReport, Verdict, cannot_tell, failed, holds, judge, passed
from proctor_verify.stands import NOT_ASKED, Covered, of_the_time, stands

START = b"old "

TRIALS = "anything of the run's trials, or that the run as a whole holds: verify the run for that"
AFTER = "anything that was written after the newer checkpoint"


@dataclass(frozen=True)
class Growth:
    """A proof of consistency that could be read, the older checkpoint where it was given, and who is trusted."""

    old_size: int
    hashes: tuple[bytes, ...]
    newer: Signed
    older: Signed | None
    trust: notes.TrustRoot | None
    asked: Asked = NOTHING


def read_growth(data: bytes, older: bytes | None, trust: notes.TrustRoot | None, asked: Asked = NOTHING) -> Growth:
    """Take a proof of consistency apart, and the older checkpoint with it.

    Raises:
        Unreadable: it is none, or the older one is no checkpoint.
    """
    lines, newer = halves(data)
    old_size = number(lines[0], "old ")
    kept = None
    if older is not None:
        try:
            kept = signed(older)
        except Unreadable as error:
            raise Unreadable(f"what --since names is no checkpoint of a run: {error}") from error
    return Growth(old_size, hashes_of(lines[1:]), newer, kept, trust, asked)


def _growth_signed(growth: Growth) -> Verdict:
    if growth.trust is None:
        return cannot_tell("nobody said with --key whose key it should be")
    if growth.trust.key is None:
        return cannot_tell("a fingerprint is not enough here: the proof does not name its key; give the whole vkey")
    if not growth.newer.note.signed_by(growth.trust.key):
        return failed("is not signed by the key that --key names", "checkpoint")
    if growth.older is not None and not growth.older.note.signed_by(growth.trust.key):
        return failed("the older checkpoint is not signed by the key that --key names", "--since")
    return passed("by the key that --key names")


def _growth_consistent(growth: Growth) -> Verdict:
    if growth.older is None:
        return cannot_tell("the older checkpoint is needed: name it with --since")
    old, new = growth.older.head, growth.newer.head
    if old.origin != new.origin:
        return failed(f"the older checkpoint is of {old.origin}, and not of {new.origin}", "--since")
    if old.size != growth.old_size:
        return failed(
            f"the older checkpoint covers {old.size:,} entries, and the proof is from {growth.old_size:,}", "old"
        )
    if not consistent(old.size, old.root, new.size, new.root, growth.hashes):
        return failed("the first entries are not those of the older checkpoint", "hashes")
    return passed(f"the first {old.size:,} of {new.size:,} entries are those of the older checkpoint")


def _growth_anchored(growth: Growth) -> Verdict:
    if not growth.asked.anchors:
        return NOT_ASKED
    if growth.trust is None or growth.trust.key is None:
        return cannot_tell("whose checkpoints they are that stand there: give the whole vkey with --key")
    heads = [growth.newer.head]
    if growth.older is not None and _growth_consistent(growth).status is Status.PASS:
        heads.append(growth.older.head)
    run = RunName(growth.newer.run_id, growth.trust.key)
    return stands(growth.asked.anchors, run, *(Covered(head.size, head.root) for head in heads))


CONSISTENCY_CHECKS: tuple[FileCheck[Growth], ...] = (
    FileCheck("proof.form", "the file is a proof of consistency within its bounds, and so is the older checkpoint"),
    FileCheck("proof.signed", "both checkpoints are signed by the key given with `--key`", _growth_signed),
    FileCheck(
        "proof.consistent",
        "both checkpoints are of one run, the older one has the size of `old`, and the hashes lead to both roots",
        _growth_consistent,
    ),
    FileCheck(
        "proof.anchored",
        "at each place given with `--anchor` stand signed checkpoints of the run, the newer one among them, and none "
        "that contradicts it or the older one",
        _growth_anchored,
    ),
)


def verify_growth(
    data: bytes,
    older: bytes | None,
    trust: notes.TrustRoot | None,
    asked: Asked = NOTHING,
    *,
    checks: Sequence[FileCheck[Growth]] = CONSISTENCY_CHECKS,
) -> FileReport:
    """Check the bytes of a proof of consistency, with those of the older checkpoint; the newer one at anchors, too."""
    growth, fault = None, ""
    try:
        growth = read_growth(data, older, trust, asked)
    except Unreadable as error:
        fault = str(error)
    results = judge(checks, growth, fault)
    caveats = () if trust is not None else (NO_KEY,)
    lenient = "proof.signed" if trust is None else None
    if growth is None:
        return FileReport("proof of consistency", results, caveats=caveats, lenient=lenient)
    head = growth.newer.head
    run = growth.newer.run_id
    return FileReport(
        "proof of consistency",
        results,
        facts={"run": run, "entries": f"{growth.old_size:,} then, {head.size:,} now"},
        shown=(
            *((f"the newer checkpoint stands at {', '.join(asked.anchors)} now",) if asked.anchors else ()),
            f"of the first {growth.old_size:,} entries of run {run} none was changed, moved or taken out since",
        ),
        caveats=(*caveats, *of_the_time(holds(results, "proof.anchored")), AFTER, TRIALS),
        lenient=lenient,
    )
