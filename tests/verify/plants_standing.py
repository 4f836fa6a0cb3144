"""Faults of the journal as a file: gone, or not the same any more once it was read."""

from __future__ import annotations

import os
from pathlib import Path

from plants import Plants

PLANTS = Plants()
afterwards, meanwhile = PLANTS.afterwards, PLANTS.meanwhile


@afterwards("journal.there", "it is gone")
def _(folder: Path) -> None:
    (folder / "journal.jsonl").unlink()


@afterwards("journal.there", "a link to it")
def _(folder: Path) -> None:
    (folder / "journal.jsonl").rename(folder / ".elsewhere")
    (folder / "journal.jsonl").symlink_to(".elsewhere")


@afterwards("journal.there", "a pipe")
def _(folder: Path) -> None:
    (folder / "journal.jsonl").unlink()
    os.mkfifo(folder / "journal.jsonl")


@afterwards("journal.there", "it is gone, and of the rest a design stands alone")
def _(folder: Path) -> None:
    (folder / "journal.jsonl").unlink()
    for name in ("manifests", "checkpoints", "trials", "packs", "blobs", "quarantine"):
        (folder / name).rename(folder / f".{name}")
    for name in ("summary.json", "grade_summary.json"):
        (folder / name).unlink()


@afterwards("journal.there", "it is gone, and of the rest manifests alone stand")
def _(folder: Path) -> None:
    (folder / "journal.jsonl").unlink()
    for name in ("checkpoints", "trials", "packs", "blobs", "quarantine"):
        (folder / name).rename(folder / f".{name}")
    for name in ("design.json", "summary.json", "grade_summary.json"):
        (folder / name).unlink()


@afterwards("journal.there", "it is gone, and of the rest checkpoints alone stand")
def _(folder: Path) -> None:
    (folder / "journal.jsonl").unlink()
    for name in ("manifests", "trials", "packs", "blobs", "quarantine"):
        (folder / name).rename(folder / f".{name}")
    for name in ("design.json", "summary.json", "grade_summary.json"):
        (folder / name).unlink()


@afterwards("journal.there", "it is gone, and of the rest trials alone stand")
def _(folder: Path) -> None:
    (folder / "journal.jsonl").unlink()
    for name in ("manifests", "checkpoints", "packs", "blobs", "quarantine"):
        (folder / name).rename(folder / f".{name}")
    for name in ("design.json", "summary.json", "grade_summary.json"):
        (folder / name).unlink()


@meanwhile("journal.still", "it grows by an entry that would not hold")
def _(folder: Path) -> None:
    with (folder / "journal.jsonl").open("ab") as journal:
        journal.write(b"{}\n")


@meanwhile("journal.still", "it is cut")
def _(folder: Path) -> None:
    os.truncate(folder / "journal.jsonl", 100)


@meanwhile("journal.still", "it is written over with the same number of bytes")
def _(folder: Path) -> None:
    with (folder / "journal.jsonl").open("r+b") as journal:
        journal.write(b" ")
    os.utime(folder / "journal.jsonl", ns=(0, 1))


@meanwhile("journal.still", "another takes its place")
def _(folder: Path) -> None:
    other = folder / ".other"
    other.write_bytes((folder / "journal.jsonl").read_bytes())
    times = (folder / "journal.jsonl").stat()
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.rename(folder / "journal.jsonl")


@meanwhile("journal.still", "it is taken away")
def _(folder: Path) -> None:
    (folder / "journal.jsonl").unlink()
