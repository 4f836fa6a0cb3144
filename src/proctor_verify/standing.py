"""What stands in the place: the journal as it was when reading began, and whether it is still; a run without one."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import islice
from typing import BinaryIO

from proctor_verify.checks.manifests import manifest_names, read_manifest
from proctor_verify.errors import Unreadable
from proctor_verify.folder import Folder, NotPlain, NotThere
from proctor_verify.run import Run, is_note_name

JOURNAL = "journal.jsonl"
_MOST_NAMES, _SHOWN = 1_000, 5
_OF_A_RUN = frozenset({"design.json", "summary.json", "grade_summary.json"})


class Standing:
    """A plain file, read up to the size that it has now and no further, however it grows."""

    def __init__(self, folder: Folder, path: str) -> None:
        """Raises as `Folder.open`."""
        self._folder, self._path = folder, path
        self._stream: BinaryIO = folder.open(path)
        self._began = os.fstat(self._stream.fileno())
        self._left = self.size = self._began.st_size

    def __enter__(self) -> Standing:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, most: int) -> bytes:
        """The next bytes. Raises OSError."""
        data = self._stream.read(min(most, self._left)) if self._left else b""
        self._left -= len(data)
        return data

    def changed(self) -> str | None:
        """What happened to it since it was opened; None where it stands as it did."""
        now = os.fstat(self._stream.fileno())
        if now.st_size != self.size:
            return f"was {self.size:,} bytes long when reading began, and {now.st_size:,} when it ended"
        if now.st_mtime_ns != self._began.st_mtime_ns:
            return "was written to while it was read"
        try:
            with self._folder.open(self._path) as again:
                there = os.fstat(again.fileno())
        except Unreadable as error:
            return f"{error} any more"
        if (there.st_dev, there.st_ino) != (now.st_dev, now.st_ino):
            return "is another file than the one that was read"
        return None


def without_journal(run: Run, error: Unreadable) -> str | None:
    """Why there is nothing to check in a folder whose journal could not be opened; None where a run is left of it."""
    names = manifest_names(run)
    verdicts = [verdict for name in names if (verdict := _verdict(run, name)) is not None]
    refused = verdicts.count("refused")
    if isinstance(error, NotThere | NotPlain) and ("admitted" in verdicts or _remains(run.folder)):
        return None
    if names and refused == len(names):
        return f"nothing was admitted here: {refused} manifests, each a refusal, and no journal"
    if names:
        return f"{JOURNAL} {error}; {len(names)} manifests stand, {refused} of them refusals"
    below = ", ".join(_runs_in(run.folder))
    return f"{JOURNAL} {error}: this is no run folder{f'; of those in it, these are: {below}' if below else ''}"


def _verdict(run: Run, name: str) -> str | None:
    try:
        return str(read_manifest(run, f"manifests/{name}")["verdict"])
    except Unreadable:
        return None


def _runs_in(folder: Folder) -> list[str]:
    """The first few runs that stand in a folder: one names it one too high."""
    try:
        names = sorted(islice((each.name for each in folder.names() if each.what == "a folder"), _MOST_NAMES))
    except Unreadable:
        return []
    return [name for name in names if _stands(folder, name, JOURNAL.__eq__)][:_SHOWN]


def _remains(folder: Folder) -> bool:
    """Whether something stands there that only a run that was admitted has."""
    if _stands(folder, "", _OF_A_RUN.__contains__) or _stands(folder, "checkpoints", is_note_name):
        return True
    return any(_stands(folder, place, lambda name: not name.startswith(".")) for place in ("trials", "packs", "blobs"))


def _stands(folder: Folder, place: str, known: Callable[[str], bool]) -> bool:
    try:
        return any(known(name.name) for name in folder.names(place))
    except Unreadable:
        return False
