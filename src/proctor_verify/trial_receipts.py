"""Receipts of trials, as section 13 of the evidence format has them: that a final stands in a run, without the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from proctor_verify import canonical, notes
from proctor_verify.elsewhere import NOTHING, Asked
from proctor_verify.errors import Unreadable
from proctor_verify.merkle import included, leaf_hash
from proctor_verify.places import RunName
from proctor_verify.proof_lines import Signed, halves, hashes_of, number
from proctor_verify.proves import NO_KEY
from proctor_verify.report import Result
from proctor_verify.schema import ANCHOR, body_fault, envelope_fault
from proctor_verify.shapes import FROM_ONE, TEXT, list_of, matches, or_null, record, where
from proctor_verify.standalone import (
    MAX_BYTES,
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
from proctor_verify.stands import Covered, of_the_time, stands
from proctor_verify.strictbase64 import decoded
from proctor_verify.strictjson import loads_canonical

START = b"c2sp.org/tlog-proof@"

_FIRST_LINE = "c2sp.org/tlog-proof@v1"
_TRIAL = record(task=TEXT, model=or_null(TEXT), arm=TEXT, epoch=FROM_ONE)
ANCHORED = list_of(
    where(
        record(anchor=ANCHOR, location=TEXT, commit=or_null(matches(r"[0-9a-f]{40}|[0-9a-f]{64}", "a commit's id"))),
        "a commit exactly where it is git",
        lambda v: (v["anchor"] == "git") == (v["commit"] is not None),
    )
)
_EXTRA = record(line=TEXT, trial=_TRIAL, anchored=ANCHORED, vkey=TEXT)

OTHERS = (
    "anything of the run's other trials, that the run holds, or whether it is complete and a whole stage: verify the "
    "run for that"
)
NO_ANCHOR = "when: the operator could have made the run, and this checkpoint of it, at any time, and left another out"
MADE_UP = (
    "SYNTHETIC or not: a receipt does not tell whether its model is real or made up, the run's design does; verify the "
    "run for that"
)
OWN_WORD = "that the checkpoint stands at the anchor: that is what the receipt says itself; look there"


@dataclass(frozen=True)
class TrialReceipt:
    """A receipt that could be read, and who is trusted."""

    index: int
    hashes: tuple[bytes, ...]
    signed: Signed
    line: str
    trial: dict[str, Any]
    anchored: list[dict[str, Any]]
    key: notes.Key
    trust: notes.TrustRoot | None
    asked: Asked = NOTHING


def read_trial_receipt(data: bytes, trust: notes.TrustRoot | None, asked: Asked = NOTHING) -> TrialReceipt:
    """Take a receipt apart.

    Raises:
        Unreadable: it is none.
    """
    lines, signed = halves(data)
    if len(lines) < 3 or lines[0] != _FIRST_LINE or not lines[1].startswith("extra "):
        raise Unreadable(f"it does not begin with {_FIRST_LINE}, extra and index, a line each")
    index = number(lines[2], "index ")
    hashes = hashes_of(lines[3:])
    raw = decoded(lines[1].removeprefix("extra "))
    extra = loads_canonical(raw, max_bytes=MAX_BYTES)
    if not _EXTRA.holds(extra):
        raise Unreadable(f"extra is not {_EXTRA.words}")
    key = notes.verifier_key(extra["vkey"])
    return TrialReceipt(index, hashes, signed, extra["line"], extra["trial"], extra["anchored"], key, trust, asked)


def _receipt_signed(receipt: TrialReceipt) -> Verdict:
    if not receipt.signed.note.signed_by(receipt.key):
        return failed("is not signed by the key that the receipt names", "checkpoint")
    if receipt.trust is None:
        return cannot_tell("nobody said with --key whose it should be")
    if not receipt.trust.trusts(receipt.key):
        return failed("is signed by another key than --key names", "checkpoint")
    return passed("by the key that --key names")


def _receipt_included(receipt: TrialReceipt) -> Verdict:
    head = receipt.signed.head
    leaf = leaf_hash(receipt.line.encode())
    if not included(leaf, receipt.index, head.size, receipt.hashes, head.root):
        return failed(f"entry {receipt.index:,} with this line is not in the tree of {head.size:,}", "hashes")
    return passed(f"entry {receipt.index:,} of {head.size:,}, by {len(receipt.hashes)} hashes")


def _receipt_record(receipt: TrialReceipt) -> Verdict:
    try:
        entry = loads_canonical(receipt.line.encode())
    except Unreadable as error:
        return failed(str(error), "extra.line")
    fault = envelope_fault(entry)
    if fault is None and entry["kind"] != "trial.final":
        fault = f"is a {entry['kind']}, and no trial.final"
    fault = fault or body_fault("trial.final", entry["body"])
    if fault is None and entry["seq"] != receipt.index:
        fault = f"has seq {entry['seq']}, and stands at {receipt.index}"
    if fault is None and entry["body"]["trial"] != trial_id(receipt.trial):
        fault = f"is of trial {entry['body']['trial']}, and extra.trial is {trial_id(receipt.trial)}"
    return passed(f"trial.final of trial {entry['body']['trial']}") if fault is None else failed(fault, "extra.line")


def _receipt_anchored(receipt: TrialReceipt) -> Verdict:
    head = receipt.signed.head
    run = RunName(receipt.signed.run_id, receipt.key)
    return stands(receipt.asked.anchors, run, Covered(head.size, head.root))


def _receipt_witnessed(receipt: TrialReceipt) -> Verdict:
    if not receipt.asked.witnesses:
        return not_applicable("no key was named with --witness")
    for witness in receipt.asked.witnesses:
        if witness.key.raw == receipt.key.raw:
            return failed(f"{witness.key.name}, {witness.key.fingerprint}, is the run's own key", "--witness")
        if witness.signed(receipt.signed.note) is None:
            return failed(f"is not signed by {witness.key.name}, {witness.key.fingerprint}", "checkpoint")
    return passed(f"signed by {', '.join(witness.key.name for witness in receipt.asked.witnesses)}")


def trial_id(trial: dict[str, Any]) -> str:
    """The id that a task, model, arm and epoch come to."""
    parts = [trial["task"], trial["model"], trial["arm"], trial["epoch"]]
    return sha256(canonical.encode(parts)).hexdigest()[:16]


RECEIPT_CHECKS: tuple[FileCheck[TrialReceipt], ...] = (
    FileCheck(
        "receipt.form",
        "the file is a receipt of a trial within its bounds: its lines, the fields of `extra`, a checkpoint of a run",
    ),
    FileCheck(
        "receipt.signed",
        "the checkpoint is signed by the key in `vkey`, which is that given with `--key`",
        _receipt_signed,
    ),
    FileCheck(
        "receipt.included", "the hashes lead from the line at `index` to the checkpoint's root", _receipt_included
    ),
    FileCheck(
        "receipt.record",
        "the line is an entry of kind `trial.final` and its shape; its `seq` is `index`, its trial id that of `trial`",
        _receipt_record,
    ),
    FileCheck(
        "receipt.anchored",
        "at each place given with `--anchor` stand signed checkpoints of the run, that of the receipt among them",
        _receipt_anchored,
    ),
    FileCheck(
        "receipt.witnessed",
        "each key given with `--witness` signed the checkpoint, and is not that in `vkey`",
        _receipt_witnessed,
    ),
)


def verify_receipt(
    data: bytes,
    trust: notes.TrustRoot | None,
    asked: Asked = NOTHING,
    *,
    checks: Sequence[FileCheck[TrialReceipt]] = RECEIPT_CHECKS,
) -> FileReport:
    """Check a receipt's bytes; with anchors and witnesses that are asked for, its checkpoint against these too."""
    receipt, fault = None, ""
    try:
        receipt = read_trial_receipt(data, trust, asked)
    except Unreadable as error:
        fault = str(error)
    results = judge(checks, receipt, fault)
    lenient = "receipt.signed" if trust is None else None
    caveats = () if trust is not None else (NO_KEY,)
    if receipt is None:
        return FileReport("receipt of a trial", results, caveats=caveats, lenient=lenient)
    head, said = receipt.signed.head, _said(receipt)
    run = receipt.signed.run_id
    return FileReport(
        "receipt of a trial",
        results,
        facts={
            "trial": f"{_label(receipt.trial)} ({trial_id(receipt.trial)})",
            "grade": said,
            "run": f"{run}, entry {receipt.index:,} of {head.size:,}, counted from 0",
            "signed by": f"{receipt.key.name}, {receipt.key.fingerprint}",
            "anchored": "; ".join(_place(each) for each in receipt.anchored) or "nowhere, by its own word",
        },
        shown=(
            *((f"the checkpoint stands at {', '.join(asked.anchors)} now",) if asked.anchors else ()),
            f"this trial's result in run {run} is {said}, and stood there when its first {head.size:,} entries did",
        ),
        caveats=(
            *caveats,
            *_of_the_time(receipt, results),
            *((MADE_UP,) if receipt.trial["model"] is not None else ()),
            OTHERS,
        ),
        lenient=lenient,
    )


def _of_the_time(receipt: TrialReceipt, results: Sequence[Result]) -> tuple[str, ...]:
    if not receipt.asked.anchors:
        return (OWN_WORD if receipt.anchored else NO_ANCHOR,)
    return of_the_time(holds(results, "receipt.anchored")) or (NO_ANCHOR,)


def _label(trial: dict[str, Any]) -> str:
    names = [trial["task"], *([trial["model"]] if trial["model"] is not None else []), trial["arm"]]
    return " · ".join([*names, str(trial["epoch"])])


def _said(receipt: TrialReceipt) -> str:
    """The grade as the line says it; what it is worth, `receipt.record` says."""
    try:
        body = loads_canonical(receipt.line.encode())["body"]
        reason = f" ({body['reason']})" if body["reason"] is not None else ""
        reward = f", reward {body['reward']}" if body["reward"] is not None else ""
        return f"{body['grade']}{reason}{reward}"
    except (Unreadable, KeyError, TypeError, IndexError):
        return "unreadable"


def _place(anchored: dict[str, Any]) -> str:
    commit = f", commit {anchored['commit']}" if anchored["commit"] is not None else ""
    return f"{anchored['anchor']} at {anchored['location']}{commit}"
