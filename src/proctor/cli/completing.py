"""Options that commands share, and what a shell may complete a word to: folders for runs, names that the code knows."""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem

from proctor.cli.words import TEXT


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


stage_option = click.option("--stage", type=TEXT, help="This stage only.")
limit_option = click.option(
    "--limit", type=click.IntRange(1, 10**9), metavar="N", help="Only the first N tasks, by name."
)
models_option = click.option(
    "--model", "models", type=TEXT, multiple=True, help="Only this model of the stage; again for more."
)
arms_option = click.option(
    "--arm", "arms", type=TEXT, multiple=True, help="Only this arm of the stage; again for more."
)
waive_option = click.option(
    "--waive",
    type=TEXT,
    multiple=True,
    metavar="REASON",
    shell_complete=waivable,
    help="Go on although this reason refuses, which is recorded; again for more.",
)
