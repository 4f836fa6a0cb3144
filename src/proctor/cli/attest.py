"""proctor attest: a signed statement about a run that is over, for programs that read DSSE and in-toto."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.common import json_option, own_key, print_json, run_argument, say
from proctor.cli.opened import opened
from proctor.cli.words import PATH, WORD


@click.command(short_help="Sign a statement about a run that is over")
@run_argument
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="FILE",
    required=True,
    help="Write the envelope there (a timestamp to FILE.tsr). What stands there is replaced.",
)
@click.option(
    "--timestamp",
    "authority",
    type=WORD,
    metavar="URL",
    help="Have an RFC 3161 authority put a time on the checkpoint.",
)
@click.option(
    "--timestamp-root",
    "roots",
    type=PATH,
    metavar="PEM",
    help="The certificates that the authority's answer must lead to.",
)
@json_option
def attest(run: Path, output: Path, authority: str | None, roots: Path | None, as_json: bool) -> None:
    """Attest a RUN of yours that is over: a DSSE envelope with an in-toto Statement about it, signed by your key.

    Its subjects are the design, the last checkpoint and the summaries; it says what they came to, and what the second
    program, which is run first, found. Needs the extra `attest`. Check it with `proctor verify FILE RUN --key KEY`.
    """
    from proctor.report.output import replaced
    from proctor.report.text import command, safe, short_path
    from proctor.runner.attest import TimestampAuthority
    from proctor.runner.attest import attest as made_of

    if (authority is None) != (roots is None):
        raise click.UsageError("--timestamp and --timestamp-root go together")
    folder = opened(run)
    key, _ = own_key()
    asked = TimestampAuthority(authority, roots) if authority is not None and roots is not None else None
    attestation = made_of(folder, key, asked)
    beside = output.with_name(output.name + ".tsr")
    if attestation.stamped is not None:
        with replaced(beside) as file:
            file.write(attestation.stamped.answer)
    with replaced(output) as file:
        file.write(attestation.envelope)
    if as_json:
        stamped = str(beside) if attestation.stamped is not None else None
        print_json({"path": str(output), "timestamp": stamped, "statement": attestation.said})
        return
    click.echo(safe(str(output)))
    if attestation.stamped is not None:
        click.echo(safe(str(beside)))
    words = ("proctor", "verify", short_path(output), short_path(run), "--key", key.fingerprint)
    say(f"verify     {safe(command(*words))}")
