"""The lines that proofs are made of: a few of their own, hashes, a blank line, and a checkpoint of a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from proctor_verify import notes
from proctor_verify.errors import Unreadable
from proctor_verify.schema import RUN_ID
from proctor_verify.standalone import MAX_BYTES
from proctor_verify.strictbase64 import decoded

MAX_HASHES = 63

_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


class Signed(NamedTuple):
    """A checkpoint of a run as it stands in a note."""

    note: notes.Note
    head: notes.Checkpoint

    @property
    def run_id(self) -> str:
        """Of which run it is."""
        return self.head.origin.rpartition("/")[2]


def halves(data: bytes) -> tuple[list[str], Signed]:
    """The lines before the blank one, and the checkpoint after it.

    Raises:
        Unreadable: there are none, or they are too long.
    """
    if len(data) > MAX_BYTES:
        raise Unreadable(f"more than {MAX_BYTES:,} bytes")
    head, blank, note = data.partition(b"\n\n")
    if not blank:
        raise Unreadable("there is no blank line before a checkpoint")
    try:
        return head.decode("ascii").split("\n"), signed(note)
    except UnicodeDecodeError:
        raise Unreadable("what stands before the blank line is not ASCII") from None


def signed(data: bytes) -> Signed:
    """A checkpoint of a run.

    Raises:
        Unreadable: it is none.
    """
    note = notes.parse(data)
    found = Signed(note, notes.checkpoint(note.text))
    if found.head.origin != notes.origin_of(found.run_id) or not RUN_ID.holds(found.run_id):
        raise Unreadable("the checkpoint is of no run: its origin is not proctor/run/ and an id")
    return found


def number(line: str, word: str) -> int:
    """The number of a line that begins with a word.

    Raises:
        Unreadable: it is not such a line.
    """
    text = line.removeprefix(word)
    if not line.startswith(word) or not _NUMBER.fullmatch(text) or int(text) >= 2**63:
        raise Unreadable(f"there is no line of {word}and a number below 2^63")
    return int(text)


def hashes_of(lines: Sequence[str]) -> tuple[bytes, ...]:
    """The hashes of a proof, 32 bytes each.

    Raises:
        Unreadable: they are none, or too many.
    """
    if len(lines) > MAX_HASHES:
        raise Unreadable(f"{len(lines):,} hashes, where no tree needs more than {MAX_HASHES}")
    hashes = tuple(map(decoded, lines))
    if any(len(each) != 32 for each in hashes):
        raise Unreadable("a hash is not 32 bytes long")
    return hashes
