"""proctor run: a study, or one task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.asking import asker, yes_option
from proctor.cli.common import (
    jobs_option,
    json_option,
    networks,
    print_json,
    print_refusals,
    quiet_option,
    sandboxes,
    say,
)
from proctor.cli.completing import agents, arms_option, limit_option, models_option, stage_option, waive_option
from proctor.cli.streams import OutputFault, let_go
from proctor.cli.words import PATH, TEXT

if TYPE_CHECKING:
    from proctor.runner.session import Finished


@click.command(short_help="Run a study, or one task")
@click.argument("study", type=PATH, required=False)
@click.option("--task", type=PATH, help="One task folder instead of a study.")
@click.option(
    "--agent",
    type=TEXT,
    shell_complete=agents,
    help="With --task: the agent: oracle, nop, command or an installed one (default: oracle).",
)
@click.option("--command", "program", type=TEXT, help="With --task --agent command: the program, run by sh -c.")
@click.option("--files", type=PATH, help="With --agent command: a folder, put at /agent.")
@click.option(
    "--network",
    type=networks,
    help="With --task: what it may reach at most (default: gateway-only).",
)
@click.option("--sandbox", type=sandboxes, help="With --task: the kind of sandbox (default: auto).")
@click.option("--rootfs", type=PATH, help="With --task: a root folder instead of the host's.")
@click.option(
    "--substitute",
    type=TEXT,
    multiple=True,
    metavar="IMAGE=ROOT",
    help="With --task: a root (for docker: an image) that stands in for IMAGE; again for more.",
)
@stage_option
@click.option(
    "--out", type=PATH, help="The run folder (default: runs/<study>/<stage>, or a new one in runs/<task>-<agent>)."
)
@limit_option
@models_option
@arms_option
@jobs_option
@waive_option
@click.option("--prepare-only", is_flag=True, help="Admit and freeze, run nothing; `resume` starts it.")
@click.option("--keep", is_flag=True, help="Keep the worlds of attempts for `proctor shell`.")
@yes_option
@quiet_option
@json_option
def run(study: Path | None, task: Path | None, as_json: bool, quiet: bool, yes: bool, **options: Any) -> int:
    """Run STUDY (a study.toml or its folder), or one task with --task.

    A task is run by the agent `oracle` unless --agent names another: that is the task's own solution, which says that
    the task can be passed, and nothing of an agent.
    """
    if (study is None) == (task is None):
        what = "not both" if study is not None else "and neither is named"
        raise click.UsageError(f"a run is of a study, or of one task with --task, {what}")
    of_task = ("agent", "program", "files", "network", "sandbox", "rootfs", "substitute")
    if study is not None and any(options[name] for name in of_task):
        raise click.UsageError(
            "--agent, --command, --files, --network, --sandbox, --rootfs and --substitute go with --task"
        )
    if options["agent"] == "command" and options["program"] is None:
        raise click.UsageError("--agent command runs a program of yours: name it with --command")
    from proctor.runner.launch import Launch, launch

    how = Launch(command="run", study=study, task=task, **options)
    finished = launch(how, quiet=quiet, say=say, confirm=asker(yes=yes))
    return report(finished, as_json=as_json)


def report(finished: list[Finished], *, as_json: bool) -> int:
    """Print how each stage ended; returns the exit status of the last."""
    from proctor.core.exits import Exit

    # neither a reader that stopped nor a full disk changes the status, which is the one on the record
    fault: OutputFault | None = None
    try:
        _tell(finished, as_json=as_json)
    except BrokenPipeError:
        pass
    except OutputFault as unwritten:
        fault = unwritten
    let_go(fault)
    return int(finished[-1].exit) if finished else int(Exit.REFUSED)


def _tell(finished: list[Finished], *, as_json: bool) -> None:
    if as_json:
        print_json([record(each) for each in finished])
    for each in finished:
        if each.refusals:
            print_refusals(each.refusals)
            if each.recorded and (each.run / "manifests").is_dir():
                say(f"the record of the refusal is in {each.run}/manifests")
        elif not as_json:
            from proctor.report.summary import print_end

            print_end(each.run, int(each.exit), each.reason, each.message)


def record(finished: Finished) -> dict[str, Any]:
    """One stage's end as JSON."""
    return {
        "run": str(finished.run),
        "exit_status": int(finished.exit),
        "reason": finished.reason.id if finished.reason else None,
        "message": finished.message,
        "totals": dict(finished.totals) if finished.totals else None,
        "refusals": [refusal.as_record() for refusal in finished.refusals],
    }
