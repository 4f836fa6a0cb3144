"""A checkpoint for a second person to sign: read from a run only as what the journal beside it comes to."""

from __future__ import annotations

from proctor.evidence import checkpoints, notes
from proctor.evidence.disk import open_regular, unreadable
from proctor.evidence.entries import damaged
from proctor.evidence.merkle import CompactRange, leaf_hash
from proctor.evidence.reader import read_lines
from proctor.evidence.runfolder import RunFolder


def last_checkpoint(run: RunFolder) -> bytes:
    """The newest checkpoint that stands in a run, whose root is that of the journal.

    Its signature is not checked: who signs it as well says that this is what he saw.

    Raises:
        Refusal: `evidence_damaged`, `evidence_unreadable`.
    """
    standing = checkpoints.standing(run)
    if not standing:
        raise damaged("no checkpoint stands in the run", run.relative(run.checkpoints))
    size, body = max(standing.items())
    tree = CompactRange()
    try:
        with open_regular(run.journal_path) as file:
            for line in read_lines(file):
                if tree.size == size:
                    break
                tree.append(leaf_hash(line))
        with open_regular(run.path / body["path"]) as file:
            note = file.read(notes.MAX_NOTE_BYTES)
    except OSError as error:
        raise unreadable("the run", str(run.path), error) from error
    if tree.size != size or tree.root().hex() != body["root"]:
        message = "the newest checkpoint is not of this journal"
        raise damaged(message, body["path"], observed={"entries": tree.size, "root": tree.root().hex()})
    return note
