"""proctor pause: no new attempt starts until the run is told to go on."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.common import json_option, print_json, run_argument
from proctor.cli.opened import opened


@click.command(short_help="Let a live run start nothing new")
@run_argument
@json_option
def pause(run: Path, as_json: bool) -> None:
    """Let a live RUN start nothing new; what is in flight goes on to its end."""
    from proctor.core.reasons import Reason
    from proctor.core.refusal import Refusal
    from proctor.evidence.lock import read_lock
    from proctor.report.text import command, short_path
    from proctor.runner.control import ask

    lock = read_lock(opened(run))
    if not lock.live or lock.control is None:
        raise Refusal(Reason.RUN_NOT_LIVE, "no process runs this, so there is nothing to pause", path=str(run))
    answer = ask(Path(lock.control), "pause")
    if answer.get("paused") is not True:
        raise Refusal(Reason.RUN_NOT_LIVE, "the run does not take a pause just now", path=str(run), observed=answer)
    if as_json:
        print_json(answer)
        return
    click.echo("paused: nothing new starts, what is in flight goes on to its end")
    click.echo(f"go on with  {command('proctor', 'resume', short_path(run))}")
