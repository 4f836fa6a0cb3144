"""proctor anchor: push the last checkpoint of a run to its anchors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.common import json_option, print_json, run_argument
from proctor.cli.opened import opened
from proctor.cli.words import PATH, WORD

if TYPE_CHECKING:
    from proctor.runner.anchor_last import Last


@click.command(short_help="Push the last checkpoint of a run to its anchors")
@run_argument
@click.option(
    "--git", type=WORD, metavar="ADDRESS", help="Push to this git repository instead: a URL, host:path or a path."
)
@click.option("--drop", metavar="DIR", type=PATH, help="Copy into this folder instead.")
@json_option
def anchor(run: Path, git: str | None, drop: Path | None, as_json: bool) -> int:
    """Push the last checkpoint of a RUN that is over to its study's anchors, unless it stands there already.

    Each place is looked at, also where a receipt in the run says that it has the checkpoint.

    A run does so itself at its end; this is for what was not reached then, or for a place that the study does not name.
    """
    from proctor.core.exits import Exit
    from proctor.report.text import safe
    from proctor.runner.anchor_run import anchor_run

    done = anchor_run(opened(run), git=git, drop=drop)
    if as_json:
        print_json([_record(each) for each in done])
    else:
        for each in done:
            click.echo(safe(_line(each)))
    return int(Exit.DONE if all(each.there for each in done) else Exit.INFRASTRUCTURE)


def _record(last: Last) -> dict[str, Any]:
    failed = last.failed
    return {
        "anchor": last.place.kind.value,
        "location": last.place.location,
        "there": last.there,
        "new": last.new,
        "receipt": None if last.receipt is None else last.receipt.file.path,
        "reason": None if failed is None else failed.reason.id,
        "message": None if failed is None else failed.message,
    }


def _line(last: Last) -> str:
    if last.failed is not None:
        seen = f"not seen there, though {last.receipt.file.path} says that it was" if last.receipt else "not there"
        return f"{last.place}: {seen}; {last.failed.reason.id}: {last.failed.message}"
    if not last.new:
        receipt = f"; the receipt is {last.receipt.file.path}" if last.receipt else ""
        return f"{last.place}: there already, as was seen just now{receipt}"
    if last.receipt is None:
        return f"{last.place}: pushed; no receipt of it is kept, for the run has one of another place"
    return f"{last.place}: pushed, {last.receipt.size:,} entries; the receipt is {last.receipt.file.path}"
