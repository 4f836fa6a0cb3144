"""proctor status: what a run is doing, or how it ended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.common import json_option, print_json, run_argument
from proctor.cli.opened import opened

if TYPE_CHECKING:
    from proctor.evidence.lock import LockInfo
    from proctor.evidence.runfolder import RunFolder


@click.command(short_help="Say what a run is doing, or how it ended")
@run_argument
@json_option
def status(run: Path, as_json: bool) -> None:
    """Say what a live RUN is doing, or how it ended, or that its process died.

    What a process answers, or else the journal says, is told as it is, and not checked: that is what `proctor verify`
    does. Only where an entry does not follow the one before it, that is said first.
    """
    from proctor.evidence.lock import read_lock
    from proctor.report.selected import selection_text
    from proctor.report.status import live_record, status_lines
    from proctor.report.unchecked import broken_lines, unchecked_line
    from proctor.study.design import read_design

    folder = opened(run)
    lock = read_lock(folder)
    answer = _ask(lock)
    told, ahead = _at_rest(folder, lock) if answer is None else (live_record(answer), [])
    part = selection_text(read_design(folder.design_path))
    record = {"live": lock.live, "process": _process(lock), "part": part, **told}
    if as_json:
        print_json(record)
        return
    if record["broken"] is not None:
        click.secho("\n".join(broken_lines(run, record["broken"])), fg="red", bold=True)
    for line in [*status_lines(record), *ahead]:
        click.echo(line)
    if answer is None and record["broken"] is None:
        click.echo(unchecked_line(run))


def _ask(lock: LockInfo) -> dict[str, Any] | None:
    from proctor.core.refusal import Refusal
    from proctor.runner.control import ask

    if not lock.live or lock.control is None:
        return None
    try:
        answer = ask(Path(lock.control), "status")
        return None if "refusal" in answer else answer
    except Refusal:
        return None  # it starts, or ends, just now: the journal tells what can be told


def _process(lock: LockInfo) -> dict[str, Any]:
    return {"pid": lock.pid, "host": lock.host, "boot_id": lock.boot_id, "same_boot": lock.same_boot}


def _at_rest(folder: RunFolder, lock: LockInfo) -> tuple[dict[str, Any], list[str]]:
    """What the journal tells, and how to go on from there."""
    from proctor.core.reasons import Reason
    from proctor.core.refusal import Refusal
    from proctor.report.left import go_on_lines
    from proctor.report.reading import read_run
    from proctor.report.status import rest_record

    broken = None
    try:
        reading = read_run(folder)
    except Refusal as refusal:
        if refusal.reason is not Reason.EVIDENCE_DAMAGED:
            raise
        # what else is damaged refuses again
        reading = read_run(folder, validate=False)
        broken = f"{refusal.path}: {refusal.message}"
    told = {**rest_record(reading, live=lock.live), "broken": broken}
    return told, [] if lock.live or broken else go_on_lines(folder.path, reading)
