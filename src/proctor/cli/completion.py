"""proctor completion: the script that a shell sources."""

from __future__ import annotations

import click


@click.command(short_help="Print the completion script of a shell")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL: `eval "$(proctor completion bash)"`."""
    from click.shell_completion import get_completion_class

    from proctor.cli.main import cli

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(found(cli, {}, "proctor", "_PROCTOR_COMPLETE").source())
