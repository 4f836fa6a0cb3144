"""Frames and blobs at the edges of their rules: packs under odd names, members that are nearly one, second namings."""

from __future__ import annotations

import gzip
from pathlib import Path

from builder import Story
from plants import Plants
from primitives import Body, sha256
from steps import Step

PLANTS = Plants()
plant = PLANTS.before_sealing
spoil = PLANTS.afterwards


def _names(s: Story, ref: Body) -> None:
    """The last agent of all starts with that as its instruction, which others have had."""
    s.find("agent.started", -1).body["instruction"] = ref


def _frame(s: Story, content: bytes, pack: str, at: int = 0) -> Body:
    """A frame of a pack of its own, from some byte on."""
    s.files[f"packs/{pack}"] = bytes(at) + content
    digest = sha256(content)
    ref = {"blob": digest, "size": len(content), "pack": pack, "offset": at, "length": len(content)}
    return {**ref, "encoding": "raw", "stored_sha256": digest}


def a_pack_of_one_frame(s: Story) -> None:
    """No fault: it is the next one, and begins where it must."""
    _names(s, _frame(s, b"one frame", "0003.pack"))


@plant("packs.frames", "a gap before the first frame of a pack")
def _(s: Story) -> None:
    _names(s, _frame(s, b"one frame", "0003.pack", at=1))


for _name in ("0000.pack", "00001.pack", "first.pack", "0001.pack.pack"):

    @plant("packs.frames", f"a frame of {_name}, which stands")
    def _(s: Story, name: str = _name) -> None:
        _names(s, _frame(s, b"one frame", name))


@spoil("files.unlisted", "a pack before the first")
def _(folder: Path) -> None:
    (folder / "packs/0000.pack").write_bytes(b"x")


def _named_by(s: Story, field: str) -> Step:
    return next(step for step in s.entries() if field in step.body.get("instruction", {}))


@plant("blobs.files", "a blob once more, at another place")
def _(s: Story) -> None:
    ref = _named_by(s, "path").body["instruction"]
    s.files["blobs/again"] = b"anything"
    _names(s, {**ref, "path": "blobs/again"})


@plant("packs.frames", "a gzip member and a half")
def _(s: Story) -> None:
    content, stored = b"one frame", gzip.compress(b"one frame", mtime=0)
    stored += stored[:10]
    digests = {"blob": sha256(content), "size": len(content), "stored_sha256": sha256(stored)}
    _names(s, {**_frame(s, stored, "0003.pack"), **digests, "encoding": "gzip"})


@plant("packs.frames", "a byte longer than what is stored as it is")
def _(s: Story) -> None:
    ref = _frame(s, b"one frame", "0003.pack")
    _names(s, {**ref, "size": ref["size"] + 1})


SOUND = (a_pack_of_one_frame,)
