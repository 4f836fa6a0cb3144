"""proctor prune: remove what dead runs left."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.common import json_option, print_json
from proctor.cli.completing import run_folders
from proctor.cli.opened import opened
from proctor.cli.words import PATH


@click.command(short_help="Remove what dead runs left outside of their evidence")
@click.argument("runs", nargs=-1, required=True, type=PATH, shell_complete=run_folders)
@json_option
def prune(runs: tuple[Path, ...], as_json: bool) -> None:
    """Remove what dead RUNS left: processes, containers, images of captured worlds, layers. Evidence stays.

    `resume` does the same before it starts anything. Worlds that --keep left stay.
    """
    from proctor.report.text import count, safe
    from proctor.runner.pruning import prune_run

    found = {str(run): prune_run(opened(run)) for run in runs}
    if as_json:
        print_json(found)
        return
    for run, removed in found.items():
        click.echo(f"{safe(run)}: {count(len(removed), 'thing')} removed")
        for each in removed:
            click.echo(f"  {safe(each)}")
