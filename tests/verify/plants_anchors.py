"""Faults of anchors, of checkpoints that were kept, and of witnesses."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anchored import (
    AnchoredStory,
    anchored,
    anchored_story,
    at_anchors,
    drop_beside,
    git_id,
    put_object,
    repository_beside,
    write_anchors,
)
from builder import Story
from plants import STRANGER, Plant, Plants
from primitives import Signer

PLANTS = Plants(anchored_story)
WITNESS = Signer(7, "witness.example")
ALIAS = Signer(1, "somebody.else")


# What stands at the anchors now.

Beside = Callable[[AnchoredStory, Path], None]


def remote(what: str, story: Callable[[], Story] = anchored_story) -> Callable[[Beside], Beside]:
    """Something else stands at the anchors than the run says, or than its journal has."""

    def declare(beside: Beside) -> Beside:
        def write(s: Story, folder: Path) -> None:
            beside(anchored(s), folder)

        PLANTS.append(Plant("anchors.remote", what, story=story, beside=write, options=at_anchors))
        return beside

    return declare


def _drop(s: Story, folder: Path) -> Path:
    return drop_beside(folder) / s.run_id


@remote("nothing at the folder")
def _(s: AnchoredStory, folder: Path) -> None:
    write_anchors(s, folder)
    for note in _drop(s, folder).iterdir():
        note.unlink()


@remote("no ref at the repository")
def _(s: AnchoredStory, folder: Path) -> None:
    write_anchors(s, folder)
    (repository_beside(folder) / f"refs/proctor/{s.run_id}").unlink()


@remote("a note that a receipt names is gone")
def _(s: AnchoredStory, folder: Path) -> None:
    write_anchors(s, folder)
    sorted(_drop(s, folder).iterdir())[1].unlink()


@remote("a commit that a receipt names is gone")
def _(s: AnchoredStory, folder: Path) -> None:
    write_anchors(s, folder)
    (repository_beside(folder) / f"refs/proctor/{s.run_id}").write_text(s.made_at("git")[-2].id(s) + "\n")


@remote("another history than the journal's")
def _(s: AnchoredStory, folder: Path) -> None:
    other = anchored_story()
    other.find("attempt.ended").body["message"] = "as it was"
    other.write(folder.with_name(f"{folder.name}-as-it-was"))
    write_anchors(s, folder)
    (_drop(s, folder) / f"{other.pushes[3].size:012d}.note").write_bytes(other.pushes[3].note)


@remote("more than the journal has")
def _(s: AnchoredStory, folder: Path) -> None:
    write_anchors(s, folder)
    text = f"proctor/run/{s.run_id}\n999\n{base64.b64encode(bytes(32)).decode()}\n"
    (_drop(s, folder) / f"{999:012d}.note").write_bytes(s.signer.note(text))


@remote("a checkpoint of no entry")
def _(s: AnchoredStory, folder: Path) -> None:
    write_anchors(s, folder)
    root = base64.b64encode(hashlib.sha256().digest()).decode()
    text = f"proctor/run/{s.run_id}\n0\n{root}\n"
    (_drop(s, folder) / f"{0:012d}.note").write_bytes(s.signer.note(text))


@remote("a checkpoint that a stranger signed")
def _(s: AnchoredStory, folder: Path) -> None:
    write_anchors(s, folder)
    text = s.pushes[0].note.partition(b"\n\n")[0].decode() + "\n"
    (_drop(s, folder) / f"{s.pushes[0].size:012d}.note").write_bytes(STRANGER.note(text))


@remote("a checkpoint by the name of another")
def _(s: AnchoredStory, folder: Path) -> None:
    write_anchors(s, folder)
    (_drop(s, folder) / f"{7:012d}.note").write_bytes(s.pushes[0].note)


@remote("a checkpoint of another run")
def _(s: AnchoredStory, folder: Path) -> None:
    write_anchors(s, folder)
    text = s.pushes[0].note.partition(b"\n\n")[0].decode().replace(s.run_id, "another") + "\n"
    (_drop(s, folder) / f"{s.pushes[0].size:012d}.note").write_bytes(s.signer.note(text))


@remote("no note")
def _(s: AnchoredStory, folder: Path) -> None:
    write_anchors(s, folder)
    (_drop(s, folder) / f"{7:012d}.note").write_text("hello\n")


@remote("a name that is no checkpoint's")
def _(s: AnchoredStory, folder: Path) -> None:
    write_anchors(s, folder)
    (_drop(s, folder) / "last.note").write_bytes(s.pushes[0].note)


@remote("a link")
def _(s: AnchoredStory, folder: Path) -> None:
    write_anchors(s, folder)
    name = f"{s.pushes[0].size:012d}.note"
    (_drop(s, folder) / name).unlink()
    (_drop(s, folder) / name).symlink_to(folder / "checkpoints" / name)


def _more(s: AnchoredStory, folder: Path, tree: bytes, blob: bytes) -> None:
    """One more commit on the ref, with that tree; a blob stands, too."""
    write_anchors(s, folder)
    repository, who = repository_beside(folder), "proctor <me> 1 +0000"
    last = s.made_at("git")[-1].id(s)
    head = f"tree {git_id(b'tree', tree)}\nparent {last}\nauthor {who}\ncommitter {who}\n\nmore\n".encode()
    for kind, content in ((b"blob", blob), (b"tree", tree), (b"commit", head)):
        put_object(repository, git_id(kind, content), kind, content)
    (repository / f"refs/proctor/{s.run_id}").write_text(git_id(b"commit", head) + "\n")


@remote("a commit with another file")
def _(s: AnchoredStory, folder: Path) -> None:
    _more(s, folder, b"100644 readme\0" + bytes.fromhex(git_id(b"blob", b"hello\n")), b"hello\n")


@remote("a commit with a checkpoint that is none")
def _(s: AnchoredStory, folder: Path) -> None:
    _more(s, folder, b"100644 checkpoint\0" + bytes.fromhex(git_id(b"blob", b"hello\n")), b"hello\n")


@remote("a commit with a checkpoint that is too long")
def _(s: AnchoredStory, folder: Path) -> None:
    blob = b"x" * 300_000
    _more(s, folder, b"100644 checkpoint\0" + bytes.fromhex(git_id(b"blob", blob)), blob)


# What somebody kept, and who else signed.


def since(what: str, text: Callable[[str], str] = str, signer: Signer | None = None) -> None:
    """The first checkpoint, altered, is what was kept."""

    def write(s: Story, folder: Path) -> None:
        was = anchored(s).pushes[0].note.partition(b"\n\n")[0].decode() + "\n"
        kept(folder).write_bytes((signer or s.signer).note(text(was)))

    PLANTS.append(Plant("since.extends", what, story=anchored_story, beside=write, options=from_kept))


def kept(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-kept.note")


def from_kept(folder: Path) -> dict[str, Any]:
    return {"since": str(kept(folder))}


def _other_root(text: str) -> str:
    origin, size, *_ = text.split("\n")
    return f"{origin}\n{size}\n{'A' * 43}=\n"


def _larger(text: str) -> str:
    origin, _, root, _ = text.split("\n")
    return f"{origin}\n999\n{root}\n"


since("of another history", _other_root)
since("of more than the journal has", _larger)
since("of another run", lambda text: text.replace("/run/run", "/run/ran"))
since("signed by a stranger", signer=STRANGER)

PLANTS.append(
    Plant(
        "key.witnessed",
        "nobody else signed",
        story=anchored_story,
        options=lambda folder: {"witnesses": [WITNESS.vkey]},
    )
)


PLANTS.append(
    Plant(
        "key.witnessed",
        "the operator is his own witness, by another name",
        story=anchored_story,
        beside=lambda s, folder: _own_witness_beside(anchored(s), folder),
        options=lambda folder: {"anchors": [str(kept(folder))], "witnesses": [ALIAS.vkey]},
    )
)


def _own_witness_beside(s: AnchoredStory, folder: Path) -> None:
    note = s.pushes[0].note
    text = note.partition(b"\n\n")[0].decode() + "\n"
    kept(folder).write_bytes(note + ALIAS.note(text).rpartition(b"\n\n")[2])


def cosigned_beside(s: Story, folder: Path, tell: Callable[[bytes], bytes] = bytes) -> None:
    """The first checkpoint, signed by the witness too, is what was kept."""
    note = anchored(s).pushes[0].note
    text = note.partition(b"\n\n")[0].decode() + "\n"
    kept(folder).write_bytes(note + tell(WITNESS.note(text).rpartition(b"\n\n")[2]))


def _at_kept(folder: Path) -> dict[str, Any]:
    return {"anchors": [str(kept(folder))], "witnesses": [WITNESS.vkey]}


def _spoilt(line: bytes) -> bytes:
    name, _, encoded = line.rstrip(b"\n").rpartition(b" ")
    raw = bytearray(base64.b64decode(encoded))
    raw[-1] ^= 1
    return name + b" " + base64.b64encode(raw) + b"\n"


PLANTS.append(
    Plant(
        "key.witnessed",
        "a signature that does not hold",
        story=anchored_story,
        beside=lambda s, folder: cosigned_beside(s, folder, _spoilt),
        options=_at_kept,
    )
)
