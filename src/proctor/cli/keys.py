"""proctor keys: the operator's signing key."""

from __future__ import annotations

import click

from proctor.cli.common import json_option, print_json, say


@click.command(short_help="Show the key that signs your runs")
@json_option
def keys(as_json: bool) -> None:
    """Show the key that signs your runs' checkpoints, making it on first use.

    The private half stays in your configuration folder. Give others the fingerprint or the public key: it is what
    `proctor verify --key` wants.
    """
    import os

    from proctor.evidence.keys import KEY_FILE, config_dir, load_or_create

    folder = config_dir(os.environ)
    key, made = load_or_create(folder)
    path = folder / KEY_FILE
    if made:
        say("made a signing key for you; keep a copy of its file where nobody else can read it")
    if as_json:
        print_json({"fingerprint": key.fingerprint, "vkey": key.vkey, "path": str(path), "made": made})
        return
    click.echo(f"fingerprint  {key.fingerprint}")
    click.echo(f"public key   {key.vkey}")
    click.echo(f"private key  {path}")
