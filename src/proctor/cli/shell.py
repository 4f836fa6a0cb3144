"""proctor shell: a shell in the world of an attempt."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.common import run_argument
from proctor.cli.opened import one_trial, opened
from proctor.cli.words import WORD


@click.command(short_help="Open a shell in the world of a trial")
@run_argument
@click.argument("trial", type=WORD)
def shell(run: Path, trial: str) -> int:
    """Open a shell in the world of TRIAL: the one that runs now, or a fork of the one that --keep left.

    A live world is the measured one: look, and change nothing.
    """
    from proctor.report.reading import read_run
    from proctor.runner.shell import open_shell

    folder = opened(run)
    row = one_trial(read_run(folder), trial)
    return open_shell(folder, row.trial.id, row.tries.attempts)
