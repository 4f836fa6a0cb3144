"""Faults of bytes and places: frames, blobs, folders, manifests and keys, each where no other rule would notice."""

from __future__ import annotations

from pathlib import Path

from builder import Story
from plants import Plants, first_of
from primitives import Body, canonical, sha256
from steps import Checkpoint, Late, Step

PLANTS = Plants()
plant = PLANTS.before_sealing
spoil = PLANTS.afterwards


# Frames and blobs.


@plant("packs.frames", "a frame across others")
def _(s: Story) -> None:
    """The second instruction of the first pack is named as what ends with it, and begins within the first."""
    named = [step.body for step in s.entries() if step.body.get("instruction", {}).get("pack") == "0001.pack"]
    first, second = (
        named[0]["instruction"],
        next(body["instruction"] for body in named if body["instruction"]["offset"]),
    )
    stored = bytes(s.packs["0001.pack"][1:])
    across = {**first, "offset": 1, "length": len(stored), "encoding": "raw", "size": len(stored)}
    across.update(stored_sha256=sha256(stored), blob=sha256(stored))
    for body in named:
        if body["instruction"] == second:
            body["instruction"] = across


@plant("packs.frames", "another digest of its content, raw")
def _(s: Story) -> None:
    for step in s.entries():
        ref = step.body.get("instruction")
        if ref is not None and ref.get("offset") == 0 and ref["pack"] == "0001.pack":
            assert ref["encoding"] == "raw"
            step.body["instruction"] = {**ref, "blob": "0" * 64}


@plant("packs.frames", "more than a frame may hold")
def _(s: Story) -> None:
    for step in s.entries():
        ref = step.body.get("instruction")
        if ref is not None and ref.get("offset") == 0 and ref["pack"] == "0001.pack":
            step.body["instruction"] = {**ref, "size": 64 << 20}


@plant("packs.frames", "another digest of its content, deflated")
def _(s: Story) -> None:
    step = next(step for step in s.entries() if step.body.get("instruction", {}).get("encoding") == "gzip")
    step.body["instruction"] = {**step.body["instruction"], "blob": "0" * 64}


@plant("packs.frames", "another size of its content, deflated")
def _(s: Story) -> None:
    step = next(step for step in s.entries() if step.body.get("instruction", {}).get("encoding") == "gzip")
    ref = step.body["instruction"]
    step.body["instruction"] = {**ref, "size": ref["size"] + 1}


@plant("packs.frames", "bytes behind the gzip member, within the frame")
def _(s: Story) -> None:
    step = next(step for step in s.entries() if step.body.get("instruction", {}).get("encoding") == "gzip")
    ref = step.body["instruction"]
    pack = s.packs[ref["pack"]]
    assert ref["offset"] + ref["length"] == len(pack)
    pack += b"x"
    stored = bytes(pack[ref["offset"] :])
    step.body["instruction"] = {**ref, "length": len(stored), "stored_sha256": sha256(stored)}


@plant("packs.frames", "a gzip member that is cut")
def _(s: Story) -> None:
    step = next(step for step in s.entries() if step.body.get("instruction", {}).get("encoding") == "gzip")
    ref = step.body["instruction"]
    pack = s.packs[ref["pack"]]
    del pack[-1]
    stored = bytes(pack[ref["offset"] :])
    step.body["instruction"] = {**ref, "length": len(stored), "stored_sha256": sha256(stored)}


@plant("blobs.files", "a blob at the place of another")
def _(s: Story) -> None:
    step = next(step for step in s.entries() if "path" in step.body.get("instruction", {}))
    ref = step.body["instruction"]
    place = f"blobs/00/{'0' * 64}"
    s.files[place] = s.files.pop(ref["path"])
    step.body["instruction"] = {**ref, "path": place}


@plant("blobs.files", "another size")
def _(s: Story) -> None:
    step = next(step for step in s.entries() if "path" in step.body.get("instruction", {}))
    step.body["instruction"] = {**step.body["instruction"], "size": 5_001}


# What stands in the folder.


@spoil("files.unlisted", "a file among the trials")
def _(folder: Path) -> None:
    (folder / "trials/notes").touch()


@spoil("files.unlisted", "a file with an attempt's number")
def _(folder: Path) -> None:
    (first_of(folder, "trials/*") / "1").touch()


@spoil("files.unlisted", "a number with a leading zero")
def _(folder: Path) -> None:
    (first_of(folder, "trials/*") / "00").mkdir()


@spoil("files.unlisted", "a folder among the trials whose name has no digits of a trial")
def _(folder: Path) -> None:
    (folder / "trials/x-zzzzzzzz/0").mkdir(parents=True)


@spoil("files.unlisted", "a folder in the place of a file")
def _(folder: Path) -> None:
    (folder / "lock").mkdir()


@spoil("files.unlisted", "folders that nest too deeply to be searched")
def _(folder: Path) -> None:
    deep = first_of(folder, "trials/*/*/agent")
    for _ in range(210):
        deep /= "d"
    deep.mkdir(parents=True)


# Manifests and keys.


@plant("manifests.bound", "named twice")
def _(s: Story) -> None:
    first, later = s.find("run.admitted").body, s.find("run.resumed", -1).body
    later["abandoned"] = [*later["abandoned"], dict(first["manifest"])]


@plant("manifests.bound", "a name that no manifest has")
def _(s: Story) -> None:
    body = s.find("run.resumed", -1).body
    body["abandoned"] = [{"path": "design.json", "sha256": Late(lambda s: sha256(canonical(s.design)))}]


@plant("manifests.unbound", "admitted, and no entry names it, with the rest of a refusal")
def _(s: Story) -> None:
    s.manifests["manifests/0001.json"]["verdict"] = "pending"


@plant("checkpoints.files", "the same size once more, by another path")
def _(s: Story) -> None:
    def elsewhere(entry: Body) -> None:
        entry["body"] = {**entry["body"], "path": "checkpoints/last.note"}

    s.insert_after(s.find("run.paused"), Checkpoint(), Step("checkpoint.made", {}, after=elsewhere))
