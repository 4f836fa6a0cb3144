"""Receipts: what stands in a run of each checkpoint that was pushed to an anchor. `docs/evidence-format.md` section 8.

A receipt says where to look; what proves anything is what stands there. One is written durably before an entry names
it, so one that stands unnamed is of a process that died in between, or of the last checkpoint.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from proctor.core.canonical import encode
from proctor.core.refusal import Refusal
from proctor.core.strictjson import MAX_BYTES, loads_canonical
from proctor.evidence.anchors.base import CheckpointFile, Pushed
from proctor.evidence.anchors.places import AnchorKind, Place
from proctor.evidence.checkpoints import name_of
from proctor.evidence.disk import open_regular, unreadable
from proctor.evidence.entries import damaged
from proctor.evidence.runfolder import FileRef, RunFolder

FORMAT = 1

NAME = re.compile(r"([0-9]{12})\.(git|drop)\.json", re.ASCII)
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z", re.ASCII)
_FIELDS = frozenset(
    {
        *("format", "anchor", "location", "origin", "size", "sha256", "return_code"),
        *("started", "ended", "attempts", "snapshot"),
    }
)


class Anchored(TypedDict):
    """Where a checkpoint was pushed, as its receipt says; `commit` is None for a folder."""

    anchor: str
    location: str
    commit: str | None


@dataclass(frozen=True)
class Receipt:
    """One receipt; `file` is how it stands. Times are RFC 3339 in UTC with microseconds."""

    anchor: AnchorKind
    location: str
    origin: str
    size: int
    sha256: str
    started: str
    ended: str
    attempts: int
    snapshot: Mapping[str, Any]
    file: FileRef

    @property
    def commit(self) -> str | None:
        """The commit at a git repository that it names."""
        commit = self.snapshot.get("commit")
        return commit if isinstance(commit, str) else None

    def entry(self) -> dict[str, Any]:
        """The body of its `checkpoint.anchored`."""
        return {"anchor": self.anchor.value, "path": self.file.path, "sha256": self.file.sha256, "size": self.size}


@dataclass(frozen=True)
class Stretch:
    """How long a push took: from the first try to what was read back, and how many tries it was."""

    started: str
    ended: str
    attempts: int


def write(run: RunFolder, place: Place, checkpoint: CheckpointFile, pushed: Pushed, took: Stretch) -> Receipt:
    """Put a receipt in place, durably, and return it.

    Raises OSError.
    """
    record = {
        "format": FORMAT,
        "anchor": place.kind.value,
        "location": place.location,
        "origin": checkpoint.origin,
        "size": checkpoint.size,
        "sha256": checkpoint.sha256,
        "return_code": pushed.return_code,
        "started": took.started,
        "ended": took.ended,
        "attempts": took.attempts,
        "snapshot": dict(pushed.snapshot),
    }
    path, data = path_of(run, place.kind, checkpoint.size), encode(record)
    run.disk.put(path, data)
    return _receipt(record, FileRef.of(run.relative(path), data))


def path_of(run: RunFolder, kind: AnchorKind, size: int) -> Path:
    """Where the receipt of a checkpoint of that size stands."""
    return run.checkpoints / f"{size:012d}.{kind.value}.json"


def standing(run: RunFolder) -> list[Receipt]:
    """All receipts of a run, by size and then anchor. Each is held against its name and its checkpoint's file.

    Raises:
        Refusal: `evidence_damaged` for one that is none, or not of a checkpoint that stands; `evidence_unreadable`.
    """
    found = []
    with _readable(run):
        for path in sorted(run.checkpoints.iterdir()) if run.checkpoints.is_dir() else ():
            named = NAME.fullmatch(path.name)
            if named is not None:
                found.append(_read(run, path, int(named[1]), AnchorKind(named[2])))
    return found


def anchored(run: RunFolder, size: int) -> tuple[Anchored, ...]:
    """Where the checkpoint of a size was pushed, by anchor; raises as `standing`."""
    with _readable(run):
        paths = ((kind, path_of(run, kind, size)) for kind in sorted(AnchorKind, key=lambda kind: kind.value))
        found = [_read(run, path, size, kind) for kind, path in paths if path.exists()]
    return tuple(Anchored(anchor=each.anchor.value, location=each.location, commit=each.commit) for each in found)


@contextmanager
def _readable(run: RunFolder) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unreadable("the receipts", run.relative(run.checkpoints), error) from error


def held(own: Iterable[tuple[AnchorKind, str]], stand: Iterable[Receipt]) -> list[dict[str, Any]]:
    """What each place holds, as receipts say: `{anchor, location, size, time}`, the last two null where there is none.

    Args:
        own: kinds and texts of the design's anchors, which come first.
        stand: receipts, in the order of `standing`.
    """
    last = {(receipt.anchor, receipt.location): receipt for receipt in stand}
    found = []
    for place in dict.fromkeys([*own, *last]):
        receipt = last.get(place)
        size, time = (None, None) if receipt is None else (receipt.size, receipt.ended)
        found.append({"anchor": place[0].value, "location": place[1], "size": size, "time": time})
    return found


def newest(receipts: list[Receipt]) -> dict[AnchorKind, Receipt]:
    """The one of the largest checkpoint of each anchor, of receipts in the order of `standing`."""
    return {receipt.anchor: receipt for receipt in receipts}


def _read(run: RunFolder, path: Path, size: int, kind: AnchorKind) -> Receipt:
    relative = run.relative(path)
    with open_regular(path) as file:
        data = file.read(MAX_BYTES + 1)
    try:
        record = loads_canonical(data, path=relative)
    except Refusal as refusal:
        raise damaged(f"a receipt cannot be read: {refusal.message}", relative) from refusal
    if not isinstance(record, dict) or not _is_whole(record):
        raise damaged("a receipt has not the fields of one", relative)
    if (record["size"], record["anchor"]) != (size, kind.value):
        raise damaged("a receipt is of another checkpoint or anchor than its name says", relative)
    if record["sha256"] != _digest(path.with_name(name_of(size))):
        raise damaged("a receipt is of a checkpoint that does not stand", relative, observed=record["sha256"])
    return _receipt(record, FileRef.of(relative, data))


def _is_whole(record: dict[str, Any]) -> bool:
    texts = ("anchor", "location", "origin", "sha256")
    return (
        record.keys() == _FIELDS
        and all(isinstance(record[name], str) for name in texts)
        and all(isinstance(record[name], str) and _TIME.fullmatch(record[name]) for name in ("started", "ended"))
        and all(type(record[name]) is int for name in ("format", "size", "return_code", "attempts"))
        and isinstance(record["snapshot"], dict)
        and (record["format"], record["return_code"]) == (FORMAT, 0)
    )


def _digest(note: Path) -> str | None:
    try:
        with open_regular(note) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def _receipt(record: Mapping[str, Any], file: FileRef) -> Receipt:
    return Receipt(
        AnchorKind(record["anchor"]),
        record["location"],
        record["origin"],
        record["size"],
        record["sha256"],
        record["started"],
        record["ended"],
        record["attempts"],
        record["snapshot"],
        file,
    )
