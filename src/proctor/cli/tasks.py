"""proctor tasks: what lies at a path, and whether it can be trusted as a task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.common import json_option, networks, print_json, print_refusals, quiet_option, sandboxes, say
from proctor.cli.words import PATH, TEXT

if TYPE_CHECKING:
    from proctor.runner.selfcheck import TaskVerdict

paths_argument = click.argument("paths", nargs=-1, required=True, type=PATH)


@click.group(short_help="Check or list task folders")
def tasks() -> None:
    """Look at task folders."""


@tasks.command()
@paths_argument
@click.option("--rootfs", type=PATH, help="A root folder instead of the host's /usr.")
@click.option(
    "--substitute",
    type=TEXT,
    multiple=True,
    metavar="IMAGE=ROOT",
    help="A root (for docker: an image) that stands in for IMAGE; again for more.",
)
@click.option(
    "--network",
    type=networks,
    help="What the task may reach at most (default: gateway-only).",
)
@click.option("--sandbox", type=sandboxes, help="The kind of sandbox of the tasks (default: auto).")
@click.option("--out", type=PATH, help="Where the runs go (default: runs/checks).")
@quiet_option
@json_option
def check(paths: tuple[Path, ...], out: Path | None, quiet: bool, as_json: bool, **options: Any) -> int:
    """One verdict a path: what it is, what it needs, whether its own solution passes and doing nothing fails.

    Each task is run for that by the agents oracle and nop, in runs that stay. Exit status 3 where one is refused.
    """
    from proctor.core.exits import Exit
    from proctor.runner.launch import Launch
    from proctor.runner.selfcheck import check_tasks

    status, records = Exit.DONE, []
    for verdict in check_tasks(paths, Launch("tasks check", **options), out=out, say=say, quiet=quiet or as_json):
        records.append(verdict.as_record())
        if not as_json:
            _print(verdict)
        if verdict.stopped is not None:
            status = verdict.stopped
        elif verdict.refusals:
            status = Exit.REFUSED
    if as_json:
        print_json(records)
    return int(status)


@tasks.command("list")
@paths_argument
@json_option
def list_(paths: tuple[Path, ...], as_json: bool) -> int:
    """List the tasks at PATHS: name, format, digest. Nothing is run."""
    from proctor.core.exits import Exit
    from proctor.core.reasons import Reason
    from proctor.core.refusal import Refusal
    from proctor.report.text import table
    from proctor.runner.selfcheck import TaskVerdict
    from proctor.tasks.discover import Found, discover
    from proctor.tasks.reading import read_task

    verdicts = []
    for candidate in discover(paths):
        refusals = () if candidate.refusal is None else (candidate.refusal,)
        task = None
        if candidate.found is Found.TASK:
            try:
                task = read_task(candidate.path)
            except Refusal as refusal:
                refusals = (refusal,)
        verdicts.append(TaskVerdict(candidate.path, candidate.found, candidate.format, task, refusals))
    if as_json:
        print_json([verdict.as_record() for verdict in verdicts])
    else:
        for line in table(["name", "is", "digest", "path"], [_listed(verdict) for verdict in verdicts]):
            click.echo(line)
        said = [refusal for verdict in verdicts for refusal in verdict.refusals]
        print_refusals([refusal for refusal in said if refusal.reason is not Reason.TASK_FORMAT_LATER])
    return int(Exit.REFUSED if any(verdict.refusals for verdict in verdicts) else Exit.DONE)


def _listed(verdict: TaskVerdict) -> list[str | None]:
    from proctor.tasks.discover import Found

    task = verdict.task
    name, digest = (None, None) if task is None else (task.name, task.digest[:16])
    later = ", for a later version" if verdict.found is Found.LATER_FORMAT else ""
    return [name, f"{verdict.format or verdict.found.value}{later}", digest, str(verdict.path)]


def _print(verdict: TaskVerdict) -> None:
    from proctor.report.text import safe

    colour = {"ok": "green", "refused": "red"}.get(verdict.word)
    click.secho(f"{verdict.word:12}", fg=colour, nl=False)
    click.echo(safe(str(verdict.path)) + (f"  ({verdict.format})" if verdict.format else ""))
    if verdict.assurance is not None and verdict.assurance != "isolated":
        click.echo(f'  needs: [grading] assurance = "{verdict.assurance}"')
    if verdict.grades:
        names = {"oracle": "own solution", "nop": "doing nothing"}
        click.echo("  " + " · ".join(f"{names[agent]}: {grade}" for agent, grade in verdict.grades.items()))
    if verdict.task is not None:
        # runs that were admitted gave notice of them
        for key in () if verdict.grades else verdict.task.unknown_keys:
            close = f" (closest known: {key.closest})" if key.closest else ""
            click.echo(f"  unknown key: {safe(key.name)}{safe(close)}")
        for note in verdict.task.notes:
            click.echo(f"  note: {safe(note)}")
        for note in verdict.task.migrated:
            click.echo(f"  older key, read as the newer: {safe(note)}")
    for remark in verdict.remarks:
        click.echo(f"  note: {safe(remark)}")
    print_refusals(verdict.refusals)
