"""What commands share: how refusals and JSON are printed, and how a run is named."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.completing import run_folders
from proctor.cli.words import PATH
from proctor.core.network import Network
from proctor.core.refusal import Refusal
from proctor.core.sandboxes import SandboxChoice
from proctor.report.text import field, plain, safe, typable

if TYPE_CHECKING:
    from proctor.evidence.keys import OperatorKey

jobs_option = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1, max=1024),
    metavar="N",
    help="Attempts at once (default: the stage's lanes).",
)
quiet_option = click.option("--quiet", is_flag=True, help="No progress.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
# a list of hosts cannot be given on a command line
networks = click.Choice([network.value for network in Network if network is not Network.ALLOWLIST])
sandboxes = click.Choice([choice.value for choice in SandboxChoice])
run_argument = click.argument("run", type=PATH, shell_complete=run_folders)


def print_refusals(refusals: Sequence[Refusal]) -> None:
    """To standard error: what was seen, what is needed, what to do."""
    for refusal in refusals:
        where = f"  [{safe(refusal.path)}]" if refusal.path else ""
        click.secho(f"refused: {refusal.reason.id}", fg="red", bold=True, err=True, nl=False)
        click.echo(where, err=True)
        lines = field("  ", safe(refusal.message), 2)
        if refusal.observed is not None:
            lines += field("  seen:", _short(refusal.observed))
        if refusal.required is not None:
            lines += field("  needed:", _short(refusal.required))
        for line in lines:
            click.echo(line, err=True)
        # in one line: it may hold a command
        click.echo(f"  do:      {safe(typable(refusal.remedy))}", err=True)
        if refusal.waivable:
            click.echo(f"  or:      --waive {refusal.reason.id} (recorded)", err=True)


def print_json(value: Any) -> None:
    """One JSON document to standard output, keys sorted."""
    sys.stdout.write(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def say(text: str) -> None:
    """Progress and notes: standard error."""
    click.echo(typable(text), err=True)


def own_key() -> tuple[OperatorKey, bool]:
    """The person's signing key, made on first use, which is said; and whether it was."""
    import os

    from proctor.evidence.keys import config_dir, load_or_create

    key, made = load_or_create(config_dir(os.environ))
    if made:
        say("made a signing key for you; keep a copy of its file where nobody else can read it")
    return key, made


def _short(value: Any) -> str:
    text = safe(plain(value))
    return text if len(text) <= 400 else text[:400] + " …"
