"""Faults of public copies: what they say that they leave out, and what they leave out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from builder import Story
from money_stories import money_story
from plants import Plant, Spoil, first_of
from primitives import Body, canonical, sha256
from stories import full_story

LIST = "withheld.json"
PLANTS: list[Plant] = []


def withhold(folder: Path) -> None:
    """Make a run folder its public copy: all blobs, agents' files and quarantined bytes are left out."""
    blobs: dict[str, int] = {}
    files: dict[str, Body] = {}
    places: dict[str, str] = {}
    for body in _bodies(folder):
        if "folder" in body:
            places[body["attempt"]] = body["folder"]
        for ref in body.values():
            if isinstance(ref, dict) and "blob" in ref:
                blobs[ref["blob"]] = ref["size"]
                _leave_out(folder, ref)
        for named in body.get("files", []):
            if named.get("role", "derived") != "derived" and named["path"].startswith("agent/"):
                path = f"{places[body['attempt']]}/{named['path']}"
                files[path] = {"path": path, "sha256": named["sha256"], "size": named["size"]}
        for named in body.get("quarantined", []):
            files[named["path"]] = {name: named[name] for name in ("path", "sha256", "size")}
    for path in files:
        (folder / path).unlink()
    listed = [{"blob": blob, "size": size} for blob, size in sorted(blobs.items())]
    written = {"blobs": listed, "files": [files[path] for path in sorted(files)], "format": 1}
    (folder / LIST).write_bytes(canonical(written))


def withhold_one_blob(folder: Path) -> None:
    """Leave out one blob alone, of a frame that comes first in its pack."""
    refs = (ref for body in _bodies(folder) for ref in body.values() if isinstance(ref, dict) and "blob" in ref)
    ref = next(ref for ref in refs if ref.get("offset") == 0)
    _leave_out(folder, ref)
    listed = {"blobs": [{"blob": ref["blob"], "size": ref["size"]}], "files": [], "format": 1}
    (folder / LIST).write_bytes(canonical(listed))


def _leave_out(folder: Path, ref: Body) -> None:
    if "path" in ref:
        (folder / ref["path"]).unlink(missing_ok=True)
        return
    with (folder / "packs" / ref["pack"]).open("r+b") as pack:
        pack.seek(ref["offset"])
        pack.write(bytes(ref["length"]))


def _bodies(folder: Path) -> list[Body]:
    return [json.loads(line)["body"] for line in (folder / "journal.jsonl").read_bytes().splitlines()]


def spoil(check: str, what: str, story: Callable[[], Story] = full_story) -> Callable[[Spoil], Spoil]:
    """Declare a fault of a public copy."""

    def declare(spoil: Spoil) -> Spoil:
        def both(folder: Path) -> None:
            withhold(folder)
            spoil(folder)

        PLANTS.append(Plant(check, what, spoil=both, story=story))
        return spoil

    return declare


def _rewrite(folder: Path, alter: Callable[[Body], object]) -> None:
    path = folder / LIST
    listed = json.loads(path.read_bytes())
    alter(listed)
    path.write_bytes(canonical(listed))


@spoil("withheld.named", "a blob that no entry names")
def _(folder: Path) -> None:
    _rewrite(folder, lambda listed: listed["blobs"].insert(0, {"blob": "0" * 64, "size": 1}))


@spoil("withheld.named", "a blob of another size")
def _(folder: Path) -> None:
    _rewrite(folder, lambda listed: listed["blobs"][0].update(size=listed["blobs"][0]["size"] + 1))


@spoil("withheld.named", "a file that no attempt names")
def _(folder: Path) -> None:
    _rewrite(folder, lambda listed: listed["files"].append({"path": "trials/x", "sha256": "0" * 64, "size": 1}))


@spoil("withheld.named", "a file of another digest")
def _(folder: Path) -> None:
    _rewrite(folder, lambda listed: listed["files"][0].update(sha256="0" * 64))


@spoil("withheld.named", "a reward file")
def _(folder: Path) -> None:
    _withhold(folder, first_of(folder, "trials/*/*/verifier/reward.txt"))


@spoil("withheld.named", "what is derived")
def _(folder: Path) -> None:
    _withhold(folder, first_of(folder, "trials/*/*/attempt.json"))


@spoil("withheld.named", "the design")
def _(folder: Path) -> None:
    design = (folder / "design.json").read_bytes()
    _withhold(folder, folder / "design.json")
    (folder / "design.json").write_bytes(design)


@spoil("withheld.named", "blobs in another order")
def _(folder: Path) -> None:
    _rewrite(folder, lambda listed: listed["blobs"].reverse())


@spoil("withheld.named", "a blob listed twice")
def _(folder: Path) -> None:
    _rewrite(folder, lambda listed: listed["blobs"].insert(0, listed["blobs"][0]))


@spoil("withheld.named", "files in another order")
def _(folder: Path) -> None:
    _rewrite(folder, lambda listed: listed["files"].reverse())


@spoil("withheld.named", "another field")
def _(folder: Path) -> None:
    _rewrite(folder, lambda listed: listed.update(key="operator"))


@spoil("withheld.named", "another format")
def _(folder: Path) -> None:
    _rewrite(folder, lambda listed: listed.update(format=2))


@spoil("withheld.named", "not in canonical form")
def _(folder: Path) -> None:
    path = folder / LIST
    path.write_bytes(path.read_bytes() + b"\n")


@spoil("withheld.named", "cut short")
def _(folder: Path) -> None:
    path = folder / LIST
    path.write_bytes(path.read_bytes()[:100])


@spoil("withheld.named", "a withheld frame is there in part")
def _(folder: Path) -> None:
    pack = folder / "packs/0001.pack"
    data = bytearray(pack.read_bytes())
    data[3] = ord("x")
    pack.write_bytes(data)


@spoil("withheld.named", "a withheld blob stands")
def _(folder: Path) -> None:
    _put(folder / _large(folder), b"x" * 5_000)


@spoil("withheld.named", "something else stands in the place of a withheld blob")
def _(folder: Path) -> None:
    path = folder / _large(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to("elsewhere")


@spoil("withheld.named", "a withheld file stands")
def _(folder: Path) -> None:
    listed = json.loads((folder / LIST).read_bytes())["files"]
    _put(folder / next(each["path"] for each in listed if each["path"].startswith("trials/")), b"shown")


@spoil("withheld.named", "a withheld quarantined file stands")
def _(folder: Path) -> None:
    _put(folder / "quarantine/0001-journal.tail", b"shown")


# A copy is held to all else: what is altered beside what is withheld is found as in a run.


@spoil("packs.frames", "of a public copy is longer")
def _(folder: Path) -> None:
    with (folder / "packs/0002.pack").open("ab") as pack:
        pack.write(b"\0")


@spoil("packs.frames", "of zeros is shorter")
def _(folder: Path) -> None:
    pack = folder / "packs/0001.pack"
    pack.write_bytes(pack.read_bytes()[:-1])


@spoil("packs.frames", "a body that is not withheld is zeros", money_story)
def _(folder: Path) -> None:
    shown = next(body["request"]["blob"] for body in _bodies(folder) if body.get("request"))
    _rewrite(folder, lambda listed: listed.update(blobs=[b for b in listed["blobs"] if b["blob"] != shown]))


@spoil("files.digests", "one that is not withheld is gone")
def _(folder: Path) -> None:
    _rewrite(folder, lambda listed: listed["files"].pop())


@spoil("blobs.files", "one that is not withheld is gone")
def _(folder: Path) -> None:
    shown = Path(_large(folder)).name
    _rewrite(folder, lambda listed: listed.update(blobs=[b for b in listed["blobs"] if b["blob"] != shown]))


def _large(folder: Path) -> str:
    """The path of the blob that has a file of its own."""
    refs = (ref for body in _bodies(folder) for ref in body.values() if isinstance(ref, dict) and "blob" in ref)
    return next(str(ref["path"]) for ref in refs if "path" in ref)


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _withhold(folder: Path, path: Path) -> None:
    """List a file as it stands, and take it away."""
    data = path.read_bytes()
    path.unlink()
    item = {"path": path.relative_to(folder).as_posix(), "sha256": sha256(data), "size": len(data)}

    def alter(listed: Body) -> None:
        listed["files"] = sorted([*listed["files"], item], key=lambda each: each["path"])

    _rewrite(folder, alter)
