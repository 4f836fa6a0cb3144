"""proctor results: what a run came to, made anew from its journal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from proctor.cli.common import json_option, print_json, run_argument
from proctor.cli.opened import opened
from proctor.cli.words import PATH

if TYPE_CHECKING:
    from proctor.report.reading import Reading


@click.command(short_help="Print grades by arm, or rows for analysis")
@run_argument
@click.option("--csv", "csv", is_flag=True, help="One row a planned trial, comma-separated, with a header.")
@click.option("--jsonl", "jsonl", is_flag=True, help="One JSON object a planned trial.")
@click.option("--parquet", "parquet", is_flag=True, help="One row a planned trial, into the file that -o names.")
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="FILE",
    help="Write the rows there instead of to standard output; what stands there is replaced.",
)
@json_option
def results(run: Path, output: Path | None, as_json: bool, **forms: bool) -> None:
    """Print what RUN came to: grades by arm, comparisons, costs; or its trials as rows.

    Everything is made anew from the journal; summary.json is not read.
    """
    from proctor.report.left import go_on_lines
    from proctor.report.reading import read_run
    from proctor.report.status import left_open_lines
    from proctor.report.summary import fingerprint, next_steps, results_lines

    named = [form for form, wanted in forms.items() if wanted]
    if len(named) > 1:
        raise click.UsageError(f"one form at a time: {' or '.join(f'--{form}' for form in named)}")
    form = named[0] if named else None
    if form is not None and as_json:
        raise click.UsageError("--json goes without --csv, --jsonl and --parquet")
    if output is not None and form is None:
        raise click.UsageError("-o is for rows: name --csv, --jsonl or --parquet")
    if form == "parquet" and output is None:
        raise click.UsageError("--parquet needs a file: name it with -o")
    reading = read_run(opened(run))
    if form is not None:
        _rows(reading, form, output)
    elif as_json:
        print_json(_record(reading))
    else:
        for line in [
            *results_lines(reading)[1:],
            "",
            *left_open_lines(reading),
            *next_steps(run, fingerprint(reading)),
            *go_on_lines(run, reading),
        ]:
            click.echo(line)


def _rows(reading: Reading, form: str, output: Path | None) -> None:
    import sys

    if output is None:
        _text(reading, form, sys.stdout)
        return
    import io

    from proctor.report.output import replaced
    from proctor.report.rows import write_parquet

    with replaced(output) as file:
        if form == "parquet":
            write_parquet(reading, file)
            return
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        _text(reading, form, text)
        text.flush()
        text.detach()


def _text(reading: Reading, form: str, out: TextIO) -> None:
    from proctor.report.rows import write_csv, write_jsonl

    if form == "csv":
        write_csv(reading, out)
    else:
        write_jsonl(reading, out)


def _record(reading: Reading) -> dict[str, Any]:
    from proctor.report.agents import agents_record
    from proctor.report.cells import cells
    from proctor.report.claims import claims_record
    from proctor.report.comparing import comparisons
    from proctor.report.paired import paired_counts
    from proctor.report.rows import records
    from proctor.report.spending import spend_of

    compared, money = comparisons(reading), spend_of(reading.design, reading.state)
    return {
        "study": reading.design.study.name,
        "stage": reading.design.stage.name,
        "design_sha256": reading.design.sha256,
        "run_id": (reading.state.admitted or {}).get("run_id"),
        "complete": reading.complete,
        "ended": reading.state.ended,
        "in_flight": list(reading.state.open),
        "synthetic": list(reading.design.synthetic),
        "agents": agents_record(reading.design),
        "grades": reading.grades(),
        "cells": [each.as_record() for each in cells(reading)],
        "attempts": [
            {
                "model": cell.model,
                "arm": cell.arm,
                "superseded": counts.superseded,
                "replaced": counts.replaced,
                "exceptions": dict(counts.exceptions),
            }
            for cell, counts in reading.state.counts.items()
            if cell is not None
        ],
        "spend": None if money is None else money.as_record(),
        "ceiling_reached": reading.state.reached,
        "hypotheses": claims_record(reading.design, compared),
        "comparisons": [each.as_record() for each in compared],
        "paired": [pairs.as_record() for pairs in paired_counts(reading.design, reading.rows)],
        "trials": list(records(reading)),
    }
