"""The `proctor` command: one file per command, imported when it is asked for."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import click

from proctor import __version__
from proctor.cli.streams import OutputFault, let_go, open_missing, watch
from proctor.core.collecting import collect_seldom
from proctor.core.exits import Exit
from proctor.core.refusal import Refusal
from proctor.report.text import program

COMMANDS = {
    "new": "proctor.cli.new:new",
    "doctor": "proctor.cli.doctor:doctor",
    "explain": "proctor.cli.explain:explain",
    "plan": "proctor.cli.plan:plan",
    "check": "proctor.cli.check:check",
    "run": "proctor.cli.run:run",
    "resume": "proctor.cli.resume:resume",
    "pause": "proctor.cli.pause:pause",
    "status": "proctor.cli.status:status",
    "logs": "proctor.cli.logs:logs",
    "shell": "proctor.cli.shell:shell",
    "prune": "proctor.cli.prune:prune",
    "anchor": "proctor.cli.anchor:anchor",
    "verify": "proctor.cli.verify:verify",
    "prove": "proctor.cli.prove:prove",
    "show": "proctor.cli.show:show",
    "results": "proctor.cli.results:results",
    "report": "proctor.cli.report:report",
    "export": "proctor.cli.export:export",
    "tasks": "proctor.cli.tasks:tasks",
    "agents": "proctor.cli.agents:agents",
    "gateway": "proctor.cli.gateway:gateway",
    "attest": "proctor.cli.attest:attest",
    "keys": "proctor.cli.keys:keys",
    "completion": "proctor.cli.completion:completion",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are named, so that `--help` stays quick."""

    def __init__(self, *args: Any, commands: dict[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = dict(commands or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which one meets them."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module."""
        target = self._lazy.get(cmd_name)
        if target is None:
            return None
        module, _, name = target.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """As click does, but that whoever stops reading our output is no fault (click would end with 1)."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return int(Exit.DONE)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, naming the closest command where there is none of that name."""
        import difflib

        name = args[0]
        if name not in self._lazy and not name.startswith("-"):
            close = difflib.get_close_matches(name, self._lazy, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise click.UsageError(f"No such command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="proctor")
def cli() -> None:
    """Run AI-agent benchmarks whose results hold up.

    Start with `proctor new DIR`, or `proctor run --task DIR --agent oracle`.
    """


def main() -> None:
    """Parse, call, and end with the one exit status."""
    collect_seldom()
    open_missing()
    watch()
    status: int = Exit.INFRASTRUCTURE
    unwritten: OutputFault | None = None
    try:
        status = _call()
    except OutputFault as fault:
        unwritten = fault
    if let_go(unwritten) is not None:
        status = Exit.INFRASTRUCTURE
    sys.exit(int(status))


def _call() -> int:
    try:
        status = cli.main(prog_name=program(), standalone_mode=False, complete_var="_PROCTOR_COMPLETE")
    except click.ClickException as fault:
        fault.show(sys.stderr)
        return Exit.USAGE
    except Refusal as refusal:
        from proctor.cli.common import print_refusals

        print_refusals([refusal])
        return Exit.REFUSED
    except (KeyboardInterrupt, click.Abort):
        return Exit.INTERRUPTED
    except FileNotFoundError:
        if _stands_somewhere():
            raise
        click.UsageError("The current folder is gone: go to one that is there.").show(sys.stderr)
        return Exit.USAGE
    return status if isinstance(status, int) else Exit.DONE


def _stands_somewhere() -> bool:
    """Whether the current folder still is one: relative paths mean nothing else."""
    try:
        Path.cwd()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main()
