"""Proofs that stand alone, as files: that a trial's final is in a run, and that one checkpoint extends another.

C2SP `tlog-proof` and the body of `add-checkpoint` of C2SP `tlog-witness`: section 13 of the evidence format.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from proctor.core.canonical import encode
from proctor.evidence import notes
from proctor.evidence.anchors.receipts import Anchored


class Identity(TypedDict):
    """What a trial id is made of."""

    task: str
    model: str | None
    arm: str
    epoch: int


@dataclass(frozen=True)
class TrialReceipt:
    """That a trial's final stands at `index` of the run that `note` is a checkpoint of; `hashes` are 32 bytes each."""

    index: int
    hashes: tuple[bytes, ...]
    note: bytes
    line: str
    trial: Identity
    anchored: tuple[Anchored, ...]
    vkey: str

    def encode(self) -> bytes:
        """The file."""
        said = {"line": self.line, "trial": self.trial, "anchored": list(self.anchored), "vkey": self.vkey}
        head = ["c2sp.org/tlog-proof@v1", f"extra {_b64(encode(said))}", f"index {self.index}"]
        return _text([*head, *map(_b64, self.hashes)]) + self.note

    def as_record(self) -> dict[str, Any]:
        """What it says, and `proof`: the file's text."""
        said = {"index": self.index, "trial": self.trial, "anchored": list(self.anchored), "vkey": self.vkey}
        return {**said, "checkpoint": _head(self.note), "proof": self.encode().decode()}


@dataclass(frozen=True)
class ConsistencyProof:
    """That the run's first `old_size` entries are those of an older checkpoint, in the newer one of `note`."""

    old_size: int
    hashes: tuple[bytes, ...]
    note: bytes

    def encode(self) -> bytes:
        """The file."""
        return _text([f"old {self.old_size}", *map(_b64, self.hashes)]) + self.note

    def as_record(self) -> dict[str, Any]:
        """What it says, and `proof`: the file's text."""
        return {"old": self.old_size, "checkpoint": _head(self.note), "proof": self.encode().decode()}


def _head(note: bytes) -> dict[str, Any]:
    return notes.Checkpoint.parse(notes.parse(note).text).as_record()


def _b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _text(lines: Sequence[str]) -> bytes:
    return ("\n".join(lines) + "\n\n").encode()
