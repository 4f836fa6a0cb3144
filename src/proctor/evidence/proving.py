"""Making proofs: of a trial's final, and that a run's newest checkpoint extends one that was kept.

An index of the journal is kept for the next proof. It is never believed: what it gives is held against the checkpoint.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence, Set
from contextlib import closing, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, TypeVar

from proctor.core.ids import trial_id
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence import checkpoints, merkle, notes
from proctor.evidence.anchors import receipts
from proctor.evidence.disk import open_regular, unreadable
from proctor.evidence.entries import JOURNAL, MAX_LINE_BYTES, Entry, damaged, parse_line
from proctor.evidence.kinds import Kind
from proctor.evidence.proof_index import IndexUnfit, JournalIndex, forget, open_database
from proctor.evidence.proofs import ConsistencyProof, Identity, TrialReceipt
from proctor.evidence.runfolder import RunFolder

_RUN_ID = re.compile(r"[0-9A-Za-z_-]{1,64}", re.ASCII)
T = TypeVar("T")


@dataclass(frozen=True)
class _Signed:
    """A checkpoint of the run whose signature holds."""

    note: bytes
    head: notes.Checkpoint


def prove_trial(run: RunFolder, trial: str, *, cache: Path | None) -> TrialReceipt:
    """The receipt of a trial's final, in the newest checkpoint over it that is anchored, else in the newest over it.

    Args:
        trial: its id, 16 hex digits.
        cache: the folder in which an index of the journal is kept; None for none.

    Raises:
        Refusal: `trial_unfinished`, `evidence_damaged`, `evidence_unreadable`, `run_not_found`.
    """
    sizes, pushed_sizes = _standing(run, checkpoints.NAME), _standing(run, receipts.NAME)

    def prove(index: JournalIndex, first: Entry) -> TrialReceipt:
        marks = index.marks(trial)
        if marks.final is None:
            raise Refusal(Reason.TRIAL_UNFINISHED, f"the trial {trial} has no final", path=JOURNAL)
        line = index.line(marks.final)
        size = _covering(marks.final, sizes, pushed_sizes)
        key = _key(first)
        signed = _checkpoint(run, size, first, key)
        entry = parse_line(line, marks.final + 1)
        if entry.kind is not Kind.TRIAL_FINAL or entry.body["trial"] != trial:
            raise damaged("the line is not the trial's final", f"{JOURNAL}:{marks.final + 1}")
        hashes = [index.root(leaves) for leaves in _inclusion(index, size, marks.final)]
        merkle.verify_inclusion(merkle.leaf_hash(line), marks.final, size, hashes, signed.head.root)
        named = _admitted(index, marks.admitted)
        if named is None or trial_id(named["task"], named["model"], named["arm"], named["epoch"]) != trial:
            raise damaged("nothing in the run says which trial this is", f"{JOURNAL}:{marks.final + 1}", trial)
        pushed = receipts.anchored(run, size)
        return TrialReceipt(marks.final, tuple(hashes), signed.note, line.decode(), named, pushed, str(key))

    return _indexed(run, cache, prove)


def prove_extends(run: RunFolder, old_note: bytes, *, cache: Path | None, path: str | None = None) -> ConsistencyProof:
    """The proof that the run's newest checkpoint extends one that was kept.

    Args:
        old_note: the older checkpoint's file; `path` names it in refusals.

    Raises:
        Refusal: `evidence_damaged` where it is no checkpoint of this run by its key, or the journal does not extend
            it; `evidence_unreadable`, `run_not_found`.
    """
    sizes = _standing(run, checkpoints.NAME)

    def prove(index: JournalIndex, first: Entry) -> ConsistencyProof:
        key = _key(first)
        old = _verified(old_note, path, first, key)
        newest = max(sizes, default=0)
        if not 0 < old.size <= newest:
            message = "the run has no checkpoint that covers as much as the one that was kept"
            raise damaged(message, "checkpoints", observed=newest, required=old.size)
        signed = _checkpoint(run, newest, first, key)
        _all_there(index, newest)
        hashes = [index.root(leaves) for leaves in merkle.consistency_path(newest, old.size)]
        merkle.verify_consistency(old.size, newest, old.root, signed.head.root, hashes)
        return ConsistencyProof(old.size, tuple(hashes), signed.note)

    return _indexed(run, cache, prove)


def _indexed(run: RunFolder, cache: Path | None, prove: Callable[[JournalIndex, Entry], T]) -> T:
    """Prove with the index that is kept; where that does not come to a proof, once more with one made anew."""
    try:
        with open_regular(run.journal_path) as journal:
            line = _first_line(journal)
            first = _first(line)
            if cache is not None:
                kept = cache / f"{_run_id(first)}-{sha256(line).hexdigest()[:16]}.sqlite"
                with suppress(_InMemory):
                    return _kept(kept, journal, first, prove)
            try:
                return _with(None, journal, first, prove)
            except IndexUnfit as fault:
                raise damaged(f"the journal changed while it was read: {fault}", JOURNAL) from fault
    except FileNotFoundError as error:
        raise Refusal(Reason.RUN_NOT_FOUND, "there is no journal", path=str(run.path)) from error
    except OSError as error:
        raise unreadable("the journal", JOURNAL, error) from error


class _InMemory(Exception):
    """No index can be kept there now."""


def _kept(kept: Path, journal: BinaryIO, first: Entry, prove: Callable[[JournalIndex, Entry], T]) -> T:
    try:
        known = kept.exists()
        try:
            return _with(kept, journal, first, prove)
        except (Refusal, IndexUnfit) as fault:
            if not known:
                raise fault if isinstance(fault, Refusal) else _InMemory from fault
        except sqlite3.Error as fault:
            if fault.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise _InMemory from fault
        forget(kept)
        return _with(kept, journal, first, prove)
    except (IndexUnfit, sqlite3.Error, OSError) as fault:
        raise _InMemory from fault


def _with(kept: Path | None, journal: BinaryIO, first: Entry, prove: Callable[[JournalIndex, Entry], T]) -> T:
    with closing(open_database(kept)) as database:
        return prove(JournalIndex(database, journal), first)


def _first(line: bytes) -> Entry:
    entry = parse_line(line, 1)
    if entry.kind is not Kind.RUN_ADMITTED or not _RUN_ID.fullmatch(str(entry.body["run_id"])):
        raise damaged("the journal does not begin with run.admitted", f"{JOURNAL}:1")
    return entry


def _first_line(journal: BinaryIO) -> bytes:
    journal.seek(0)
    line, newline, _ = journal.read(MAX_LINE_BYTES + 1).partition(b"\n")
    if not newline:
        raise damaged("the journal has no whole line", f"{JOURNAL}:1")
    return line


def _run_id(first: Entry) -> str:
    return str(first.body["run_id"])


def _key(first: Entry) -> notes.VerifierKey:
    stated = first.body["key"]
    vkey = stated.get("vkey") if isinstance(stated, dict) else None
    try:
        return notes.VerifierKey.parse(str(vkey))
    except Refusal as error:
        raise damaged("the run does not name its key", f"{JOURNAL}:1", error.observed) from error


def _standing(run: RunFolder, named: re.Pattern[str]) -> set[int]:
    """Sizes in the names of files of checkpoints. Asked before the journal is read: it holds what they cover."""
    try:
        return {int(match[1]) for path in run.checkpoints.iterdir() if (match := named.fullmatch(path.name))}
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise unreadable("the checkpoints", "checkpoints", error) from error


def _covering(final: int, sizes: Set[int], pushed: Set[int]) -> int:
    """The size of the checkpoint to prove in: the newest over line `final` that is anchored, else the newest."""
    over = [size for size in sizes if size > final]
    if not over:
        message = "the trial has its final, and no checkpoint covers it yet"
        remedy = "Ask again in a minute: a run that goes on makes one each minute. `proctor resume` ends one that died."
        raise Refusal(Reason.TRIAL_UNFINISHED, message, path=f"{JOURNAL}:{final + 1}", remedy=remedy)
    return max([size for size in over if size in pushed] or over)


def _checkpoint(run: RunFolder, size: int, first: Entry, key: notes.VerifierKey) -> _Signed:
    path = f"checkpoints/{checkpoints.name_of(size)}"
    try:
        with open_regular(run.path / path) as file:
            data = file.read(notes.MAX_NOTE_BYTES + 1)
    except OSError as error:
        raise unreadable("a checkpoint", path, error) from error
    head = _verified(data, path, first, key)
    if head.size != size:
        raise damaged("a checkpoint's size is not that of its name", path, observed=head.size)
    return _Signed(data, head)


def _verified(data: bytes, path: str | None, first: Entry, key: notes.VerifierKey) -> notes.Checkpoint:
    note = notes.parse(data, path=path)
    head = notes.Checkpoint.parse(note.text, path=path)
    origin = checkpoints.origin(_run_id(first))
    if head.origin != origin:
        raise damaged("a checkpoint of another run", path or "checkpoint", head.origin[:120], origin)
    note.verify(key, path=path)
    return head


def _inclusion(index: JournalIndex, size: int, leaf: int) -> Sequence[merkle.Range]:
    _all_there(index, size)
    return merkle.inclusion_path(size, leaf)


def _all_there(index: JournalIndex, size: int) -> None:
    if index.size < size:
        message = "the journal has fewer lines than a checkpoint covers"
        raise damaged(message, JOURNAL, observed=index.size, required=size)


def _admitted(index: JournalIndex, line: int | None) -> Identity | None:
    if line is None:
        return None
    body = parse_line(index.line(line), line + 1).body
    task, model, arm, epoch = (body.get(name) for name in ("task", "model", "arm", "epoch"))
    if not isinstance(task, str) or not isinstance(arm, str) or type(epoch) is not int:
        return None
    return Identity(task=task, model=model if isinstance(model, str) else None, arm=arm, epoch=epoch)
