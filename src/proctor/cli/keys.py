"""proctor keys: the operator's signing key, and a checkpoint of somebody's run signed with it."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.common import json_option, own_key, print_json, say
from proctor.cli.opened import kept_checkpoint, opened
from proctor.cli.words import PATH


@click.group(invoke_without_command=True, short_help="Show the key that signs your runs")
@json_option
@click.pass_context
def keys(ctx: click.Context, as_json: bool) -> None:
    """Show the key that signs your runs' checkpoints, making it on first use.

    The private half stays in your configuration folder. Give others the fingerprint or the public key: it is what
    `proctor verify --key` wants.
    """
    import os

    from proctor.evidence.keys import KEY_FILE, config_dir

    if ctx.invoked_subcommand is not None:
        return
    key, made = own_key()
    path = config_dir(os.environ) / KEY_FILE
    if as_json:
        print_json({"fingerprint": key.fingerprint, "vkey": key.vkey, "path": str(path), "made": made})
        return
    click.echo(f"fingerprint  {key.fingerprint}")
    click.echo(f"public key   {key.vkey}")
    click.echo(f"private key  {path}")


@keys.command(short_help="Sign a checkpoint of somebody's run, as a witness")
@click.argument("what", metavar="NOTE_OR_RUN", type=PATH)
@click.option(
    "-o",
    "--output",
    type=PATH,
    required=True,
    metavar="OUT",
    help="The file of the signed checkpoint. What stands there is replaced.",
)
@click.option("--key", type=PATH, metavar="FILE", help="The file of another key than your own.")
@json_option
def cosign(what: Path, output: Path, key: Path | None, as_json: bool) -> None:
    """Sign that you saw a checkpoint, and when: one that somebody gave you, or the newest in a run's folder.

    Re-check the run before (`proctor verify RUN --key …`, with --since where you signed one already). OUT is the
    checkpoint with your signature: give it back, or publish it. Others name it with --anchor, and your public key
    with --witness.
    """
    import time

    from proctor.evidence.cosigning import last_checkpoint
    from proctor.evidence.keys import load
    from proctor.evidence.notes import Checkpoint, parse
    from proctor.report.output import replaced
    from proctor.report.text import safe

    note = last_checkpoint(opened(what)) if what.is_dir() else kept_checkpoint(what)
    mine = load(key) if key is not None else own_key()[0]
    seconds = int(time.time())
    signed = mine.cosign(note, seconds, path=str(what))
    before = parse(note)
    head = Checkpoint.parse(before.text)
    if any(signature.key_id == mine.verifier.key_id for signature in before.signatures):
        say("note: this key signed the run itself: as a witness of it, it shows nothing")
    with replaced(output) as file:
        file.write(signed)
    if as_json:
        print_json(
            {"entries": head.size, "origin": head.origin, "path": str(output), "time": seconds, "vkey": mine.vkey}
        )
        return
    covered = "the first entry" if head.size == 1 else f"the first {head.size:,} entries"
    click.echo(f"signed       {safe(head.origin)}, {covered}")
    click.echo(f"by           {mine.vkey}")
    click.echo(f"written to   {safe(str(output))}")
