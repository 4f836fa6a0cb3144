"""Receipts of anchors: their form, and what follows from their bytes alone. Whether that is so is for the checks."""

from __future__ import annotations

import hashlib
import re
import sys
from dataclasses import dataclass
from typing import Any

from proctor_verify import notes
from proctor_verify.errors import Unreadable
from proctor_verify.folder import Folder
from proctor_verify.repository import TREE_START
from proctor_verify.schema import ANCHOR
from proctor_verify.shapes import COUNT, FROM_ONE, SHA256, TEXT, TIME, Shape, either, matches, record, where
from proctor_verify.strictbase64 import decoded
from proctor_verify.strictjson import MAX_BYTES, loads_canonical

_NAME = re.compile(r"([0-9]{12})\.(git|drop)\.json", re.ASCII)
_PERSON = re.compile(rb"proctor <(sha256:[0-9a-f]{64})> (0|[1-9][0-9]{0,11}) [+-][0-9]{4}", re.ASCII)
_ANYTHING = Shape("anything", lambda v: True)


def _is_base64(text: str) -> bool:
    try:
        decoded(text)
    except Unreadable:
        return False
    return True


_BYTES = where(TEXT, "base64", _is_base64)
_GIT = record(
    ref=TEXT,
    commit=matches(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", "the id of a commit"),
    objects=record(commit=_BYTES, tree=_BYTES),
)
_DROP = record(path=TEXT, sha256=SHA256, size=COUNT)
_RECEIPT = record(
    format=Shape("1", lambda v: type(v) is int and v == 1),
    anchor=ANCHOR,
    location=TEXT,
    origin=TEXT,
    size=FROM_ONE,
    sha256=SHA256,
    return_code=_ANYTHING,
    started=TIME,
    ended=TIME,
    attempts=FROM_ONE,
    snapshot=either(_GIT, _DROP),
)


@dataclass(frozen=True, slots=True)
class Person:
    """Author or committer of a commit: the fingerprint that is the address, and when, in seconds since 1970."""

    fingerprint: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as a receipt has it.

    `id` is what the receipt says, `hashed` what its content comes to; `tree` is the id of the tree within it, and
    `tree_hashed` what that tree's content comes to; `blob` is the id in that tree, None where it is not of the form.
    `people` are author and committer, None for one that is not of the form, or not there.
    """

    ref: str
    id: str
    hashed: str
    tree: str | None
    tree_hashed: str
    blob: str | None
    people: tuple[Person | None, Person | None]


@dataclass(frozen=True, slots=True)
class Copy:
    """A copied note as a receipt has it."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """A receipt of the form of section 8. `of` is the size in its name, `size` the one that it says."""

    of: int
    anchor: str
    location: str
    origin: str
    size: int
    sha256: str
    return_code: Any
    started: str
    ended: str
    snapshot: Commit | Copy

    @property
    def path(self) -> str:
        """Where it stands."""
        return receipt_path(self.of, self.anchor)

    @property
    def names(self) -> str:
        """What it says stands at the anchor: the id of a commit, or a file's name in the run's folder there."""
        found = self.snapshot
        return found.id if isinstance(found, Commit) else found.path.rpartition("/")[2]


def receipt_path(size: int, anchor: str) -> str:
    """Where the receipt of a checkpoint and an anchor stands."""
    return f"checkpoints/{size:012d}.{anchor}.json"


def is_receipt_name(name: str) -> bool:
    """Whether this is how a receipt's file is called."""
    return _NAME.fullmatch(name) is not None


def object_id(kind: bytes, content: bytes, length: int) -> str:
    """The id of an object of git in a repository whose ids have so many hex digits: 40 of SHA-1, or 64 of SHA-256."""
    whole = b"%b %d\0%b" % (kind, len(content), content)
    if length == 64:
        return hashlib.sha256(whole).hexdigest()
    # git's own choice: collisions are looked for by the one who made the object, and his key signs what is in it
    return hashlib.sha1(whole, usedforsecurity=False).hexdigest()


def read_receipt(raw: bytes, of: int, anchor: str) -> Receipt:
    """A receipt whose name has this size and anchor.

    Raises:
        Unreadable: it has another form.
    """
    value = loads_canonical(raw)
    if not _RECEIPT.holds(value):
        raise Unreadable(f"is not {_RECEIPT.words}")
    snapshot = value["snapshot"]
    if value["anchor"] != anchor or ("ref" in snapshot) != (anchor == "git"):
        raise Unreadable(f"is no receipt of {anchor}, as its name says")
    return Receipt(
        of=of,
        anchor=sys.intern(value["anchor"]),
        location=sys.intern(value["location"]),
        origin=sys.intern(value["origin"]),
        size=value["size"],
        sha256=value["sha256"],
        return_code=value["return_code"],
        started=value["started"],
        ended=value["ended"],
        snapshot=_commit(snapshot) if anchor == "git" else Copy(**snapshot),
    )


def _commit(snapshot: dict[str, Any]) -> Commit:
    content, tree = (decoded(snapshot["objects"][name]) for name in ("commit", "tree"))
    head = content.partition(b"\n\n")[0].split(b"\n")
    length = len(snapshot["commit"])
    named = re.fullmatch(rb"tree ([0-9a-f]{40}|[0-9a-f]{64})", head[0])
    raw = tree.removeprefix(TREE_START)
    is_tree = tree.startswith(TREE_START) and len(raw) * 2 == length
    return Commit(
        ref=sys.intern(snapshot["ref"]),
        id=snapshot["commit"],
        hashed=object_id(b"commit", content, length),
        tree=named[1].decode() if named else None,
        tree_hashed=object_id(b"tree", tree, length),
        blob=raw.hex() if is_tree else None,
        people=(_person(head, b"author "), _person(head, b"committer ")),
    )


def _person(head: list[bytes], start: bytes) -> Person | None:
    lines = [line.removeprefix(start) for line in head if line.startswith(start)]
    found = _PERSON.fullmatch(lines[0]) if len(lines) == 1 else None
    return Person(sys.intern(found[1].decode()), int(found[2])) if found else None


class Receipts:
    """The receipts of a run, and what entries say of them and of their checkpoints.

    `named` has the digest by the path that a `checkpoint.anchored` gives, `named_at` the time of that entry,
    `made` the digest by the size of a `checkpoint.made`.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.named: dict[str, str] = {}
        self.named_at: dict[str, str] = {}
        self.made: dict[int, str] = {}
        self.faults: dict[str, str] = {}
        self._sound: list[Receipt] | None = None

    def standing(self) -> list[tuple[int, str]]:
        """Size and anchor of each that stands, by its name."""
        try:
            names = [found for name in self._folder.names("checkpoints") if (found := _NAME.fullmatch(name.name))]
        except Unreadable:
            return []
        return sorted((int(found[1]), sys.intern(found[2])) for found in names)

    @property
    def sound(self) -> list[Receipt]:
        """Those that have their form, and the digest by which they are named; of the others, `faults` says why not."""
        if self._sound is None:
            self._sound = []
            for size, anchor in self.standing():
                path = receipt_path(size, anchor)
                try:
                    self._sound.append(self._read(path, size, anchor))
                except Unreadable as error:
                    self.faults[path] = str(error)
        return self._sound

    def _read(self, path: str, size: int, anchor: str) -> Receipt:
        raw = self._folder.read(path, MAX_BYTES)
        named = self.named.get(path)
        if named is not None and hashlib.sha256(raw).hexdigest() != named:
            raise Unreadable("is not the file that its entry names")
        return read_receipt(raw, size, anchor)

    def note(self, size: int) -> bytes | None:
        """The checkpoint file of that size; None where it does not stand, or not as its entry names it."""
        try:
            raw = self._folder.read(notes.path_of(size), notes.MAX_NOTE_BYTES)
        except Unreadable:
            return None
        named = self.made.get(size)
        return raw if named in (None, hashlib.sha256(raw).hexdigest()) else None
