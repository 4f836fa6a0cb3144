"""proctor resume: go on with a run that was interrupted, or with one that is paused."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.asking import asker, yes_option
from proctor.cli.common import jobs_option, json_option, quiet_option, run_argument, say
from proctor.cli.completing import waive_option
from proctor.cli.words import PATH


@click.command(short_help="Go on with an interrupted or paused run")
@run_argument
@click.option("--study", type=PATH, help="Where the study is now, if it or the run folder was moved.")
@jobs_option
@waive_option
@yes_option
@quiet_option
@json_option
def resume(
    run: Path,
    study: Path | None,
    jobs: int | None,
    waive: tuple[str, ...],
    yes: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Go on with RUN: what has its final stays, what was cut short is tried anew.

    `proctor status RUN` says whether there is anything to do: a run keeps its design, and with it its money.
    """
    from proctor.cli.run import report
    from proctor.runner.launch import resume as go_on

    finished = go_on(run, study=study, jobs=jobs, waive=waive, quiet=quiet, say=say, confirm=asker(yes=yes))
    return report([finished], as_json=as_json) if finished is not None else 0
