"""The run, trial or checkpoint that a command reads: found, or a usage error that says what is there instead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from proctor.evidence.runfolder import RunFolder
    from proctor.report.reading import Reading, Row

_LISTED = 20
# names are compared one by one
_MOST_TASKS = 5000


def opened(path: Path) -> RunFolder:
    """The run folder at `path`.

    Raises:
        click.UsageError: no run was admitted there.
    """
    from proctor.evidence.runfolder import RunFolder

    run = RunFolder(path)
    try:
        admitted = run.is_admitted()
        folder = path.is_dir()
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}") from error
    if admitted:
        return run
    if not folder:
        there = "not a folder" if path.exists() else "not there"
        raise click.UsageError(f"{path} is {there}; a run is a folder that holds journal.jsonl.")
    raise click.UsageError(f"no run was admitted in {str(path)!r}. {_what_stands(run)}")


def kept_checkpoint(path: Path) -> bytes:
    """The file of a checkpoint that somebody keeps.

    Raises:
        click.UsageError: it is no small file, or cannot be read.
        Refusal: `evidence_damaged` where it is no checkpoint.
    """
    from proctor.core.files import read_regular
    from proctor.core.refusal import Refusal
    from proctor.evidence.notes import MAX_NOTE_BYTES, Checkpoint, parse

    try:
        note = read_regular(path, MAX_NOTE_BYTES)
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}") from error
    if note is None:
        raise click.UsageError(f"{path} is no checkpoint: a small file, as they stand below checkpoints/ of a run")
    try:
        Checkpoint.parse(parse(note).text)
    except Refusal as refusal:
        # the run's remedy is not this file's: it may be another one
        remedy = "Name the file of a checkpoint, as they stand below checkpoints/ of a run and at anchors."
        raise Refusal(
            refusal.reason, f"this is no checkpoint: {refusal.message}", path=str(path), remedy=remedy
        ) from refusal
    return note


def _what_stands(run: RunFolder) -> str:
    from proctor.evidence.lock import read_lock

    lock = read_lock(run)
    if lock.live:
        return f"Process {lock.pid} on {lock.host} is about to."
    manifests = run.manifests()
    if not manifests:
        return "A run is a folder that holds journal.jsonl."
    last = manifests[-1]
    refusals = last.body.get("refusals") if last.body else None
    if not isinstance(refusals, list) or not refusals:
        return f"{last.file.path} came to no verdict."
    reasons = ", ".join(str(refusal.get("reason")) for refusal in refusals if isinstance(refusal, dict))
    return f"{last.file.path} is the record of a refusal: {reasons}."


def one_trial(reading: Reading, text: str) -> Row:
    """The one trial of a run that was read that `text` means; raises as `one_row`."""
    return one_row(reading.rows, text)


def one_row(rows: Sequence[Row], text: str) -> Row:
    """The one trial of these that `text` means.

    Raises:
        click.UsageError: it means none, or several: then they are listed.
    """
    from proctor.report.text import safe
    from proctor.report.trial import matching

    found = matching(rows, text)
    if len(found) == 1:
        return found[0]
    shown = found or _near(rows, text) or rows
    listed = "\n".join(f"  {row.trial.id}  {safe(row.trial.label)}" for row in shown[:_LISTED])
    more = f"\n  and {len(shown) - _LISTED} more" if len(shown) > _LISTED else ""
    nearest = "; the nearest are" if shown is not rows else "; it has"
    what = f"{text!r} means {len(found)} trials" if found else f"the run has no trial {text!r}{nearest}"
    raise click.UsageError(f"{what}:\n{listed}{more}")


def _near(rows: Sequence[Row], text: str) -> list[Row]:
    """The trials of the task whose name is nearest; none where no task's is near, or there are very many."""
    from proctor.core.near import closest

    tasks = {row.trial.task for row in rows}
    if len(tasks) > _MOST_TASKS:
        return []
    parts = text.strip().replace(" · ", "/").strip("/").split("/")
    # a task's name may hold slashes, and model, arm and epoch may follow it
    heads = ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]
    exact = next((head for head in heads if head in tasks), None)
    task = exact or next((near for head in reversed(heads) if (near := closest(head, tasks, 0.7))), None)
    return [row for row in rows if row.trial.task == task]
