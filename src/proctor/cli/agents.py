"""proctor agents: which agents there are, and their programs, which worlds are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from proctor.cli.common import json_option, print_json, say
from proctor.cli.words import WORD

if TYPE_CHECKING:
    from proctor.agents.bundles import InstalledBundle


@click.group(invoke_without_command=True, short_help="List agents, or install the program of one")
@json_option
@click.pass_context
def agents(ctx: click.Context, as_json: bool) -> int:
    """List the agents that there are, and which programs of theirs are installed.

    An agent that is a program of its own (codex, claude-code, mini-swe-agent) runs unmodified inside of the sandbox,
    from a folder that is installed here once and shown to each world.
    """
    from proctor.core.exits import Exit

    if ctx.invoked_subcommand is None:
        rows = _rows()
        if as_json:
            print_json(rows)
        else:
            _print(rows)
    return int(Exit.DONE)


def _names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from proctor.agents.sources import installable_agents

    return [CompletionItem(name) for name in installable_agents() if name.startswith(incomplete)]


@agents.command(short_help="Install the program of an agent")
@click.argument("agent", type=WORD, metavar="NAME[@VERSION]", shell_complete=_names)
@json_option
def install(agent: str, as_json: bool) -> int:
    """Install the program of the agent NAME, in the version that it was tried with or in VERSION ("latest" is one).

    It comes from the registry that npm or pip are configured for; nothing of it runs but once, to say its version. A
    version that is here and whole stays as it is, and nothing is fetched.
    """
    from proctor.core.exits import Exit
    from proctor.report.text import safe, short_path
    from proctor.runner.installing.install import install as bring
    from proctor.runner.installing.install import standing

    name, _, version = agent.partition("@")
    bundle = there = standing(name, version or None)
    if bundle is None:
        say(f"installing {name}; this can take some minutes")
        bundle = bring(name, version or None)
    if as_json:
        print_json(_record(bundle))
    else:
        how = "is installed" if there is None else "is installed already, and whole"
        click.echo(f"{safe(name)} {safe(bundle.version)} {how}: {safe(short_path(bundle.folder))}")
    return int(Exit.DONE)


def _rows() -> list[dict[str, Any]]:
    from proctor.agents.base import abilities, installed_agents
    from proctor.agents.bundles import list_bundles
    from proctor.agents.sources import installable_agents

    installable = installable_agents()
    rows: list[dict[str, Any]] = []
    for name, point in installed_agents().items():
        able = abilities(point.load())
        source = installable[name].source if name in installable else None
        rows.append(
            {
                "name": name,
                "needs_model": able.needs_model,
                "takes_model": able.takes_model,
                "inside": able.inside,
                "apis": sorted(able.apis),
                "answers_rows": able.answers_rows,
                "tried_with": None if source is None else source.version,
                "installed": [_record(bundle) for bundle in list_bundles(name)],
            }
        )
    return rows


def _record(bundle: InstalledBundle) -> dict[str, Any]:
    return {**bundle.as_record(), "folder": str(bundle.folder)}


def _print(rows: list[dict[str, Any]]) -> None:
    from proctor.report.text import command, table

    head = ["agent", "model", "formats", "program"]
    for line in table(
        head, [[row["name"], _model(row), ", ".join(row["apis"]) or None, _program(row)] for row in rows]
    ):
        click.echo(line)
    missing = [row["name"] for row in rows if row["tried_with"] is not None and not row["installed"]]
    if missing:
        click.echo(f"\nTo install one: {command('proctor', 'agents', 'install', missing[0])}")


def _model(row: dict[str, Any]) -> str | None:
    if not row["takes_model"]:
        return None
    where = "from inside" if row["inside"] else "from outside"
    return where if row["needs_model"] else f"{where}, or none"


def _program(row: dict[str, Any]) -> str | None:
    if row["tried_with"] is None:
        return None
    return ", ".join(bundle["version"] for bundle in row["installed"]) or "not installed"
