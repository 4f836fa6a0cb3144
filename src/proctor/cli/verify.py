"""proctor verify: the second program re-checks a run from its evidence alone."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.common import json_option, run_argument


@click.command(short_help="Re-check a run's evidence")
@run_argument
@click.option("--key", metavar="KEY", help="Who is trusted: a vkey, a file that holds one, or sha256:HEX.")
@json_option
def verify(run: Path, key: str | None, as_json: bool) -> int:
    """Re-check RUN: `python -m proctor_verify`, in a process that shares nothing with this one.

    Exit status: 0 all hold, 1 something fails (with --key: or cannot be told), 2 could not read.
    """
    import subprocess
    import sys

    from proctor.runner.verifying import second_program

    sys.stdout.flush()
    return subprocess.run(second_program(run, key, as_json=as_json), check=False).returncode
