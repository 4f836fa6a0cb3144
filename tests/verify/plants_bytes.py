"""Faults of packs, blobs and files, and of what is derived from them."""

from __future__ import annotations

import os
from pathlib import Path

from builder import Story
from plants import Plants, first_of, flip
from primitives import canonical, sha256
from steps import Late, Step

PLANTS = Plants()
plant = PLANTS.before_sealing
spoil = PLANTS.afterwards

# Bytes.


@plant("packs.frames", "altered")
def _(s: Story) -> None:
    s.packs["0001.pack"][0] ^= 1


@plant("packs.frames", "altered within gzip")
def _(s: Story) -> None:
    s.packs["0002.pack"][-1] ^= 1


@plant("packs.frames", "bytes at the end that no entry names")
def _(s: Story) -> None:
    s.packs["0002.pack"] += b"x"


@plant("packs.frames", "bytes at the end of an earlier pack that no entry names")
def _(s: Story) -> None:
    s.packs["0001.pack"] += b"x"


@plant("packs.frames", "a gap between frames")
def _(s: Story) -> None:
    at = s.find("agent.started").body["instruction"]["length"]
    s.packs["0001.pack"][at:at] = b"x"
    for step in s.steps:
        if isinstance(step, Step) and step.kind == "agent.started" and step.body["instruction"].get("offset"):
            step.body["instruction"]["offset"] += 1


@plant("packs.frames", "deflated in another way")
def _(s: Story) -> None:
    at = next(i for i in range(len(s.packs["0002.pack"])) if s.packs["0002.pack"][i : i + 3] == b"\x1f\x8b\x08")
    s.packs["0002.pack"][at + 9] ^= 0xFC


@plant("packs.frames", "another digest of what is stored")
def _(s: Story) -> None:
    s.find("agent.started").body["instruction"]["stored_sha256"] = "0" * 64


@plant("packs.frames", "another size")
def _(s: Story) -> None:
    for step in s.steps:
        if isinstance(step, Step) and step.kind == "agent.started" and step.body["instruction"].get("offset") == 0:
            step.body["instruction"]["size"] += 1


@plant("packs.frames", "a pack that is not there")
def _(s: Story) -> None:
    s.find("agent.started").body["instruction"]["pack"] = "0003.pack"


@spoil("packs.frames", "cut short")
def _(folder: Path) -> None:
    os.truncate(folder / "packs/0002.pack", 20)


@spoil("blobs.files", "altered")
def _(folder: Path) -> None:
    flip(first_of(folder, "blobs/*/*"))


@spoil("blobs.files", "gone")
def _(folder: Path) -> None:
    first_of(folder, "blobs/*/*").unlink()


@spoil("blobs.files", "a symbolic link to the same bytes")
def _(folder: Path) -> None:
    blob = first_of(folder, "blobs/*/*")
    blob.rename(folder / ".elsewhere")
    blob.symlink_to(folder / ".elsewhere")


@spoil("files.digests", "altered")
def _(folder: Path) -> None:
    flip(first_of(folder, "trials/*/*/agent/stdout.log"))


@spoil("files.digests", "gone")
def _(folder: Path) -> None:
    first_of(folder, "trials/*/*/agent/stdout.log").unlink()


@spoil("files.digests", "longer")
def _(folder: Path) -> None:
    with first_of(folder, "trials/*/*/agent/stdout.log").open("ab") as file:
        file.write(b"\n")


@spoil("files.digests", "a quarantined file is altered")
def _(folder: Path) -> None:
    flip(folder / "quarantine/0001-journal.tail")


@plant("files.digests", "a path that leads out of the attempt")
def _(s: Story) -> None:
    files = s.find("attempt.files").body
    was = files["files"]
    out = {"path": "../../../design.json", "sha256": Late(lambda s: sha256(canonical(s.design))), "role": "source"}
    out["size"] = Late(lambda s: len(canonical(s.design)))
    files["files"] = Late(lambda s: [*s.settled(was), out])


@spoil("files.unlisted", "a file in the run folder")
def _(folder: Path) -> None:
    (folder / "notes.txt").touch()


@spoil("files.unlisted", "a file in an attempt's folder")
def _(folder: Path) -> None:
    (first_of(folder, "trials/*/*/agent") / "more.log").touch()


@spoil("files.unlisted", "a symbolic link in an attempt's folder")
def _(folder: Path) -> None:
    (first_of(folder, "trials/*/*/agent") / "link").symlink_to("stdout.log")


@spoil("files.unlisted", "a FIFO in an attempt's folder")
def _(folder: Path) -> None:
    os.mkfifo(first_of(folder, "trials/*/*/agent") / "pipe")


@spoil("files.unlisted", "a trial that nobody admitted")
def _(folder: Path) -> None:
    (folder / "trials/another-00000000/0").mkdir(parents=True)


@spoil("files.unlisted", "a trial's folder under another name")
def _(folder: Path) -> None:
    there = first_of(folder, "trials/*")
    (folder / f"trials/another-{there.name[-8:]}").mkdir()


@spoil("files.unlisted", "an attempt that nobody admitted")
def _(folder: Path) -> None:
    (first_of(folder, "trials/*") / "9").mkdir()


@spoil("files.unlisted", "a pack that no entry names")
def _(folder: Path) -> None:
    (folder / "packs/0003.pack").touch()


@spoil("files.unlisted", "a blob that no entry names")
def _(folder: Path) -> None:
    blob = folder / "blobs/00" / ("0" * 64)
    blob.parent.mkdir()
    blob.touch()


@spoil("files.unlisted", "a checkpoint under another name")
def _(folder: Path) -> None:
    (folder / "checkpoints/last.note").touch()


@spoil("files.unlisted", "a quarantined file that no entry names")
def _(folder: Path) -> None:
    (folder / "quarantine/0002").touch()


@spoil("files.unlisted", "a manifest under another name")
def _(folder: Path) -> None:
    (folder / "manifests/0001.json~").touch()


# What is derived.


@plant("grades.recomputed", "a pass whose reward file says otherwise")
def _(s: Story) -> None:
    folder = s.find("attempt.admitted", attempt=s.find("attempt.graded", grade="pass").body["attempt"]).body["folder"]
    s.files[f"{folder}/verifier/reward.txt"] = b"0\n"


@plant("grades.recomputed", "a pass below the design's threshold")
def _(s: Story) -> None:
    s.design["grading"]["solved"] = "reward > 1"


@plant("grades.recomputed", "a pass without a verdict file")
def _(s: Story) -> None:
    attempt = s.find("attempt.graded", grade="pass").body["attempt"]
    folder = s.find("attempt.admitted", attempt=attempt).body["folder"]
    listed = s.find("attempt.files", attempt=attempt).body
    del s.files[f"{folder}/verifier/reward.txt"]
    listed["files"] = Late(lambda s: [s.fact(f"{folder}/", "agent/stdout.log", role="source")])


@plant("grades.recomputed", "two verdict files that disagree")
def _(s: Story) -> None:
    attempt = s.find("attempt.graded", grade="pass").body["attempt"]
    folder = s.find("attempt.admitted", attempt=attempt).body["folder"]
    s.files[f"{folder}/verifier/reward.json"] = b'{"reward": 0}'
    listed = s.find("attempt.files", attempt=attempt).body
    was = listed["files"]
    listed["files"] = Late(lambda s: [*s.settled(was), s.fact(f"{folder}/", "verifier/reward.json", role="source")])


def _record_of(s: Story, attempt: str) -> str:
    return f"{s.find('attempt.admitted', attempt=attempt).body['folder']}/attempt.json"


@plant("attempts.derived", "another grade")
def _(s: Story) -> None:
    path = _record_of(s, s.find("attempt.graded", grade="fail").body["attempt"])
    was = s.file(path)
    s.files[path] = was.replace(b'"grade":"fail"', b'"grade":"pass"')
    assert was != s.files[path]


@plant("attempts.derived", "another form")
def _(s: Story) -> None:
    path = _record_of(s, s.find("attempt.graded").body["attempt"])
    s.files[path] = s.file(path) + b"\n"


@plant("attempts.derived", "not said to be derived")
def _(s: Story) -> None:
    attempt = s.find("attempt.graded").body["attempt"]
    path = _record_of(s, attempt)
    s.files[path] = b"{}"
    listed = s.find("attempt.files", 1, attempt=attempt).body
    listed["files"] = Late(lambda s: [{"path": "attempt.json", "sha256": sha256(b"{}"), "size": 2, "role": "partial"}])


@plant("attempts.derived", "of an end that was another")
def _(s: Story) -> None:
    path = _record_of(s, s.find("attempt.ended", outcome="interrupted").body["attempt"])
    s.files[path] = s.file(path).replace(b'"outcome":"interrupted"', b'"outcome":"completed"')


@plant("summary.recomputed", "another headline")
def _(s: Story) -> None:
    was = s.file("grade_summary.json")
    s.files["grade_summary.json"] = was.replace(b'"pass":4', b'"pass":5')
    assert was != s.files["grade_summary.json"]


@plant("summary.recomputed", "another count of replacements")
def _(s: Story) -> None:
    was = s.file("summary.json")
    s.files["summary.json"] = was.replace(b'"replaced":1', b'"replaced":0')
    assert was != s.files["summary.json"]


@plant("summary.recomputed", "a summary is not among the files of a complete run")
def _(s: Story) -> None:
    files = Late(lambda s: [s.fact("", "grade_summary.json")])
    for end in (s.find("run.ended", 0), s.find("run.ended", 1)):
        end.body["files"] = files
    del s.files["summary.json"]
