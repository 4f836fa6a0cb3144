"""A public copy of a run: chosen bodies are left out, and what stays is still held together by digests and signatures.

The journal is read twice: a body that several fields name is withheld if one of them asks for it, wherever it comes.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from proctor.core.files import NO_SPACE
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence import checkpoints
from proctor.evidence.anchors import receipts
from proctor.evidence.disk import Disk
from proctor.evidence.entries import BLOB_FIELDS, JOURNAL, Chain, Entry, damaged, own_line, parse_line
from proctor.evidence.kinds import FORMAT, Kind
from proctor.evidence.lock import read_lock
from proctor.evidence.public.copying import Copier
from proctor.evidence.public.folders import Source, Target
from proctor.evidence.public.ledger import Ledger
from proctor.evidence.public.withhold import DEFAULT, Withhold, kind_of_body
from proctor.evidence.reader import read_lines
from proctor.evidence.runfolder import MANIFEST_NAME, RunFolder, inside_run
from proctor.evidence.withheld import WITHHELD, withheld_refusal

_BLOB = re.compile(r"blobs/[0-9a-f]{2}/([0-9a-f]{64})", re.ASCII)
_SHOWN = 20
_FREE = "Free space there, or name another folder with -o, and export again."


@dataclass(frozen=True)
class LeftOut:
    """Bytes that no entry names, and that are no part of the copy: the first few of `count` files, with their sizes."""

    count: int = 0
    size: int = 0
    first: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Published:
    """A copy that was made. `withheld` has bodies and bytes by the word of their kind; a body counts once.

    `scored` counts the entries that say what an answer was compared with, which may quote both.
    """

    out: Path
    run_id: str
    fingerprint: str
    entries: int
    ended: bool
    scored: int
    withheld: dict[str, tuple[int, int]]
    left_out: LeftOut


@dataclass
class _Survey:
    """The journal at the first reading: what its entries say of the run, the SHA-256 of its lines, the file's size."""

    run_id: str = ""
    fingerprint: str = ""
    chain: Chain = field(default_factory=Chain)
    digest: bytes = b""
    size: int = 0
    ended: bool = False
    scored: int = 0


def publish(run: RunFolder, out: Path, asked: Collection[Withhold] = DEFAULT) -> Published:
    """Write the public copy of a run that nobody writes to `out`, which must not exist or be empty. Blocks.

    What is copied is held against the digests that entries name; whether the run verifies is not asked.

    Raises:
        Refusal: `run_locked`; `evidence_withheld` of a copy; `evidence_damaged`, `evidence_unreadable`,
            `run_not_found`, `format_unknown`; `would_overwrite`, `output_unwritable`, `disk_full`.
    """
    if run.withheld is not None:
        raise withheld_refusal("what a copy is made of")
    _require_rest(run)
    target = _free(out)
    source = Source(run.path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with Ledger() as ledger, _removed(partial):
            # what is no file refuses before anything is copied
            for _ in source.files():
                pass
            survey = _survey(run, asked, ledger)
            partial.mkdir(parents=True)
            left_out = _copy(source, Target(partial), asked, ledger, survey)
            _require_rest(run, survey.size)
            partial.rename(target)
            Disk().sync_dir(target.parent)
            counts = ledger.counts()
    except OSError as error:
        raise _unwritable(out, error) from error
    except sqlite3.Error as error:
        full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        reason = Reason.DISK_FULL if full else Reason.OUTPUT_UNWRITABLE
        raise Refusal(
            reason, f"the list of what is withheld cannot be kept: {error}", path=str(out), remedy=_FREE
        ) from error
    return Published(
        out=target,
        run_id=survey.run_id,
        fingerprint=survey.fingerprint,
        entries=survey.chain.size,
        ended=survey.ended,
        scored=survey.scored,
        withheld=counts,
        left_out=left_out,
    )


def _survey(run: RunFolder, asked: Collection[Withhold], ledger: Ledger) -> _Survey:
    """Read the journal strictly, and note each blob that one of its names asks to leave out."""
    found, digest = _Survey(), hashlib.sha256()
    with Source(run.path).open(JOURNAL) as file:
        found.size = os.fstat(file.fileno()).st_size
        for number, line in enumerate(read_lines(file), start=1):
            entry = parse_line(line, number, chain=found.chain)
            with _understood(number):
                kind = _known(entry)
                for name in BLOB_FIELDS[kind]:
                    ref = entry.body[name]
                    if ref is not None and kind_of_body(kind, name) in asked:
                        ledger.withhold_blob(ref["blob"], ref["size"], kind_of_body(kind, name).word)
                if number == 1:
                    found.run_id, found.fingerprint = entry.body["run_id"], entry.body["key"]["fingerprint"]
            found.ended = kind is Kind.RUN_ENDED
            found.scored += kind is Kind.ANSWER_SCORED
            found.chain.advance(line)
            digest.update(line + b"\n")
    if found.chain.size == 0:
        raise damaged("the journal has no whole line", f"{JOURNAL}:1")
    found.digest = digest.digest()
    return found


def _copy(source: Source, target: Target, asked: Collection[Withhold], ledger: Ledger, survey: _Survey) -> LeftOut:
    copier = Copier(source, target, asked, ledger)
    try:
        with source.open(JOURNAL) as file, target.new(JOURNAL) as copy:
            digest = hashlib.sha256()
            for number, line in enumerate(islice(read_lines(file), survey.chain.size), start=1):
                with _understood(number):
                    copier.take(*own_line(line))
                copy.write(line + b"\n")
                digest.update(line + b"\n")
            # What is taken apart without ado was read strictly before.
            if digest.digest() != survey.digest:
                raise damaged("the journal is not what it was when it was read first", JOURNAL)
        copier.finish(_unnamed(source, survey.chain.size))
    finally:
        copier.close()
    with target.new(WITHHELD) as file:
        for piece in ledger.written():
            file.write(piece)
    left_out = _left_out(source, target, ledger)
    target.sync_folders()
    return left_out


def _unnamed(source: Source, entries: int) -> list[str]:
    """Manifests, checkpoints and receipts that stand, which an entry need not name. Raises Refusal."""
    found = [f"manifests/{name}" for name in source.names("manifests/") if MANIFEST_NAME.fullmatch(name)]
    for name in source.names("checkpoints/"):
        made = checkpoints.NAME.fullmatch(name) or receipts.NAME.fullmatch(name)
        if made is None:
            continue
        if int(made[1]) > entries:
            # left out, it would take along what shows that the journal was cut
            raise damaged(
                "a checkpoint covers more entries than the journal has", f"checkpoints/{name}", int(made[1]), entries
            )
        found.append(f"checkpoints/{name}")
    return found


def _left_out(source: Source, target: Target, ledger: Ledger) -> LeftOut:
    """What stands in the run and is neither copied nor withheld: whole files, and what follows the last named byte."""
    count = total = 0
    first: list[tuple[str, int]] = []
    for path, size in source.files():
        written = target.size(path)
        if written == size or (written is None and _is_withheld(ledger, path)):
            continue
        count, total = count + 1, total + size - (written or 0)
        if len(first) < _SHOWN:
            first.append((path.encode("utf-8", "backslashreplace").decode(), size - (written or 0)))
    return LeftOut(count, total, tuple(sorted(first)))


def _is_withheld(ledger: Ledger, path: str) -> bool:
    blob = _BLOB.fullmatch(path)
    return ledger.has_blob(blob[1]) if blob is not None else ledger.has_file(path)


def _known(entry: Entry) -> Kind:
    if not isinstance(entry.kind, Kind) or (entry.kind is Kind.RUN_ADMITTED and entry.body["format"] != FORMAT):
        raise Refusal(
            Reason.FORMAT_UNKNOWN,
            "the journal is in a format, or has a kind of entry, that this version does not know",
            path=f"{JOURNAL}:{entry.seq + 1}",
        )
    return entry.kind


@contextmanager
def _understood(number: int) -> Iterator[None]:
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as fault:
        where = f"{JOURNAL}:{number}"
        raise damaged(f"an entry's body cannot be understood: {fault!r}", where) from fault


def _require_rest(run: RunFolder, size: int | None = None) -> None:
    """See that nobody writes the run, nor did since its journal had that size."""
    lock = read_lock(run)
    if lock.live or (size is not None and run.journal_path.stat().st_size != size):
        raise Refusal(
            Reason.RUN_LOCKED,
            "a process writes this run, and a copy is made of one that stands still",
            path=str(run.path),
            observed={"pid": lock.pid, "host": lock.host},
        )


def _free(out: Path) -> Path:
    """Where the copy goes: a place of its own, without links.

    Raises:
        Refusal: `would_overwrite`, `output_unwritable`.
    """
    try:
        # a loop of links is a RuntimeError here, and no refusal of ours
        target = out.resolve()
    except (OSError, RuntimeError) as error:
        raise _unwritable(out, error) from error
    try:
        if (inside := inside_run(target)) is not None:
            raise Refusal(Reason.OUTPUT_UNWRITABLE, inside, path=str(out), remedy="Name another folder with -o.")
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise Refusal(Reason.WOULD_OVERWRITE, "something stands there already", path=str(out))
    except OSError as error:
        raise _unwritable(out, error) from error
    return target


@contextmanager
def _removed(partial: Path) -> Iterator[None]:
    """What was begun there is gone when the block ends, unless it was put in its place."""
    try:
        yield
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _unwritable(out: Path, error: OSError | RuntimeError) -> Refusal:
    code = error.errno if isinstance(error, OSError) else None
    reason = Reason.DISK_FULL if code in NO_SPACE else Reason.OUTPUT_UNWRITABLE
    said = (error.strerror if isinstance(error, OSError) else None) or str(error)
    remedy = _FREE if reason is Reason.DISK_FULL else "Name another folder with -o."
    return Refusal(reason, f"the copy cannot be written: {said}", path=str(out), remedy=remedy)
