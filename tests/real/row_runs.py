"""Whole runs of two questions in this process, with money and an anchor, and what was acknowledged in them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from proctor.api import Study, write_questions
from proctor.evidence.entries import BLOB_FIELDS
from proctor.evidence.journal import Journal
from proctor.evidence.kinds import Kind
from proctor.evidence.reader import read_blob, read_entries
from proctor.evidence.runfolder import RunFolder

DROP = "drop"


class Acknowledged(NamedTuple):
    """An entry that somebody was told to be durable: its place, and what it and its blobs hold."""

    seq: int
    kind: Kind
    body: dict[str, Any]
    blobs: dict[str, Any]


def study() -> Study:
    """A made-up model that is paid for; checkpoints are pushed to the folder `drop`. For the current folder."""
    tables: dict[str, Any] = {
        "study": {"name": "sums"},
        "tasks": {"questions": "units.jsonl"},
        "grading": {"scorer": "number"},
        "agent": {"name": "toolloop"},
        "models": {"practice": {"provider": "practice", "model": "practice-1"}},
        "anchor": {"drop": DROP, "every": "1m", "required": True},
    }
    return Study.from_tables(tables).plan({"practice": "0.01"})


def prepare(folder: Path) -> None:
    """What the study needs beside it."""
    rows = [{"id": f"q{n}", "prompt": f"What is {n} + 2?", "target": n + 2} for n in range(2)]
    write_questions(folder / "units.jsonl", rows)
    (folder / DROP).mkdir(exist_ok=True)


def hear(patch: pytest.MonkeyPatch, log: list[tuple[Any, ...]]) -> None:
    """Note ("acknowledged", Acknowledged) before whoever waits for an entry is told."""
    post = Journal.post

    def heard(journal: Journal, kind: Kind, body: dict[str, Any], **more: Any) -> Any:
        written, said = post(journal, kind, body, **more), dict(body)

        def note(each: Any) -> None:
            if not each.cancelled() and each.exception() is None:
                log.append(("acknowledged", Acknowledged(each.result(), kind, said, dict(more.get("blobs") or {}))))

        written.add_done_callback(note)
        return written

    patch.setattr(Journal, "post", heard)


def acknowledged_in(log: Iterable[tuple[Any, ...]]) -> list[Acknowledged]:
    return [step[1] for step in log if step[0] == "acknowledged"]


def check_acknowledged(path: Path, found: Iterable[Acknowledged], what: str = "") -> None:
    """Each stands at its place, with its blobs."""
    entries = list(read_entries(path / "journal.jsonl"))
    for seq, kind, body, blobs in found:
        refs = BLOB_FIELDS[kind]
        assert entries[seq].kind is kind, what
        stands = {name: value for name, value in entries[seq].body.items() if name not in refs}
        assert stands == {name: value for name, value in body.items() if name not in refs}, what
        for name, content in blobs.items():
            if isinstance(content, bytes):
                assert read_blob(RunFolder(path), entries[seq].body[name]) == content, what
