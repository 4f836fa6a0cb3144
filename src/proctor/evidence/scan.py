"""What stands in a run folder, read once from start to end before anything is appended. Changes nothing.

Where the writing process died, the last line may be unfinished, and packs, blobs and checkpoints may hold more than
entries name: that is to be mended. Everything else that is not what was written is damage.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence import checkpoints
from proctor.evidence.anchors import receipts
from proctor.evidence.disk import end_of_data, is_regular, open_regular, unreadable
from proctor.evidence.entries import BLOB_FIELDS, JOURNAL, NULL_FIELDS, Chain, Entry, damaged, parse_line
from proctor.evidence.kinds import FORMAT, Kind
from proctor.evidence.packs import Blob
from proctor.evidence.reader import MAX_UNFINISHED, read_lines
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.withheld import withheld_refusal

# Blocks that never reached the disk read as zeros, and begin and end at such offsets.
_DISK_BLOCK = 512
_ZEROS = re.compile(rb"\x00+")


@dataclass(slots=True)
class OpenAttempt:
    """An attempt in flight: its folder, the files below it that entries name, and those among them that are derived."""

    folder: str
    exchanges: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    derived: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(slots=True)
class Scan:
    """A journal as it stands.

    `fingerprint` is of the key that the first entry names. `offset` is the size in bytes of its whole lines, `torn`
    that of what follows. `attempts` counts those of each trial, by a digest of its folder's name. `packs` has the end
    of the last named frame of each pack; `unnamed` the bodies of `checkpoint.made` entries that are missing. `anchored`
    has the receipts that are named, by path, `unanchored` the bodies of `checkpoint.anchored` entries that are missing.
    """

    chain: Chain = field(default_factory=Chain)
    run_id: str = ""
    fingerprint: str = ""
    offset: int = 0
    torn: int = 0
    ended: bool = False
    open: dict[str, OpenAttempt] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    packs: dict[str, int] = field(default_factory=dict)
    blobs: set[str] = field(default_factory=set)
    quarantined: set[str] = field(default_factory=set)
    named: dict[int, dict[str, Any]] = field(default_factory=dict)
    unnamed: list[dict[str, Any]] = field(default_factory=list)
    anchored: dict[str, dict[str, Any]] = field(default_factory=dict)
    unanchored: list[dict[str, Any]] = field(default_factory=list)

    @property
    def covered(self) -> bool:
        """Whether a checkpoint stands that covers the whole journal."""
        return any(body["size"] == self.chain.size for body in [*self.named.values(), *self.unnamed])

    def last_pack(self) -> tuple[int, int]:
        """Number and end of the last pack that an entry names; zeros where there is none."""
        number, end = max(((int(name.split(".")[0]), end) for name, end in self.packs.items()), default=(0, 0))
        return number, end


def scan(run: RunFolder) -> Scan:
    """Read the journal strictly, and check that what its entries name is there: sizes, but digests only of heads.

    Raises:
        Refusal: `evidence_damaged` names the line or file; `run_not_found`, `format_unknown`, `evidence_unreadable`;
            `evidence_withheld` of a public copy.
    """
    found = Scan()
    try:
        if not run.journal_path.is_file():
            raise Refusal(Reason.RUN_NOT_FOUND, "there is no journal", path=str(run.path))
        if run.withheld is not None:
            raise withheld_refusal("what a run needs to go on")
        run.require_own_folders()
        standing = checkpoints.standing(run)
        size = run.journal_path.stat().st_size
        _read(run.journal_path, found, standing)
        found.torn = size - found.offset
        if end_of_data(run.journal_path, found.offset) - found.offset > MAX_UNFINISHED:
            message = "more follows the last whole line than a writer leaves unfinished"
            raise damaged(message, JOURNAL, observed=found.torn, required=MAX_UNFINISHED)
        _check_checkpoints(found, standing)
        _check_receipts(run, found)
        _check_trials(run, found)
        _check_blobs(run, found)
    except OSError as error:
        raise unreadable("the run", str(run.path), error) from error
    return found


def _read(path: Path, found: Scan, standing: dict[int, dict[str, Any]]) -> None:
    chain = found.chain
    with open_regular(path) as file:
        for number, line in enumerate(read_lines(file), start=1):
            try:
                entry = parse_line(line, number, chain=chain)
            except Refusal:
                if chain.size > 0 and _is_torn(path, found.offset):
                    return
                raise
            _note(found, entry, f"{JOURNAL}:{number}")
            chain.advance(line)
            found.offset += len(line) + 1
            head = standing.get(chain.size)
            if head is not None and head["root"] != chain.tree.root().hex():
                raise damaged("the journal's lines are not those of a checkpoint", head["path"], observed=chain.size)
    if chain.size == 0:
        raise damaged("the journal has no whole line", f"{JOURNAL}:1")


def _is_torn(path: Path, start: int) -> bool:
    """Whether all from `start` on is a group of lines of which some blocks never reached the disk."""
    with open_regular(path) as file:
        file.seek(start)
        rest = file.read(min(MAX_UNFINISHED + 1, end_of_data(path, start) - start))
    if len(rest) > MAX_UNFINISHED or b"\x00" not in rest.partition(b"\n")[0]:
        return False
    for hole in _ZEROS.finditer(rest):
        begins, ends = start + hole.start(), start + hole.end()
        if (begins != start and begins % _DISK_BLOCK) or (hole.end() != len(rest) and ends % _DISK_BLOCK):
            return False
    return True


def _note(found: Scan, entry: Entry, where: str) -> None:
    if not isinstance(entry.kind, Kind):
        raise Refusal(Reason.FORMAT_UNKNOWN, f"an entry's kind {entry.kind[:80]!r} is not known", path=where)
    if (entry.kind is Kind.RUN_ADMITTED) != (entry.seq == 0):
        raise damaged("entry 0, and no other, is run.admitted", where)
    if entry.seq == 0 and (type(entry.body["format"]) is not int or entry.body["format"] != FORMAT):
        raise Refusal(
            Reason.FORMAT_UNKNOWN,
            "the run's format is not known",
            path=where,
            observed=repr(entry.body["format"])[:80],
            required=FORMAT,
        )
    found.ended = entry.kind is Kind.RUN_ENDED
    try:
        _note_body(found, entry.kind, entry.body)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(f"an entry's body is not what its kind wants: {error}", where) from error


def _note_body(found: Scan, kind: Kind, body: dict[str, Any]) -> None:
    for name in BLOB_FIELDS[kind]:
        if body[name] is None and name in NULL_FIELDS[kind]:
            continue
        blob = Blob.parse(body[name])
        if blob is None:
            raise ValueError(f"{name} is no blob reference")
        if blob.pack is None:
            found.blobs.add(blob.path)
        else:
            found.packs[blob.pack] = max(found.packs.get(blob.pack, 0), blob.offset + blob.length)
    if kind is Kind.RUN_ADMITTED:
        found.run_id, found.fingerprint = str(body["run_id"]), str(body["key"]["fingerprint"])
    elif kind is Kind.ATTEMPT_ADMITTED:
        found.open[body["attempt"]] = OpenAttempt(_inside(body["folder"]))
        trial = _mark(PurePosixPath(body["folder"]).parts[1])
        found.attempts[trial] = found.attempts.get(trial, 0) + 1
    elif kind is Kind.EXCHANGE_ADMITTED:
        found.open[body["attempt"]].exchanges[body["exchange"]] = body
    elif kind is Kind.EXCHANGE_ENDED:
        del found.open[body["attempt"]].exchanges[body["exchange"]]
    elif kind is Kind.ATTEMPT_FILES:
        for file in body["files"]:
            _note_file(found.open[body["attempt"]], file)
    elif kind is Kind.ATTEMPT_ENDED:
        del found.open[body["attempt"]]
    elif kind is Kind.CHECKPOINT_MADE:
        found.named[body["size"]] = body
    elif kind is Kind.CHECKPOINT_ANCHORED:
        found.anchored[body["path"]] = body
    elif kind is Kind.RUN_RECOVERED:
        found.quarantined.update(item["path"] for item in body["quarantined"])


def _note_file(attempt: OpenAttempt, file: dict[str, Any]) -> None:
    path = file["path"]
    attempt.files.add(path)
    attempt.derived.pop(path, None)
    if file["role"] == "derived":
        attempt.derived[path] = file


def _inside(folder: str) -> str:
    parts = PurePosixPath(folder).parts
    if parts[:1] != ("trials",) or ".." in parts or len(parts) < 2 or "\0" in folder:
        raise ValueError(f"{folder[:80]!r} is no attempt's folder")
    return folder


def _mark(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "big")


def _check_trials(run: RunFolder, found: Scan) -> None:
    """An attempt's folder is made after its admission is durable: one of no attempt means that lines are gone."""
    for trial in _folders(run, run.trials):
        attempts = found.attempts.get(_mark(trial.name), 0)
        for folder in _folders(run, trial):
            if not (folder.name.isascii() and folder.name.isdigit() and int(folder.name) < attempts):
                raise damaged("a folder stands of an attempt that no entry admits", run.relative(folder))
        if not attempts:
            raise damaged("a folder stands of a trial that no entry admits", run.relative(trial))


def _folders(run: RunFolder, folder: Path) -> Iterator[Path]:
    """Folders below, but for names that start with a dot; a link in the place of one is damage."""
    if not folder.is_dir():
        return
    with os.scandir(folder) as names:
        for name in names:
            if name.is_symlink():
                raise damaged("a link stands where a folder should", run.relative(Path(name.path)))
            if name.is_dir() and not name.name.startswith("."):
                yield Path(name.path)


def _check_checkpoints(found: Scan, standing: dict[int, dict[str, Any]]) -> None:
    beyond = [body for size, body in standing.items() if size > found.chain.size]
    if beyond:
        raise damaged(
            "the journal has fewer lines than a checkpoint covers",
            beyond[0]["path"],
            observed=found.chain.size,
            required=beyond[0]["size"],
        )
    for size, body in found.named.items():
        if standing.get(size) != body:
            raise damaged("a checkpoint is not what its entry names", str(body["path"]), standing.get(size), body)
    found.unnamed = [body for size, body in sorted(standing.items()) if size not in found.named]


def _check_receipts(run: RunFolder, found: Scan) -> None:
    stand = {receipt.file.path: receipt for receipt in receipts.standing(run)}
    for path, receipt in stand.items():
        if receipt.origin != checkpoints.origin(found.run_id):
            raise damaged("a receipt is of another run", path, observed=receipt.origin)
    for path, body in found.anchored.items():
        there = stand[path].entry() if path in stand else None
        if there != body:
            raise damaged("a receipt is not what its entry names", path, there, body)
    found.unanchored = [receipt.entry() for path, receipt in stand.items() if path not in found.anchored]


def _check_blobs(run: RunFolder, found: Scan) -> None:
    for name, end in found.packs.items():
        path = run.packs / name
        size = path.lstat().st_size if _is_file(path) else 0
        if size < end:
            raise damaged("a pack is shorter than its entries say", run.relative(path), observed=size, required=end)
    for folder in _folders(run, run.blobs):
        for _ in _folders(run, folder):
            raise damaged("a folder stands where blobs should", run.relative(folder))
    for blob in found.blobs:
        if not _is_file(run.path / blob):
            raise damaged("a blob that an entry names is missing", blob)


def _is_file(path: Path) -> bool:
    try:
        return is_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
