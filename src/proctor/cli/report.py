"""proctor report: a run on one page, to be read and passed on."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.common import json_option, print_json, run_argument
from proctor.cli.opened import opened
from proctor.cli.words import PATH


@click.command(short_help="Write a run's results as one HTML page")
@run_argument
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="FILE",
    help="Write it there, `-` for standard output; report.html otherwise. What stands there is replaced.",
)
@json_option
def report(run: Path, output: Path | None, as_json: bool) -> None:
    """Write what RUN came to as one HTML page that needs nothing else: no network, no script.

    Everything is made anew from the journal. `proctor results` has the same for a terminal and for programs.
    """
    from proctor.report.output import replaced
    from proctor.report.page import page
    from proctor.report.reading import read_run
    from proctor.report.text import safe

    reading = read_run(opened(run))
    html = page(reading)
    if output is not None and str(output) == "-":
        if as_json:
            raise click.UsageError("--json says where the page is: -o - goes without it")
        click.echo(html, nl=False)
        return
    target = output if output is not None else Path("report.html")
    with replaced(target) as file:
        size = file.write(html.encode("utf-8"))
    if as_json:
        print_json({"path": str(target), "size": size, "synthetic": list(reading.design.synthetic)})
    else:
        click.echo(safe(str(target)))
