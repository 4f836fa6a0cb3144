"""Which kind of thing a person names: a run folder, or a file that stands alone and is told by how it begins."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from proctor_verify import attestations, growth, notes, receipts
from proctor_verify.elsewhere import Asked
from proctor_verify.errors import Unreadable
from proctor_verify.report import plain
from proctor_verify.standalone import MAX_BYTES, FileCheck, FileReport

CHECKS: tuple[FileCheck[Any], ...] = (
    *receipts.RECEIPT_CHECKS,
    *growth.CONSISTENCY_CHECKS,
    *attestations.ATTESTATION_CHECKS,
)


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
        anchors: of a receipt, where its checkpoint should stand too, as for a run.
        witnesses: of a receipt, who else should have signed its checkpoint.
    """
    try:
        trust = notes.trust_root(key) if key is not None else None
    except Unreadable as error:
        return FileReport("file", unreadable=f"--key: {error}")
    try:
        asked = Asked.of(anchors, None, witnesses)
    except Unreadable as error:
        return FileReport("file", unreadable=plain(error))
    try:
        data = read_file(path)
    except Unreadable as error:
        return FileReport("file", unreadable=f"{plain(path)}: {error}")
    verify = _verifier(data, trust, since, run, asked)
    if verify is None:
        return FileReport(
            "file", unreadable=f"{plain(path)}: is no run folder, and begins as no file that is known here"
        )
    try:
        return verify()
    except Unreadable as error:
        return FileReport("file", unreadable=str(error))


def _verifier(
    data: bytes, trust: notes.TrustRoot | None, since: str | PathLike[str] | None, run: str | None, asked: Asked
) -> Callable[[], FileReport] | None:
    if data.startswith(receipts.START):
        return lambda: receipts.verify_receipt(data, trust, asked)
    if asked:
        return None if not data.startswith((growth.START, attestations.START)) else _only_receipts
    if data.startswith(growth.START):
        return lambda: growth.verify_growth(data, _older(since), trust)
    if data.startswith(attestations.START):
        return lambda: attestations.verify_attestation(data, trust, run)
    return None


def _only_receipts() -> FileReport:
    raise Unreadable("--anchor and --witness go with a run or a receipt")


def _older(since: str | PathLike[str] | None) -> bytes | None:
    if since is None:
        return None
    try:
        return read_file(since)
    except Unreadable as error:
        raise Unreadable(f"--since {plain(since)}: {error}") from error


def read_file(path: str | PathLike[str]) -> bytes:
    """The start of a plain file: all of it, or one byte more than any file that is known here may have.

    Raises:
        Unreadable: it is no plain file, or may not be read.
    """
    try:
        # A pipe of that name must not make the verifier wait.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Unreadable("is no plain file")
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(getattr(error, "strerror", None) or "cannot be a file's name") from error
