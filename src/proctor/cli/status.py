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
    """Say what a live RUN is doing, or how it ended, or that its process died."""
    from proctor.evidence.lock import read_lock
    from proctor.report.status import live_record, status_lines

    folder = opened(run)
    lock = read_lock(folder)
    answer = _ask(lock)
    told, ahead = _at_rest(folder, lock) if answer is None else (live_record(answer), [])
    record = {"live": lock.live, "process": _process(lock), **told}
    if as_json:
        print_json(record)
        return
    for line in [*status_lines(record), *ahead]:
        click.echo(line)


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
    from proctor.report.left import go_on_lines
    from proctor.report.reading import read_run
    from proctor.report.status import rest_record

    reading = read_run(folder, validate=False)
    return rest_record(reading, live=lock.live), [] if lock.live else go_on_lines(folder.path, reading)
