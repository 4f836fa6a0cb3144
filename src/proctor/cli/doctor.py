"""proctor doctor: what this machine can do."""

from __future__ import annotations

import click

from proctor.cli.common import json_option, print_json

_MARK = {True: ("ok", "green"), False: ("missing", "red"), None: ("-", "yellow")}
_DEADLINE_SEC = 20.0


@click.command(short_help="Say what this machine can do")
@json_option
def doctor(as_json: bool) -> int:
    """Say what this machine can do, and for each thing that is missing what would add it.

    Exit status 0 if a sandbox can be had, 1 if not.
    """
    import os
    from pathlib import Path

    from proctor.admission.doctor import look
    from proctor.core.exits import Exit
    from proctor.report.text import safe
    from proctor.runner.launch import runs_folder

    looks = look(runs_folder(Path.cwd()), os.environ, _DEADLINE_SEC)
    if as_json:
        print_json([each.as_record() for each in looks])
    else:
        width = max(len(each.name) for each in looks)
        for each in looks:
            mark, colour = _MARK[each.ok]
            click.echo(f"{click.style(f'{mark:7}', fg=colour)}  {each.name:{width}}  {safe(each.seen)}")
            if each.remedy is not None:
                click.echo(f"{'':7}  {'':{width}}  -> {safe(each.remedy)}")
    ready = any(each.name == "sandbox" and each.ok for each in looks)
    return int(Exit.DONE if ready else Exit.DOES_NOT_HOLD)
