"""proctor verify: the second program re-checks a run from its evidence alone."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.common import json_option
from proctor.cli.completing import run_folders
from proctor.cli.words import PATH, WORD


@click.command(short_help="Re-check a run's evidence")
@click.argument("run", required=False, type=PATH, shell_complete=run_folders)
@click.argument("of", required=False, type=PATH, shell_complete=run_folders)
@click.option("--design", metavar="FILE", type=PATH, help="Check a frozen design.json alone.")
@click.option("--checks", is_flag=True, help="Say what is checked, and stop: a table of all checks.")
@click.option(
    "--key",
    "keys",
    type=WORD,
    metavar="KEY",
    multiple=True,
    help="Who is trusted: a fingerprint (sha256:HEX), a public key (vkey), or a file that holds one.",
)
@click.option(
    "--anchor",
    "anchors",
    type=WORD,
    metavar="WHERE",
    multiple=True,
    help="Where its checkpoints stand too: a git repository (address or folder), a folder, or a note; again for more.",
)
@click.option(
    "--since",
    "kept",
    type=WORD,
    metavar="NOTE",
    multiple=True,
    help="A checkpoint that you kept: what is new must extend it.",
)
@click.option(
    "--witness",
    "witnesses",
    type=WORD,
    metavar="VKEY",
    multiple=True,
    help="Who else must have signed a checkpoint: a public key (vkey), or a file that holds one; again for more.",
)
@json_option
def verify(
    run: Path | None,
    of: Path | None,
    design: Path | None,
    checks: bool,
    keys: tuple[str, ...],
    anchors: tuple[str, ...],
    kept: tuple[str, ...],
    witnesses: tuple[str, ...],
    as_json: bool,
) -> int:
    """Re-check RUN: `python -m proctor_verify`, in a process that shares nothing with this one.

    RUN is a run's folder, a receipt or a proof that `proctor prove` made, or what `proctor attest` made: that is held
    against the run OF where one is named. docs/verify.md says what each option means and proves.

    With --design FILE instead of RUN, a frozen design alone is held to its rules, and named by its digest. What a check
    asks, `proctor explain CHECK` says.

    Exit status: 0 all hold, 1 something fails or cannot be told, 2 could not read. Without --key nobody can tell who
    signed; that alone leaves the status as it is.
    """
    import sys

    from proctor.runner.verifying import list_checks, on_design, second_program

    key, since = _one("--key", keys), _one("--since", kept)
    if checks and run is None and design is None:
        command = list_checks(as_json=as_json)
    elif design is not None and run is None:
        if key is not None or since is not None or anchors or witnesses:
            raise click.UsageError(
                "a design alone is signed by nobody, and stands nowhere else: --key, --anchor, --since and --witness "
                "go with a RUN"
            )
        command = on_design(design, as_json=as_json)
    elif run is not None and design is None and not checks:
        command = second_program(run, key, as_json=as_json, anchors=anchors, since=since, witnesses=witnesses)
        command += [str(of)] if of is not None else []
    else:
        raise click.UsageError("either RUN (with --key, where you have it), --design FILE or --checks")
    sys.stdout.flush()
    return _wait_for(command)


def _one(option: str, given: tuple[str, ...]) -> str | None:
    """What was given at most once: of two answers to one question the last would win, and the first be forgotten."""
    if len(given) > 1:
        raise click.UsageError(f"{option} is given twice")
    return given[0] if given else None


def _wait_for(command: list[str]) -> int:
    """The exit status of a program that gets the signals that are meant for this one."""
    import signal
    import subprocess

    with subprocess.Popen(command) as child:
        numbers = (signal.SIGTERM, signal.SIGHUP)
        before = [signal.signal(number, lambda number, _: child.send_signal(number)) for number in numbers]
        try:
            status = child.wait()
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)
    return status if status >= 0 else 128 - status
