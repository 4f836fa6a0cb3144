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
    from proctor.report.text import field, safe, typable
    from proctor.runner.launch import runs_folder

    looks = look(runs_folder(Path.cwd()), os.environ, _DEADLINE_SEC)
    if as_json:
        print_json([each.as_record() for each in looks])
    else:
        columns = max(len(each.name) for each in looks) + len(f"{'':7}  ") + 2
        for each in looks:
            mark, colour = _MARK[each.ok]
            first, *more = field(f"{mark:7}  {each.name}", safe(each.seen), columns)
            click.echo(click.style(mark, fg=colour) + first[len(mark) :])
            for line in more:
                click.echo(line)
            if each.remedy is not None:
                click.echo(f"{'':{columns}}-> {safe(typable(each.remedy))}")
    ready = any(each.name == "sandbox" and each.ok for each in looks)
    return int(Exit.DONE if ready else Exit.DOES_NOT_HOLD)
