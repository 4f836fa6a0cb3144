"""Checkpoints that stand outside of a run: at anchors, and in files that people kept. Read before the journal is.

Nothing here judges the journal: each checkpoint becomes a size and a root, to be held against the journal's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from proctor_verify import notes
from proctor_verify.errors import Unreadable
from proctor_verify.folder import Folder, NotThere
from proctor_verify.journal import MAX_LINE
from proctor_verify.outside import small_file, start_of_file
from proctor_verify.repository import opened
from proctor_verify.schema import body_fault, envelope_fault
from proctor_verify.strictjson import loads_canonical

# A checkpoint every five minutes for a year is about as many.
MAX_HEADS = 100_000
_RUN_ID = re.compile(r"[0-9A-Za-z_-]{1,64}", re.ASCII)
_NOTE_NAME = re.compile(r"[0-9]{12}\.note", re.ASCII)
_BUNDLE = b"# v"


class Head(NamedTuple):
    """A checkpoint as it stands somewhere: by what name (a commit, a file, or none), and what it says.

    `fault` says why it is none of this run; `size` is 0 then, and `root` is empty. `seen_by` has, for each witness in
    the order in which they were given, whether and when it signed.
    """

    name: str
    size: int
    root: bytes
    fault: str | None
    seen_by: tuple[notes.Witnessed | None, ...] = ()


@dataclass
class Place:
    """One place that was looked at.

    `kind` is git, drop or note (a file); `where` is as the person named it. `others` counts the other runs that stand
    there. `doubt` says why it could not be read, or not to its end.
    """

    where: str
    kind: str
    heads: list[Head] = field(default_factory=list)
    others: int = 0
    doubt: str | None = None


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


@dataclass(frozen=True)
class Asked:
    """What a person wants looked at besides the run. `since` is the bytes of a checkpoint that the person kept."""

    anchors: tuple[str, ...] = ()
    since: bytes | None = None
    witnesses: tuple[notes.Witness, ...] = ()

    @classmethod
    def of(
        cls, anchors: Sequence[str], since: str | None, witnesses: Sequence[str], *, apart_from: Path | None = None
    ) -> Asked:
        """From the arguments of `--anchor`, `--since` and `--witness`; `apart_from` is the run that they are about.

        Raises:
            Unreadable: the file of a checkpoint that was kept is no note, a witness's key is none, or a place has no
                name, or lies in the run.
        """
        if not all(anchors):
            raise Unreadable("--anchor: names no place")
        for option, where in [*(("--anchor", where) for where in anchors), *([("--since", since)] if since else [])]:
            if apart_from is not None and _is_within(where, apart_from):
                raise Unreadable(f"{option}: {where}: lies in the run itself, and shows nothing that the run does not")
        try:
            raw = small_file(since, notes.MAX_NOTE_BYTES) if since is not None else None
            if raw is not None:
                notes.checkpoint(notes.parse(raw).text)
        except Unreadable as error:
            raise Unreadable(f"--since: {since}: {error}") from error
        try:
            keys = tuple(map(notes.witness_key, witnesses))
        except Unreadable as error:
            raise Unreadable(f"--witness: {error}") from error
        return cls(tuple(anchors), raw, keys)

    def __bool__(self) -> bool:
        return bool(self.anchors or self.since is not None or self.witnesses)


@dataclass(frozen=True)
class Elsewhere:
    """What was found."""

    asked: Asked = Asked()
    places: tuple[Place, ...] = ()
    since: Head | None = None

    @property
    def sizes(self) -> frozenset[int]:
        """How many entries the checkpoints cover: the journal's root is wanted at each."""
        found = {head.size for place in self.places for head in place.heads if head.fault is None}
        return frozenset(found | ({self.since.size} if self.since is not None else set()))


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
            return fault(name, f"is no checkpoint: {error}")
        if checkpoint.origin != self._run.origin:
            return fault(name, f"is of {checkpoint.origin}, not of {self._run.origin}")
        if not note.signed_by(self._run.key):
            return fault(name, "is not signed by the run's key")
        seen_by = tuple(witness.signed(note) for witness in self._witnesses)
        return Head(name, checkpoint.size, checkpoint.root, None, seen_by)


def fault(name: str, why: str) -> Head:
    """What stands there by that name is no checkpoint of the run."""
    return Head(name, 0, b"", why)


def first_entries(count: int) -> str:
    """How much of a journal a checkpoint covers, in words."""
    return "the first entry" if count == 1 else f"the first {count:,} entries"


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


def _is_within(where: str, run: Path) -> bool:
    """Whether a place is part of a run's folder, however it is spelled: who made the one made the other."""
    try:
        place, own = Path(where.removeprefix("file://")).resolve(), run.resolve()
    except (OSError, RuntimeError, ValueError):
        return False
    return place.is_relative_to(own)


def _read_place(where: str, run: RunName, judge: _Judge) -> Place:
    kind, read = _reader(where, run)
    place = Place(where, kind)
    try:
        for name, found in read(place):
            if len(place.heads) == MAX_HEADS:
                raise Unreadable(f"there are more than {MAX_HEADS:,} checkpoints of this run, and no more were read")
            head = judge.head(name, found) if isinstance(found, bytes) else fault(name, str(found))
            if kind == "drop" and head.fault is None and name != notes.name_of(head.size):
                head = fault(name, f"covers {head.size} entries")
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
    address = str(path.absolute()) if stands else where
    if is_folder and not _is_repository(path):
        return "drop", lambda place: _read_drop(path, run.run_id, place)
    if stands and not is_folder and not _is_bundle(where):
        return "note", lambda _: iter([("", small_file(where, notes.MAX_NOTE_BYTES))])
    return "git", lambda place: _read_git(address, run.run_id, place)


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
        runs = (each for each in folder.names() if each.what == "a folder" and _RUN_ID.fullmatch(each.name))
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
