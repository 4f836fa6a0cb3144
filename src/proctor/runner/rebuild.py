"""Derived files made anew from the evidence, and how each copy that stands compares.

A copy that differs is replaced, unless the journal names the digest of what stands: then the evidence itself holds
something that does not follow from it, which is a finding, and stays for whoever looks into it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from proctor.core.canonical import encode
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.disk import unreadable
from proctor.evidence.entries import BLOB_FIELDS, Entry
from proctor.evidence.kinds import Kind
from proctor.evidence.lock import read_lock
from proctor.evidence.reader import read_entries
from proctor.evidence.runfolder import RunFolder
from proctor.report.reading import Reading, understood
from proctor.report.tailing import inside
from proctor.report.testfile import tests_of
from proctor.rollout.derived import attempt_record
from proctor.runner.again import told_to_do_it_again
from proctor.runner.derived import derived_files
from proctor.study import plan


class Copy(StrEnum):
    """What became of a derived file."""

    SAME = "same"
    MISSING = "was missing, made anew"
    DIFFERED = "differed, made anew"
    NOT_DERIVED = "differs, and the journal names it so: left as it is"
    GONE_WRONG = "differs, and what the evidence gives is not what the journal names: left as it is"


@dataclass(frozen=True)
class Rebuilt:
    """One derived file; `path` is relative to the run."""

    path: str
    copy: Copy


@dataclass
class _Open:
    """An attempt between its first and its last entry."""

    folder: str
    said: dict[Kind, list[dict[str, Any]]] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)


def rebuild(reading: Reading) -> Iterator[Rebuilt]:
    """Make every derived file anew that the journal names, and put those in place that differ or are missing.

    A run without an end on the record has no files of its own yet; an attempt that was cut short may have none.

    Raises:
        Refusal: `run_locked` where a process writes the run; the evidence cannot be read, or a file not be written.
    """
    run = reading.run
    lock = read_lock(run)
    if lock.live:
        raise Refusal(
            Reason.RUN_LOCKED,
            "a process writes this run, and its derived files with it",
            path=str(run.path),
            observed={"pid": lock.pid, "host": lock.host},
        )
    if reading.state.ended is not None:
        named = {file["path"]: file["sha256"] for file in reading.state.ended["files"]}
        for name, content in sorted(derived_files(reading.design, plan(reading.design), reading.state).items()):
            yield _place(run, name, content, named.get(name))
    opened: dict[str, _Open] = {}
    for entry in read_entries(run.journal_path, validate=False):
        if isinstance(entry.kind, Kind) and isinstance(entry.body.get("attempt"), str):
            with understood(entry.body["attempt"]):
                rebuilt = list(_attempt(run, opened, entry.kind, entry))
            yield from rebuilt


def _attempt(run: RunFolder, opened: dict[str, _Open], kind: Kind, entry: Entry) -> Iterator[Rebuilt]:
    body = entry.body
    if kind is Kind.ATTEMPT_ADMITTED:
        opened[body["attempt"]] = _Open(body["folder"])
    attempt = opened.get(body["attempt"])
    if attempt is None:
        return
    if kind is Kind.ATTEMPT_FILES:
        # what a full disk cut short was never whole
        for file in body["files"]:
            if file["role"] == "partial":
                attempt.named.pop(file["path"], None)
            else:
                attempt.named[file["path"]] = file["sha256"]
    if kind is not Kind.ATTEMPT_ENDED:
        # the writer hands blobs to the journal beside the body, and makes attempt.json of the body alone
        own = {name: value for name, value in body.items() if name not in BLOB_FIELDS[kind]}
        attempt.said.setdefault(kind, []).append(own)
        return
    del opened[body["attempt"]]
    ended = {name: value for name, value in body.items() if name != "attempt"}
    yield from _files(run, attempt, ended)


def _files(run: RunFolder, attempt: _Open, ended: Mapping[str, Any]) -> Iterator[Rebuilt]:
    if "tests.json" in attempt.named:
        tests = tests_of(run, attempt.folder)
        yield _place(run, f"{attempt.folder}/tests.json", encode(tests), attempt.named["tests.json"])
    if "attempt.json" in attempt.named:
        content = encode(attempt_record(attempt.said, ended))
        yield _place(run, f"{attempt.folder}/attempt.json", content, attempt.named["attempt.json"])


def _place(run: RunFolder, path: str, content: bytes, named: str | None) -> Rebuilt:
    stands = _stands(inside(run, path))
    if stands == content:
        return Rebuilt(path, Copy.SAME)
    if named not in (None, hashlib.sha256(content).hexdigest()):
        ours = stands is not None and hashlib.sha256(stands).hexdigest() == named
        return Rebuilt(path, Copy.NOT_DERIVED if ours else Copy.GONE_WRONG)
    with told_to_do_it_again("rebuild it"):
        run.write_atomic(path, content)
    return Rebuilt(path, Copy.MISSING if stands is None else Copy.DIFFERED)


def _stands(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable("a derived file", str(path), error) from error
