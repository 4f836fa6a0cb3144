"""What all anchors have in common: one push of one checkpoint, and the typed ways in which it can fail."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from proctor.core.reasons import Reason
from proctor.evidence.anchors.places import Place
from proctor.evidence.checkpoints import origin
from proctor.evidence.disk import open_regular
from proctor.evidence.entries import damaged
from proctor.evidence.notes import MAX_NOTE_BYTES
from proctor.evidence.runfolder import RunFolder


@dataclass(frozen=True)
class CheckpointFile:
    """A checkpoint file of a run: the bytes that are pushed."""

    origin: str
    size: int
    sha256: str
    data: bytes

    @classmethod
    def read(cls, run: RunFolder, run_id: str, made: Mapping[str, Any]) -> CheckpointFile:
        """The one that the body of a `checkpoint.made` names.

        Raises:
            Refusal: `evidence_damaged`: it is another one than that. OSError where it cannot be read.
        """
        with open_regular(run.path / made["path"]) as file:
            data = file.read(MAX_NOTE_BYTES + 1)
        found = hashlib.sha256(data).hexdigest()
        if found != made["sha256"]:
            raise damaged("a checkpoint is not what was written", made["path"], observed=found, required=made["sha256"])
        return cls(origin(run_id), made["size"], found, data)


@dataclass(frozen=True)
class Pushed:
    """What was read back from an anchor after a push: `snapshot` as in the receipt."""

    return_code: int
    snapshot: Mapping[str, Any]


class AnchorFailed(Exception):
    """A push that came to nothing: why, in a sentence, and what the command that pushed returned (None: none ended).

    `attempts` counts the tries so far.
    """

    def __init__(self, reason: Reason, message: str, return_code: int | None = None, attempts: int = 1) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.return_code = return_code
        self.attempts = attempts

    def after(self, attempts: int) -> AnchorFailed:
        """The same, after so many tries."""
        return AnchorFailed(self.reason, self.message, self.return_code, attempts)

    @property
    def is_final(self) -> bool:
        """Whether another try can end no other way: somebody else wrote there."""
        return self.reason is Reason.ANCHOR_DIFFERS


class Anchor(Protocol):
    """One place. Made with an `Admitted`; for one push or look at a time. Methods may be called from any thread."""

    @property
    def place(self) -> Place:
        """Which place it is."""
        ...

    def push(self, checkpoint: CheckpointFile, at: str) -> Pushed:
        """Push once, read back and compare; blocks, and each step that waits for others has a deadline.

        Args:
            checkpoint: of the run that the anchor was made for.
            at: the wall clock, for what is dated at the anchor.

        Raises:
            AnchorFailed: `anchor_unreachable`, `anchor_rejected`, `anchor_differs`, or `write_failed` where this
                machine failed; nothing else.
        """
        ...

    def stands(self, checkpoint: CheckpointFile) -> bool:
        """Whether a checkpoint that was pushed, and has its receipt, is there now; changes nothing; blocks as `push`.

        Raises:
            AnchorFailed: as `push`; `anchor_differs` also where it is gone and would not be put there again.
        """
        ...

    def cancel(self) -> None:
        """Let a push or a look that is going on fail soon; later ones do at once."""
        ...

    def close(self) -> None:
        """Let go of what it made on this machine."""
        ...
