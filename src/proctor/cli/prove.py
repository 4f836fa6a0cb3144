"""proctor prove: a proof that stands alone, of one trial's final or of a run that went on as it was."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.common import json_option, print_json, run_argument, say
from proctor.cli.opened import kept_checkpoint, one_row, opened
from proctor.cli.words import PATH, WORD, Place

if TYPE_CHECKING:
    from proctor.evidence.proofs import ConsistencyProof, TrialReceipt
    from proctor.evidence.runfolder import RunFolder

_ID_DIGITS = 16


@click.command(short_help="Write a proof of a trial's result, to check offline")
@run_argument
@click.argument("trial", type=WORD, required=False)
@click.option(
    "--since",
    type=Place(exists=True, dir_okay=False),
    metavar="NOTE",
    help="Instead of TRIAL: prove that the newest checkpoint extends this one, which was kept.",
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="FILE",
    help="Write it there, and not to standard output. What stands there is replaced.",
)
@json_option
def prove(run: Path, trial: str | None, since: Path | None, output: Path | None, as_json: bool) -> None:
    """Prove the final of one TRIAL of RUN: a receipt that anybody checks without the run, with `proctor verify FILE`.

    TRIAL is an id or the beginning of one, the name of a trial's folder, or task/arm/epoch. The receipt leads to the
    newest checkpoint that is anchored and covers the final, else to the newest that covers it.
    """
    import os

    from proctor.evidence.proof_index import cache_dir
    from proctor.report.output import replaced
    from proctor.report.text import safe

    if (trial is None) == (since is None):
        raise click.UsageError("name a TRIAL, or an older checkpoint with --since, and not both")
    folder, cache = opened(run), cache_dir(os.environ)
    made: TrialReceipt | ConsistencyProof
    made = _receipt(folder, trial, cache) if trial is not None else _extends(folder, since or Path(), cache)
    data = made.encode()
    if output is not None:
        with replaced(output) as file:
            file.write(data)
    if as_json:
        print_json({**made.as_record(), "path": None if output is None else str(output)})
    elif output is not None:
        click.echo(safe(str(output)))
        _say_how_to_check(folder, output, since)
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def _say_how_to_check(run: RunFolder, file: Path, since: Path | None) -> None:
    from proctor.admission.admitted import admitted_of
    from proctor.report.text import command, safe, short_path

    key, words = admitted_of(run)["key"], ["verify", short_path(file)]
    # a consistency proof does not hold its key: the whole one is needed
    words += ["--key", str(key["fingerprint" if since is None else "vkey"])]
    words += [] if since is None else ["--since", short_path(since)]
    say(f"verify     {safe(command('proctor', *words))}")


def _receipt(run: RunFolder, text: str, cache: Path) -> TrialReceipt:
    from proctor.evidence.proving import prove_trial
    from proctor.report.text import safe
    from proctor.report.trial import is_made_up, planned_rows
    from proctor.study.design import read_design

    wanted = text.partition("/")[0].lower()
    if len(wanted) != _ID_DIGITS or not set(wanted) <= set("0123456789abcdef"):
        # by its words: the design knows all trials, and the journal is not read for it
        wanted = one_row(planned_rows(read_design(run.design_path)), text).trial.id
    receipt = prove_trial(run, wanted, cache=cache)
    if is_made_up(run, receipt.trial["model"]):
        model = safe(str(receipt.trial["model"]))
        say(f"SYNTHETIC: {model} is made up by rules; a receipt does not say so, the run does")
    return receipt


def _extends(run: RunFolder, since: Path, cache: Path) -> ConsistencyProof:
    from proctor.evidence.proving import prove_extends

    return prove_extends(run, kept_checkpoint(since), cache=cache, path=str(since))
