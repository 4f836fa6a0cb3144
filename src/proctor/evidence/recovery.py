"""Mending what a process left behind that ended without a word: nothing is thrown away unseen, nothing fused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proctor.core.canonical import MAX_SAFE_INTEGER, encode
from proctor.core.outcomes import Outcome
from proctor.core.reasons import Reason
from proctor.evidence.attempt_files import digest_of, digested, in_entries
from proctor.evidence.disk import Disk, end_of_data, is_regular, open_regular
from proctor.evidence.entries import MAX_BODY_BYTES, damaged
from proctor.evidence.exchanges import unanswered
from proctor.evidence.kinds import Kind
from proctor.evidence.runfolder import RunFolder
from proctor.evidence.scan import Scan

_CHUNK = 1024 * 1024
# What stands before the path of a file that was moved.
_NUMBERED = "quarantine/0001/"


def require_room(run: RunFolder, found: Scan) -> None:
    """See that what no entry names can be told of in one entry: a process that died leaves a few, and not hundreds.

    Raises:
        Refusal: `evidence_damaged`, with nothing changed.
        OSError: the disk's.
    """
    names = [f"{_NUMBERED}{run.relative(path)}" for path, _ in _leftovers(run, found)]
    names += [path for each in _moved(run) if (path := run.relative(each)) not in found.quarantined]
    items = [{"path": name, "sha256": "0" * 64, "size": MAX_SAFE_INTEGER, "source": name} for name in names]
    needed = len(encode({"quarantined": items, "lost": list(found.open)}))
    if needed > MAX_BODY_BYTES:
        message = "more files stand there that no entry names than a process leaves that dies: move them away"
        raise damaged(message, f"{names[0]} …", observed=len(names))


def set_aside(run: RunFolder, found: Scan) -> list[dict[str, Any]]:
    """Move what no entry names into `quarantine/`, and cut it off; returns `quarantined` for `run.recovered`.

    What an earlier recovery moved, and died before it could say so, is returned too. Raises OSError.
    """
    number = 1 + max((int(p.name) for p in _listed(run.quarantine) if p.name.isdecimal()), default=0)
    folder = run.quarantine / f"{number:04d}"
    _remove_drafts(run)
    for path, keep in _leftovers(run, found):
        _copy_end(run.disk, path, keep, folder / run.relative(path))
        _cut(run.disk, path, keep)
    return [item for item in _quarantined(run) if item["path"] not in found.quarantined]


def cut_off(run: RunFolder, found: Scan) -> None:
    """Remove what no entry names: for a writer that knows it to be its own, never acknowledged. Raises OSError."""
    _remove_drafts(run)
    for path, keep in _leftovers(run, found):
        _cut(run.disk, path, keep)


def last_words(run: RunFolder, found: Scan, outcome: Outcome, reason: Reason) -> Iterator[tuple[Kind, dict[str, Any]]]:
    """The entries that end each attempt in flight: what it held is charged, its files as they stand, its end.

    Raises OSError.
    """
    for attempt, known in found.open.items():
        yield from ((Kind.EXCHANGE_ENDED, _unknown(body)) for body in known.exchanges.values())
        # What was derived for another end than this one is so no more; the digest named stays.
        files = [*known.derived.values(), *digested(run.path / known.folder, known.files)]
        for group in in_entries({**file, "role": "partial"} for file in files):
            yield Kind.ATTEMPT_FILES, {"attempt": attempt, "files": group}
        yield (
            Kind.ATTEMPT_ENDED,
            {"attempt": attempt, "outcome": outcome.value, "exception": reason.id, "message": None, "timing": {}},
        )


def _unknown(admitted: dict[str, Any]) -> dict[str, Any]:
    """The end of an exchange that was in flight: it may have been answered and billed, so its worst case is owed."""
    return {
        "attempt": admitted["attempt"],
        "exchange": admitted["exchange"],
        "outcome": "unknown",
        "charged": admitted["held"],
        "overrun": False,
        **unanswered(None, estimated=True),
    }


def _leftovers(run: RunFolder, found: Scan) -> Iterator[tuple[Path, int]]:
    """Files with bytes that no entry names, and how many bytes of each to keep."""
    if found.torn:
        yield run.journal_path, found.offset
    for pack in _listed(run.packs):
        keep = found.packs.get(pack.name, 0)
        if is_regular(pack) and not pack.name.startswith(".") and (pack.stat().st_size > keep or keep == 0):
            yield pack, keep
    for folder in _listed(run.blobs):
        for blob in _listed(folder):
            if is_regular(blob) and run.relative(blob) not in found.blobs:
                yield blob, 0


def _remove_drafts(run: RunFolder) -> None:
    """Files that were to be put in place whole, and were not."""
    for folder in [run.checkpoints, *_listed(run.blobs)]:
        for draft in [path for path in _listed(folder) if path.name.startswith(".")]:
            run.disk.unlink(draft)


def _copy_end(disk: Disk, source: Path, start: int, target: Path) -> None:
    disk.make_dirs(target.parent)
    copy = disk.open_append(target, new=True)
    try:
        # a hole at the end has no bytes to keep, and may be larger than any disk
        left = end_of_data(source, start) - start
        with open_regular(source) as file:
            file.seek(start)
            while left > 0 and (chunk := file.read(min(left, _CHUNK))):
                copy.append(chunk)
                left -= len(chunk)
        copy.sync()
    finally:
        copy.close()
    disk.sync_dir(target.parent)


def _cut(disk: Disk, path: Path, keep: int) -> None:
    if keep:
        disk.truncate(path, keep)
    else:
        disk.unlink(path)
        disk.sync_dir(path.parent)


def _quarantined(run: RunFolder) -> Iterator[dict[str, Any]]:
    for path in _moved(run):
        digest, size = digest_of(path)
        relative = run.relative(path)
        source = relative.split("/", 2)[2]
        yield {"path": relative, "sha256": digest, "size": size, "source": source}


def _moved(run: RunFolder) -> Iterator[Path]:
    """Every file that this or an earlier recovery moved."""
    for numbered in _listed(run.quarantine):
        yield from sorted(path for path in numbered.rglob("*") if is_regular(path))


def _listed(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []
