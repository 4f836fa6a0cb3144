"""Runs that push their checkpoints, the receipts of that, and the anchors: a git repository and a folder."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder import Story
from designs import make_design
from primitives import Body, canonical, sha256
from steps import Checkpoint, Late, Step

LOCATIONS = {"git": "https://git.example/anchors.git", "drop": "../heads"}
# 2031-01-01T00:00:00Z, when the stories take place
START = 1_924_992_000
Bytes = Callable[[bytes], bytes]


def _same(data: bytes) -> bytes:
    return data


@dataclass
class Push:
    """A checkpoint that is pushed to one anchor, and its receipt; the hooks alter what is said of it.

    `started` and `ended` are in seconds of the story. `before` is the push to the same anchor that came before.
    """

    anchor: str
    started: int
    before: Push | None = None
    note: bytes = b""
    size: int = 0
    receipt: Callable[[Body], None] = lambda body: None
    encode: Bytes = _same
    commit: Bytes = _same
    tree: Bytes = _same
    entry: Callable[[Body], None] = lambda body: None
    written: bool = True
    ended: int = field(init=False)

    def __post_init__(self) -> None:
        self.ended = self.started + 2

    @property
    def path(self) -> str:
        return f"checkpoints/{self.size:012d}.{self.anchor}.json"

    def objects(self, s: Story) -> dict[str, tuple[bytes, bytes]]:
        """The commit first, then its tree and blob: type and content by id."""
        blob = git_id(b"blob", self.note)
        tree = self.tree(b"100644 checkpoint\0" + bytes.fromhex(blob))
        who = f"proctor <{s.signer.fingerprint}> {START + self.started + 1} +0000"
        parent = f"parent {self.before.id(s)}\n" if self.before else ""
        head = f"tree {git_id(b'tree', tree)}\n{parent}author {who}\ncommitter {who}\n\n{self.size} entries\n"
        commit = self.commit(head.encode())
        kinds = {b"commit": commit, b"tree": tree, b"blob": self.note}
        return {git_id(kind, content): (kind, content) for kind, content in kinds.items()}

    def id(self, s: Story) -> str:
        return next(iter(self.objects(s)))

    def made(self, s: Story) -> bytes:
        """The receipt's bytes."""
        name = f"{s.run_id}/{self.size:012d}.note"
        if self.anchor == "git":
            objects = self.objects(s)
            content = {kind.decode(): base64.b64encode(data).decode() for kind, data in objects.values()}
            del content["blob"]
            snapshot: Body = {"ref": f"refs/proctor/{s.run_id}", "commit": self.id(s), "objects": content}
        else:
            snapshot = {"path": name, "sha256": sha256(self.note), "size": len(self.note)}
        body = {
            "format": 1,
            "anchor": self.anchor,
            "location": LOCATIONS[self.anchor],
            "origin": f"proctor/run/{s.run_id}",
            "size": self.size,
            "sha256": sha256(self.note),
            "return_code": 0,
            "started": moment(self.started),
            "ended": moment(self.ended),
            "attempts": 1,
            "snapshot": snapshot,
        }
        self.receipt(body)
        return self.encode(canonical(body))

    def write(self, s: Story, folder: Path) -> None:
        if self.written:
            (folder / self.path).write_bytes(self.made(s))

    def step(self) -> Step:
        """The entry that names the receipt."""
        step = Step("checkpoint.anchored", {"anchor": self.anchor})
        step.body |= {
            "path": Late(lambda s: self.path),
            "size": Late(lambda s: self.size),
            "sha256": Late(lambda s: sha256(self.made(s))),
        }
        step.after = lambda entry: self.entry(entry["body"])
        return step


def moment(seconds: int) -> str:
    return f"2031-01-01T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.500000Z"


def git_id(kind: bytes, content: bytes) -> str:
    return hashlib.sha1(b"%b %d\0%b" % (kind, len(content), content)).hexdigest()


@dataclass
class AnchoredStory(Story):
    """A story that pushes; `pushes` are all of them in their order."""

    pushes: list[Push] = field(default_factory=list)

    def push(self, *anchors: str, named: bool = True) -> list[Push]:
        """A checkpoint, and where it is pushed to; without names it is the last one."""
        made: list[Push] = []
        for anchor in anchors:
            before = [push for push in self.pushes if push.anchor == anchor]
            made.append(Push(anchor, len(self.pushes) * 60, before[-1] if before else None))
            self.pushes.append(made[-1])

        def take(note: bytes) -> bytes:
            for push in made:
                push.note = note
            return note

        def size(body: Body) -> None:
            for push in made:
                push.size = body["size"]

        self.checkpoint(named=named, file=take, entry=size)
        self.afterwards += [push.write for push in made]
        if named:
            self.steps += [push.step() for push in made]
        return made

    def made_at(self, anchor: str) -> list[Push]:
        return [push for push in self.pushes if push.anchor == anchor]

    def checkpoint_at(self, nth: int) -> Checkpoint:
        return [step for step in self.steps if isinstance(step, Checkpoint)][nth]


def anchored(s: Story) -> AnchoredStory:
    """The story of a plant, as what it is."""
    assert isinstance(s, AnchoredStory)
    return s


def anchored_story(*, required: bool = True, anchors: tuple[str, ...] = ("git", "drop")) -> AnchoredStory:
    """A run in two openings: the first dies after an anchor failed and was there again, the second completes."""
    design = make_design(tasks=1, epochs=2)
    places = {anchor: LOCATIONS[anchor] for anchor in anchors}
    design["anchor"] = {**places, "every_sec": 600, "required": required}
    s = AnchoredStory(design)
    s.admit()
    s.push(*anchors)
    s.block(0)
    for arm in s.arms(0):
        s.run_attempt(0, arm)
    s.add("block.ended", block=0)
    message = "the repository cannot be reached"
    said = {"size": 1, "attempts": 4, "return_code": 128, "reason": "anchor_unreachable", "message": message}
    s.add("anchor.failed", anchor=anchors[0], **said)
    s.push(*anchors)
    s.resume(previous_ended=False)
    s.add("run.recovered", quarantined=[], lost=[])
    s.push(*anchors)
    s.block(1)
    for arm in s.arms(1):
        s.run_attempt(1, arm)
    s.add("block.ended", block=1)
    s.stop(0)
    s.push(*anchors, named=False)
    return s


# The anchors themselves.


def repository_beside(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-anchors.git")


def drop_beside(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-heads")


def write_anchors(s: Story, folder: Path) -> None:
    """What a run that was written pushed: its repository and its folder, next to that of the run."""
    assert isinstance(s, AnchoredStory)
    write_repository(repository_beside(folder), s, s.made_at("git"))
    below = drop_beside(folder) / s.run_id
    below.mkdir(parents=True)
    for push in s.made_at("drop"):
        (below / f"{push.size:012d}.note").write_bytes(push.note)


def write_repository(path: Path, s: Story, pushes: list[Push]) -> None:
    """A bare repository with the commits of these pushes, written as git would."""
    for name in ("objects", "refs/heads", "refs/proctor"):
        (path / name).mkdir(parents=True)
    (path / "HEAD").write_text("ref: refs/heads/main\n")
    (path / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
    for push in pushes:
        for name, (kind, content) in push.objects(s).items():
            put_object(path, name, kind, content)
        (path / f"refs/proctor/{s.run_id}").write_text(push.id(s) + "\n")


def put_object(path: Path, name: str, kind: bytes, content: bytes) -> None:
    target = path / "objects" / name[:2] / name[2:]
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(zlib.compress(b"%b %d\0%b" % (kind, len(content), content), 1))


def at_anchors(folder: Path) -> dict[str, Any]:
    """What `verify` is told, to look at both."""
    return {"anchors": [str(repository_beside(folder)), str(drop_beside(folder))]}
