"""proctor results: what a run came to, made anew from its journal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.common import json_option, print_json, run_argument
from proctor.cli.opened import opened

if TYPE_CHECKING:
    from proctor.report.reading import Reading


@click.command(short_help="Print grades by arm, or rows for analysis")
@run_argument
@click.option("--csv", "form", flag_value="csv", help="One row a planned trial, comma-separated, with a header.")
@click.option("--jsonl", "form", flag_value="jsonl", help="One JSON object a planned trial.")
@json_option
def results(run: Path, form: str | None, as_json: bool) -> None:
    """Print grades of RUN by arm, with what is ungraded and the bounds; or its trials as rows.

    Everything is made anew from the journal; summary.json is not read.
    """
    from proctor.report.reading import read_run
    from proctor.report.summary import fingerprint, next_steps, results_lines

    if form is not None and as_json:
        raise click.UsageError("--json goes without --csv and --jsonl")
    reading = read_run(opened(run))
    if form == "csv":
        _csv(reading)
    elif form == "jsonl":
        _jsonl(reading)
    elif as_json:
        print_json(_record(reading))
    else:
        for line in [
            *results_lines(reading)[1:],
            "",
            *next_steps(run, fingerprint(reading), complete=reading.complete),
        ]:
            click.echo(line)


def _csv(reading: Reading) -> None:
    import csv
    import sys

    writer: csv.DictWriter[str] | None = None
    for row in reading.rows:
        record = row.as_record()
        if writer is None:
            writer = csv.DictWriter(sys.stdout, list(record), lineterminator="\n")
            writer.writeheader()
        writer.writerow({name: _csv_cell(value) for name, value in record.items()})


def _csv_cell(value: Any) -> Any:
    """As in JSON, but that what is absent is empty."""
    return ("true" if value else "false") if isinstance(value, bool) else value


def _jsonl(reading: Reading) -> None:
    import json
    import sys

    for row in reading.rows:
        sys.stdout.write(json.dumps(row.as_record(), ensure_ascii=False) + "\n")


def _record(reading: Reading) -> dict[str, Any]:
    from proctor.report.claims import claims_record
    from proctor.report.paired import paired_counts

    return {
        "study": reading.design.study.name,
        "stage": reading.design.stage.name,
        "design_sha256": reading.design.sha256,
        "run_id": (reading.state.admitted or {}).get("run_id"),
        "complete": reading.complete,
        "grades": reading.grades(),
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
        "hypotheses": claims_record(reading.design),
        "paired": [pairs.as_record() for pairs in paired_counts(reading.design, reading.rows)],
        "trials": [row.as_record() for row in reading.rows],
    }
