"""What is taken away from a sound run is missed: its end, with or without what belongs to it, and each of its files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from builder import Story
from money_stories import money_story
from primitives import Signer
from stories import full_story

from proctor_verify import verify

KEY = Signer().fingerprint
STORIES = pytest.mark.parametrize("make", [full_story, money_story])


def _later_checkpoints(folder: Path, entries: list[Any]) -> None:
    for note in folder.glob("checkpoints/*.note"):
        if int(note.stem) > len(entries):
            note.unlink()


def _named(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a body, at any depth."""
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _named(each)
    elif isinstance(value, list):
        for each in value:
            yield from _named(each)


def _all_that_is_later(folder: Path, entries: list[Any]) -> None:
    _later_checkpoints(folder, entries)
    objects = [named for entry in entries for named in _named(entry["body"])]
    paths = {named["path"] for named in objects if "path" in named}
    attempts = {named["folder"] for named in objects if "folder" in named}
    packs: dict[str, int] = {}
    for named in objects:
        if "pack" in named:
            end = named["offset"] + named["length"]
            packs[named["pack"]] = max(packs.get(named["pack"], 0), end)
    for attempt in folder.glob("trials/*/*"):
        if str(attempt.relative_to(folder)) not in attempts:
            shutil.rmtree(attempt)
            if not any(attempt.parent.iterdir()):
                attempt.parent.rmdir()
    for attempt_files in attempts:
        for file in [path for path in folder.glob(f"{attempt_files}/**/*") if path.is_file()]:
            if str(file.relative_to(folder / attempt_files)) not in paths:
                file.unlink()
    for pack in folder.glob("packs/*"):
        if pack.name in packs:
            os.truncate(pack, packs[pack.name])
        else:
            pack.unlink()
    last = max((int(path[-9:-5]) for path in paths if path.startswith("manifests/")), default=0)
    for manifest in folder.glob("manifests/*"):
        if int(manifest.stem) > last:
            manifest.unlink()
    for place in ("blobs/*/*", "quarantine/*", "*summary.json"):
        for file in folder.glob(place):
            if str(file.relative_to(folder)) not in paths:
                file.unlink()


def _is_an_end(folder: Path, entries: list[Any]) -> bool:
    """Whether the run could have stood so: an opening is over, and was covered before another began."""
    return entries[-1]["kind"] == "run.ended" and (folder / f"checkpoints/{len(entries):012d}.note").exists()


@STORIES
@pytest.mark.parametrize("also", [lambda folder, entries: None, _later_checkpoints, _all_that_is_later])
def test_a_cut_at_any_line_is_found(
    make: Callable[[], Story], also: Callable[[Path, list[Any]], None], tmp_path: Path
) -> None:
    folder = make().write(tmp_path)
    journal = folder / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    entries = [json.loads(line) for line in lines]
    for size in range(len(lines) - 1, -1, -1):
        journal.write_bytes(b"".join(lines[:size]))
        also(folder, entries[:size])
        report = verify(folder, KEY)
        assert report.exit_status == 1, size
        if also is _all_that_is_later and size > 0 and _is_an_end(folder, entries[:size]):
            # Of what was taken, nothing but the summary of a later end shows: who has the key can make that anew, and
            # then an anchor alone, or a checkpoint that somebody kept, shows that there was more.
            assert report.failed() == ["summary.recomputed"]


@STORIES
def test_each_file_is_missed(make: Callable[[], Story], tmp_path: Path) -> None:
    folder = make().write(tmp_path / "run")
    kept = tmp_path / "kept"
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        path.rename(kept)
        assert verify(folder, KEY).exit_status == 1, path
        kept.rename(path)
    assert verify(folder, KEY).exit_status == 0


@STORIES
def test_each_folder_is_missed(make: Callable[[], Story], tmp_path: Path) -> None:
    folder = make().write(tmp_path / "run")
    kept = tmp_path / "kept"
    for path in sorted(path for path in folder.rglob("*") if path.is_dir() and any(path.iterdir())):
        path.rename(kept)
        assert verify(folder, KEY).exit_status == 1, path
        kept.rename(path)


def test_a_journal_alone_is_no_run_that_holds(tmp_path: Path) -> None:
    folder = full_story().write(tmp_path)
    for path in list(folder.iterdir()):
        if path.name != "journal.jsonl":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert verify(folder, KEY).exit_status == 1
    (folder / "journal.jsonl").write_bytes(b"")
    assert verify(folder, KEY).exit_status == 1
