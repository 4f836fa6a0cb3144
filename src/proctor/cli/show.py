"""proctor show: a run, or one of its trials, as the evidence tells it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.common import json_option, print_json, run_argument
from proctor.cli.opened import one_trial, opened
from proctor.cli.words import WORD

if TYPE_CHECKING:
    from proctor.evidence.runfolder import RunFolder
    from proctor.report.reading import Reading, Row
    from proctor.report.trial import AttemptTold


@click.command(short_help="Show a run, or one of its trials")
@run_argument
@click.argument("trial", type=WORD, required=False)
@click.option("--full", is_flag=True, help="Show the whole conversation of TRIAL, however long.")
@click.option(
    "--rebuild",
    is_flag=True,
    help="Of the whole run: make the derived files anew; exit status 1 where a copy differed.",
)
@json_option
def show(run: Path, trial: str | None, full: bool, rebuild: bool, as_json: bool) -> int:
    """Show RUN, or one TRIAL of it: every attempt with its agent, worlds, grade, tests, files and conversation.

    TRIAL is an id or the beginning of one, the name of a trial's folder, or task/arm/epoch.
    """
    folder = opened(run)
    if rebuild:
        if trial is not None:
            raise click.UsageError("--rebuild is for the whole run: name no trial")
        return _rebuild(folder, as_json)
    if trial is None:
        _show_run(run, folder, as_json)
    else:
        _show_trial(folder, trial, full, as_json)
    return 0


def _show_run(path: Path, folder: RunFolder, as_json: bool) -> None:
    from proctor.report.overview import Openings, overview_lines, overview_record
    from proctor.report.reading import read_run

    openings = Openings()
    reading = read_run(folder, watch=openings.take)
    if as_json:
        print_json(overview_record(reading, openings))
        return
    for line in overview_lines(path, reading, openings):
        click.echo(line)


def _show_trial(folder: RunFolder, text: str, full: bool, as_json: bool) -> None:
    from proctor.report.reading import read_run
    from proctor.report.testfile import tests_of
    from proctor.report.trial import AttemptsOf

    reading = read_run(folder)
    row = one_trial(reading, text)
    collected = AttemptsOf(row.trial.id)
    for entry in _entries(folder):
        collected.take(entry)
    attempts = list(collected.found.values())
    tests = [tests_of(folder, told.folder) for told in attempts]
    if as_json:
        tries = [_record(reading, row, *each) for each in zip(attempts, tests, strict=True)]
        print_json({**row.as_record(), "tries": tries})
        return
    _print_trial(reading, row, attempts, tests, full)


def _entries(folder: RunFolder) -> Any:
    from proctor.evidence.reader import read_entries

    return read_entries(folder.journal_path, validate=False)


def _record(reading: Reading, row: Row, told: AttemptTold, tests: Any) -> dict[str, Any]:
    from proctor.report.answer import answer_record
    from proctor.report.conversation import turns
    from proctor.report.reading import understood

    with understood(told.attempt):
        exchanges = turns(reading.run, reading.design, row.trial.arm, told)
    return {
        "attempt": told.attempt,
        "since": told.since,
        "until": told.until,
        "entries": {kind.id: bodies for kind, bodies in told.said.items()},
        "files": told.files(),
        "tests": tests,
        "conversation": [turn.as_record() for turn in exchanges],
        **answer_record(reading.run, told),
    }


def _print_trial(reading: Reading, row: Row, attempts: list[AttemptTold], tests: list[Any], full: bool) -> None:
    from proctor.report.answer import answer_lines
    from proctor.report.attempt import attempt_lines
    from proctor.report.conversation import turn_lines, turns
    from proctor.report.reading import understood
    from proctor.report.text import count, dollars, safe, short_path

    grade = f"{row.grade}{f' ({row.reason})' if row.reason else ''}"
    click.secho(f"{safe(row.trial.label)}: {grade}" + (" SYNTHETIC" if row.synthetic else ""), bold=True)
    click.echo(f"trial      {row.trial.id}")
    click.echo(f"run        {safe(short_path(reading.run.path))}")
    click.echo(f"tries      {row.tries.attempts}")
    spent = row.tries.spent
    if spent is not None:
        tokens = f"{spent.tokens_in:,} tokens in, {spent.tokens_out:,} out"
        made_up = ", SYNTHETIC" if row.synthetic else ""
        click.echo(f"cost       {dollars(spent.cost)} in {count(spent.exchanges, 'exchange')}, {tokens}{made_up}")
    for told, each in zip(attempts, tests, strict=True):
        click.echo("")
        click.secho(f"attempt {told.attempt.partition('/')[2]}", bold=True)
        with understood(told.attempt):
            exchanges = turns(reading.run, reading.design, row.trial.arm, told)
            lines = attempt_lines(told, each, question=row.question)
            lines += turn_lines(exchanges, synthetic=row.synthetic, full=full)
            lines += answer_lines(reading.run, told, prompt=row.question and not exchanges, full=full)
        for line in lines:
            click.echo(line)


def _rebuild(folder: RunFolder, as_json: bool) -> int:
    from proctor.core.exits import Exit
    from proctor.report.reading import read_run
    from proctor.report.text import safe
    from proctor.runner.rebuild import Copy, rebuild

    rebuilt = list(rebuild(read_run(folder)))
    differed = [each for each in rebuilt if each.copy is not Copy.SAME]
    if as_json:
        print_json([{"path": each.path, "copy": each.copy.name.lower()} for each in rebuilt])
    else:
        for each in differed:
            click.echo(f"{safe(each.path)}: {each.copy.value}")
        click.echo(f"{len(rebuilt)} derived files made anew from the evidence, {len(differed)} differed")
    return int(Exit.DOES_NOT_HOLD if differed else Exit.DONE)
