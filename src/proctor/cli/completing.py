"""What a shell may complete a word to: folders for runs, and the names that the code knows."""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem


def run_folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Folders, which the shell lists itself."""
    return [CompletionItem(incomplete, type="dir")]


def reasons(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Every reason, with what it means."""
    from proctor.core.reasons import Reason

    return _items(((reason.id, reason.summary) for reason in Reason), incomplete)


def waivable(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Reasons that `--waive` may name."""
    from proctor.core.reasons import Reason

    return _items(((reason.id, reason.summary) for reason in Reason if reason.waivable), incomplete)


def agents(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Agents that are installed here."""
    from proctor.agents.base import installed_agents

    return _items(((name, point.value) for name, point in installed_agents().items()), incomplete)


def _items(words: Iterable[tuple[str, str]], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(word, help=text) for word, text in words if word.startswith(incomplete)]


waive_option = click.option(
    "--waive",
    multiple=True,
    metavar="REASON",
    shell_complete=waivable,
    help="Go on although this reason refuses; recorded.",
)
