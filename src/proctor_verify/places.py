"""Looking elsewhere: the checkpoints of a run are read at each place that was asked for, before its journal is.

Nothing here judges the journal: each checkpoint becomes a size and a root, to be held against the journal's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from proctor_verify import notes
from proctor_verify.elsewhere import Asked, Elsewhere, Head, Place
from proctor_verify.errors import Unreadable
from proctor_verify.folder import Folder, NotThere
from proctor_verify.journal import MAX_LINE
from proctor_verify.outside import small_file, start_of_file
from proctor_verify.repository import opened
from proctor_verify.schema import RUN_ID, body_fault, envelope_fault
from proctor_verify.strictjson import loads_canonical

# A checkpoint every five minutes for a year is about as many.
MAX_HEADS = 100_000
_NOTE_NAME = re.compile(r"[0-9]{12}\.note", re.ASCII)
_BUNDLE = b"# v"


@dataclass(frozen=True)
class RunName:
    """Which run's checkpoints are looked for, and whose signature they must have."""

    run_id: str
    key: notes.Key

    @property
    def origin(self) -> str:
        """The first line of its checkpoints."""
        return notes.origin_of(self.run_id)

    @classmethod
    def read(cls, folder: Folder) -> RunName | None:
        """From the first line of a run's journal; None where that says no name."""
        try:
            line = folder.read_start("journal.jsonl", MAX_LINE + 1).partition(b"\n")[0]
            value = loads_canonical(line)
            if envelope_fault(value) or value["kind"] != "run.admitted" or body_fault("run.admitted", value["body"]):
                return None
            return cls(value["body"]["run_id"], notes.verifier_key(value["body"]["key"]["vkey"]))
        except Unreadable:
            return None


def look_elsewhere(asked: Asked, folder: Folder) -> Elsewhere:
    """Read every place; of a run whose name is not known, nothing can be found there."""
    return look_for(asked, RunName.read(folder) if asked else None)


def look_for(asked: Asked, run: RunName | None) -> Elsewhere:
    """Read every place for the checkpoints of a run."""
    if run is None:
        unknown = "it is not known which run this is"
        return Elsewhere(asked, tuple(Place(where, "note", doubt=unknown) for where in asked.anchors))
    judge = _Judge(run, asked.witnesses)
    return Elsewhere(
        asked,
        tuple(_read_place(where, run, judge) for where in asked.anchors),
        judge.head("", asked.since) if asked.since is not None else None,
    )


class _Judge:
    """Makes heads of notes; one that was seen before is not looked at again: to verify a signature takes long."""

    def __init__(self, run: RunName, witnesses: Sequence[notes.Witness]) -> None:
        self._run = run
        self._witnesses = witnesses
        self._last: tuple[bytes, Head] | None = None

    def head(self, name: str, raw: bytes) -> Head:
        """What a note says, or why it is no checkpoint of the run."""
        if self._last is not None and self._last[0] == raw:
            return self._last[1]._replace(name=name)
        head = self._head(name, raw)
        self._last = raw, head
        return head

    def _head(self, name: str, raw: bytes) -> Head:
        try:
            note = notes.parse(raw)
            checkpoint = notes.checkpoint(note.text)
        except Unreadable as error:
            return _fault(name, f"is no checkpoint: {error}")
        if checkpoint.origin != self._run.origin:
            return _fault(name, f"is of {checkpoint.origin}, not of {self._run.origin}")
        if not note.signed_by(self._run.key):
            return _fault(name, "is not signed by the run's key")
        seen_by = tuple(witness.signed(note) for witness in self._witnesses)
        return Head(name, checkpoint.size, checkpoint.root, None, seen_by)


def _fault(name: str, why: str) -> Head:
    """What stands there by that name is no checkpoint of the run."""
    return Head(name, 0, b"", why)


def witnessed_here(folder: Folder, sizes: Iterable[int], witnesses: Sequence[notes.Witness]) -> Iterator[Head]:
    """The checkpoints of the run's own folder that are notes, with who signed them; what else they are is not asked."""
    for size in sizes:
        try:
            note = notes.parse(folder.read(notes.path_of(size), notes.MAX_NOTE_BYTES))
            checkpoint = notes.checkpoint(note.text)
        except Unreadable:
            continue
        seen_by = tuple(witness.signed(note) for witness in witnesses)
        yield Head(notes.path_of(size), checkpoint.size, checkpoint.root, None, seen_by)


def _read_place(where: str, run: RunName, judge: _Judge) -> Place:
    kind, read = _reader(where, run)
    place = Place(where, kind)
    try:
        for name, found in read(place):
            if len(place.heads) == MAX_HEADS:
                raise Unreadable(f"there are more than {MAX_HEADS:,} checkpoints of this run, and no more were read")
            head = judge.head(name, found) if isinstance(found, bytes) else _fault(name, str(found))
            if kind == "drop" and head.fault is None and name != notes.name_of(head.size):
                head = _fault(name, f"covers {head.size} entries")
            place.heads.append(head)
    except Unreadable as error:
        place.doubt = str(error)
    place.heads.sort(key=lambda head: (head.size, head.name))
    return place


_Read = Callable[[Place], Iterator[tuple[str, bytes | Unreadable]]]


def _reader(where: str, run: RunName) -> tuple[str, _Read]:
    """What an argument of `--anchor` means: what stands there decides, and an address of git is what is left."""
    path = Path(where)
    try:
        is_folder, stands = path.is_dir(), path.exists()
    except (OSError, ValueError):
        is_folder = stands = False
    if not stands and not _is_address(where):
        return "note", lambda _: _nothing()
    address = str(path.absolute()) if stands else where
    if is_folder and not _is_repository(path):
        return "drop", lambda place: _read_drop(path, run.run_id, place)
    if stands and not is_folder and not _is_bundle(where):
        return "note", lambda _: iter([("", small_file(where, notes.MAX_NOTE_BYTES))])
    return "git", lambda place: _read_git(address, run.run_id, place)


def _is_address(where: str) -> bool:
    """Whether this may be an address of git: it has a scheme or a host, and `:` after that."""
    return ":" in where.partition("/")[0]


def _nothing() -> Iterator[tuple[str, bytes | Unreadable]]:
    raise Unreadable("nothing stands there")


def _is_repository(path: Path) -> bool:
    return (path / ".git").exists() or all((path / name).exists() for name in ("HEAD", "objects", "refs"))


def _is_bundle(where: str) -> bool:
    try:
        return start_of_file(where, len(_BUNDLE)) == _BUNDLE
    except Unreadable:
        return False


def _read_git(address: str, run_id: str, place: Place) -> Iterator[tuple[str, bytes | Unreadable]]:
    with opened(address, f"refs/proctor/{run_id}", "refs/proctor/*") as ref:
        place.others = ref.others
        yield from ref.commits(MAX_HEADS + 1, notes.MAX_NOTE_BYTES)


def _read_drop(path: Path, run_id: str, place: Place) -> Iterator[tuple[str, bytes | Unreadable]]:
    folder = Folder(path)
    try:
        runs = (each for each in folder.names() if each.what == "a folder" and RUN_ID.holds(each.name))
        place.others = sum(each.name != run_id for each in islice(runs, MAX_HEADS))
        try:
            names = _some_names(folder, run_id)
        except NotThere:
            return
        for name in names:
            if not _NOTE_NAME.fullmatch(name):
                yield name, Unreadable("is no checkpoint's name")
                continue
            try:
                raw = folder.read(f"{run_id}/{name}", notes.MAX_NOTE_BYTES)
            except Unreadable as error:
                yield name, error
                continue
            yield name, raw
    finally:
        folder.close()


def _some_names(folder: Folder, run_id: str) -> list[str]:
    """The names in the run's folder, but for those that start with a dot: drafts of who pushes."""
    names: list[str] = []
    for name in folder.names(run_id):
        if not name.name.startswith("."):
            names.append(name.name)
        if len(names) > MAX_HEADS:
            break
    return sorted(names)
