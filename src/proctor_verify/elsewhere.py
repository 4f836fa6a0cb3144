"""Checkpoints that stand outside of a run, at anchors and in files that people kept: what was asked for, and found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from proctor_verify import notes
from proctor_verify.errors import Unreadable
from proctor_verify.outside import small_file


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


def none_there(place: Place, run_id: str, named: Sequence[str] = ()) -> str:
    """A place has no checkpoint of a run, and may be another than was meant; `named` are those that the run names."""
    said = "no checkpoint of this run stands there"
    if Path(place.where).name == run_id:
        return f"{said}: name the folder above it, in which the run's own lies"
    where = f": the run names {', '.join(named)}" if named else ""
    return f"{said}; either it is not there any more, or another place was meant{where}"


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
        except Unreadable as error:
            raise Unreadable(f"--since: {since}: {error}") from error
        try:
            if raw is not None:
                notes.checkpoint(notes.parse(raw).text)
        except Unreadable as error:
            name_one = "name a file of `checkpoints/`, or what stands at an anchor"
            raise Unreadable(f"--since: {since}: is no checkpoint ({error}): {name_one}") from error
        try:
            keys = tuple(map(notes.witness_key, witnesses))
        except Unreadable as error:
            raise Unreadable(f"--witness: {error}") from error
        return cls(tuple(anchors), raw, keys)

    def __bool__(self) -> bool:
        return bool(self.anchors or self.since is not None or self.witnesses)


NOTHING = Asked()


@dataclass(frozen=True)
class Elsewhere:
    """What was found."""

    asked: Asked = NOTHING
    places: tuple[Place, ...] = ()
    since: Head | None = None

    @property
    def sizes(self) -> frozenset[int]:
        """How many entries the checkpoints cover: the journal's root is wanted at each."""
        found = {head.size for place in self.places for head in place.heads if head.fault is None}
        return frozenset(found | ({self.since.size} if self.since is not None else set()))


def first_entries(count: int) -> str:
    """How much of a journal a checkpoint covers, in words."""
    return "the first entry" if count == 1 else f"the first {count:,} entries"


def _is_within(where: str, run: Path) -> bool:
    """Whether a place is part of a run's folder, however it is spelled: who made the one made the other."""
    try:
        place, own = Path(where.removeprefix("file://")).resolve(), run.resolve()
    except (OSError, RuntimeError, ValueError):
        return False
    return place.is_relative_to(own)
