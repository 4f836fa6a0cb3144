"""Which kind of thing a person names: a run folder, or a file that stands alone and is told by how it begins."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from proctor_verify import attestations, growth, notes, statements, trial_receipts
from proctor_verify.elsewhere import Asked
from proctor_verify.errors import Unreadable
from proctor_verify.outside import start_of_file
from proctor_verify.report import plain
from proctor_verify.standalone import MAX_BYTES, FileCheck, FileReport

CHECKS: tuple[FileCheck[Any], ...] = (
    *trial_receipts.RECEIPT_CHECKS,
    *growth.CONSISTENCY_CHECKS,
    *attestations.ATTESTATION_CHECKS,
)

# an option, what it goes with in words, and the files among these
_GOES_WITH = (
    ("--witness", "a run or a receipt", (trial_receipts.START,)),
    ("--since", "a run or a proof of consistency", (growth.START,)),
    ("a second RUN", "an attestation", (statements.START,)),
)
_ENVELOPE = b'"payloadType"'
_CHECKPOINT = b"proctor/run/"
_OF_A_RUN = frozenset({"journal.jsonl", "summary.json", "grade_summary.json", "withheld.json"})


def is_file(path: str | PathLike[str]) -> bool:
    """Whether something stands there that is no folder: a run is one."""
    try:
        return not stat.S_ISDIR(Path(path).stat().st_mode)
    except (OSError, ValueError):
        return False


def verify_file(
    path: str | PathLike[str],
    key: str | None = None,
    *,
    since: str | PathLike[str] | None = None,
    run: str | None = None,
    anchors: Sequence[str] = (),
    witnesses: Sequence[str] = (),
) -> FileReport:
    """Check a receipt, a proof or an attestation. What cannot be read is a finding, never an exception.

    Args:
        path: the file.
        key: whose signature counts, as for a run.
        since: of a proof of consistency, the file of the older checkpoint.
        run: of an attestation, the folder of the run that it speaks of.
        anchors: where its checkpoint (of a proof, the newer one) should stand too, as for a run.
        witnesses: of a receipt, who else should have signed its checkpoint.
    """
    try:
        trust = notes.trust_root(key) if key is not None else None
    except Unreadable as error:
        return FileReport("file", unreadable=f"--key: {error}")
    try:
        asked = Asked.of(anchors, None, witnesses, apart_from=Path(run) if run is not None else None)
    except Unreadable as error:
        return FileReport("file", unreadable=plain(error))
    try:
        data = start_of_file(path, MAX_BYTES + 1)
    except Unreadable as error:
        return FileReport("file", unreadable=f"{plain(path)}: {error}")
    given = {"--witness": bool(witnesses), "--since": since is not None, "a second RUN": run is not None}
    try:
        start = _start(Path(path), data)
        _go_together(start, {name for name, is_given in given.items() if is_given})
        if start == trial_receipts.START:
            return trial_receipts.verify_receipt(data, trust, asked)
        if start == growth.START:
            return growth.verify_growth(data, _older(since), trust, asked)
        return attestations.verify_attestation(data, trust, run, asked)
    except Unreadable as error:
        return FileReport("file", unreadable=plain(error))


def _start(path: Path, data: bytes) -> bytes:
    """How it begins, of the files that are known.

    Raises:
        Unreadable: it is another file; one that a person may well take for a run is told apart.
    """
    if path.name == "design.json" and _ENVELOPE not in data:
        raise Unreadable(f"{path}: is a design: --design checks one alone; of a run, name the folder")
    if path.name in _OF_A_RUN and _ENVELOPE not in data:
        raise Unreadable(f"{path}: is a file of a run: name the folder that it stands in")
    if data.startswith(_CHECKPOINT):
        raise Unreadable(f"{path}: is a checkpoint: name its run, and the checkpoint with --since or --anchor")
    for start in (trial_receipts.START, growth.START, statements.START):
        if data.startswith(start):
            return start
    raise Unreadable(f"{path}: is no run folder, and begins as no file that is known here")


def _go_together(start: bytes, given: set[str]) -> None:
    """What is asked for and never looked at would pass for an answer.

    Raises:
        Unreadable: an option is for another kind of thing.
    """
    for name, words, starts in _GOES_WITH:
        if name in given and start not in starts:
            raise Unreadable(f"{name} goes with {words}")


def _older(since: str | PathLike[str] | None) -> bytes | None:
    if since is None:
        return None
    try:
        return start_of_file(since, MAX_BYTES + 1)
    except Unreadable as error:
        raise Unreadable(f"--since {plain(since)}: {error}") from error
