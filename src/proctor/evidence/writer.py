"""The one place that appends: takes drafts in order, a group at a time, and returns once the group is durable.

A group costs one fsync of the pack that its blobs went to, if any, and then one of the journal: a line never stands
without the bytes that it names. Any OSError leaves the writer unusable; `durable` still says what is safe.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from proctor.core.canonical import encode
from proctor.core.clock import Clock
from proctor.evidence.checkpoints import Signer
from proctor.evidence.entries import BLOB_FIELDS, Chain, check_body, check_size, make_line
from proctor.evidence.kinds import Kind
from proctor.evidence.packs import MAX_REF_BYTES, Content, Packs
from proctor.evidence.runfolder import RunFolder

CHECKPOINT_ENTRIES = 10_000
CHECKPOINT_NS = 60_000_000_000


class Draft(NamedTuple):
    """An entry that has no place yet. `body` is canonical JSON, with a mark in the place of each blob's reference."""

    kind: Kind
    time: str
    mono: int
    body: bytes
    blobs: Mapping[str, Content]
    marks: Mapping[str, bytes]


class Durable(NamedTuple):
    """What no crash takes away: entries, bytes of the journal, and the last line's digest."""

    size: int
    offset: int
    head: str


class Stamps:
    """Both times of entries, for one opening of a journal."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._opened = clock.mono_ns()
        # stands for a blob's reference until that is known; nobody else can write it
        self._mark = secrets.token_hex(16)

    def mono(self) -> int:
        """Nanoseconds since the opening."""
        return self._clock.mono_ns() - self._opened

    def draft(self, kind: Kind, body: Mapping[str, Any], blobs: Mapping[str, Content] | None = None) -> Draft:
        """An entry of now.

        Raises:
            ValueError: fields that are not the kind's, or a blob for a field that is no blob reference.
            Refusal: `json_invalid`, `entry_too_large`.
        """
        mono = self.mono()
        if not blobs:
            check_body(kind, body.keys())
            encoded = encode(body if type(body) is dict else dict(body))
            check_size(kind, len(encoded))
            return Draft(kind, self._clock.utc(), mono, encoded, {}, {})
        both = body.keys() & blobs.keys()
        if both or not BLOB_FIELDS[kind].issuperset(blobs):
            raise ValueError(f"{kind.id}: {sorted(both) or sorted(blobs)} cannot be given as blobs")
        check_body(kind, body.keys() | blobs.keys())
        marks = {name: f"{self._mark}{number}" for number, name in enumerate(blobs)}
        quoted = {name: f'"{mark}"'.encode() for name, mark in marks.items()}
        encoded = encode({**body, **marks})
        check_size(kind, len(encoded) + MAX_REF_BYTES * len(blobs))
        return Draft(kind, self._clock.utc(), mono, encoded, dict(blobs), quoted)


class Writer:
    """The end of a journal and its packs; for one thread at a time."""

    def __init__(self, run: RunFolder, signer: Signer, chain: Chain, packs: Packs) -> None:
        """Opens the journal, which must end with the last line of `chain`. Raises OSError.

        `newest` is the body of the `checkpoint.made` of the newest checkpoint that it made, None before the first.
        """
        self.signer = signer
        self._chain = chain
        self._packs = packs
        self._journal = run.disk.open_append(run.journal_path)
        self._last_mono = 0
        self._uncovered = 0
        self._uncovered_since = 0
        self._wanted = False
        self.newest: dict[str, Any] | None = None
        self.durable = Durable(chain.size, self._journal.size, chain.head)

    def commit(self, drafts: Sequence[Draft]) -> int:
        """Append; returns the first draft's `seq`, which the others follow. Raises OSError."""
        first = self._chain.size
        self._flush([self._take(draft) for draft in drafts])
        if self._uncovered == 0:
            self._uncovered_since = self._last_mono
        self._uncovered += len(drafts)
        return first

    def grow(self) -> None:
        """Do what is left of a commit, for which nobody has to wait."""
        self._chain.grow()

    def is_checkpoint_due(self, mono: int) -> bool:
        """Whether enough was written, or something long enough ago, since the last checkpoint."""
        waited = self._uncovered > 0 and mono - self._uncovered_since >= CHECKPOINT_NS
        return waited or self._wanted or self._uncovered >= CHECKPOINT_ENTRIES

    def want_checkpoint(self) -> None:
        """Let one be due now."""
        self._wanted = True

    @property
    def is_uncovered(self) -> bool:
        """Whether something was written since the last checkpoint, but the entry that names it."""
        return self._uncovered > 0

    def checkpoint(self, stamps: Stamps) -> None:
        """Make a checkpoint over everything and the entry that names it. Raises OSError."""
        made = self.signer.make(self._chain)
        self._flush([self._take(stamps.draft(Kind.CHECKPOINT_MADE, made))])
        self._uncovered = 0
        self._wanted = False
        self.newest = made

    def finish(self) -> None:
        """Make the checkpoint that covers the whole journal, and close. Raises OSError."""
        try:
            self.newest = self.signer.make(self._chain)
        finally:
            self.close()

    def close(self) -> None:
        """Close the files. Raises OSError."""
        self._packs.close()
        self._journal.close()

    def _take(self, draft: Draft) -> bytes:
        body, staged = draft.body, None
        if draft.blobs:
            staged = self._packs.stage(draft.blobs)
            for name, ref in staged.refs.items():
                body = body.replace(draft.marks[name], encode(ref.as_record()), 1)
        # Checkpoints are stamped while drafts wait; within an opening `mono` must not fall.
        mono = max(draft.mono, self._last_mono)
        line = make_line(self._chain, draft.time, mono, draft.kind, body)
        if staged is not None:
            self._packs.take(staged)
        self._chain.link(line)
        self._last_mono = mono
        return line

    def _flush(self, lines: list[bytes]) -> None:
        self._packs.flush()
        self._journal.append(b"\n".join([*lines, b""]))
        self._journal.sync()
        self.durable = Durable(self._chain.size, self._journal.size, self._chain.head)
