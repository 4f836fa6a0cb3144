"""proctor check: all gates of a run, no effects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proctor.cli.common import json_option, print_json, print_refusals, say
from proctor.cli.completing import arms_option, limit_option, models_option, stage_option, waive_option
from proctor.cli.words import PATH


@click.command(short_help="Say whether a study would be admitted")
@click.argument("study", type=PATH)
@stage_option
@click.option("--out", type=PATH, help="The run folder that a run would use.")
@limit_option
@models_option
@arms_option
@waive_option
@json_option
def check(study: Path, as_json: bool, **options: Any) -> int:
    """Say whether STUDY would be admitted: the same guards as `run`, nothing written, nothing started."""
    from proctor.admission.admit import check as look
    from proctor.core.exits import Exit
    from proctor.report.text import count
    from proctor.runner.launch import Launch, requests
    from proctor.study import plan

    verdicts = [look(request) for request in requests(Launch(command="check", study=study, **options))]
    if as_json:
        print_json([dict(verdict.manifest) for verdict in verdicts])
    for verdict in verdicts:
        for notice in verdict.manifest["probes"].get("notices", ()):
            say(f"note: {notice}")
    refused = [refusal for verdict in verdicts for refusal in verdict.refusals]
    if refused:
        print_refusals(refused)
        say(f"{count(len(refused), 'refusal')}: a run would not be admitted")
        return int(Exit.REFUSED)
    if not as_json:
        for verdict in verdicts:
            design = verdict.gathered.design if verdict.gathered else None
            if design is not None:
                trials = plan(design).planned["trials"]
                click.echo(
                    f"{design.study.name} / {design.stage.name}: {count(trials, 'trial')}"
                    f" ({count(len(design.tasks), 'task')}, {count(len(design.arms), 'arm')},"
                    f" {count(design.stage.epochs, 'epoch')})"
                    f" would be admitted; design sha256 {design.sha256}"
                )
    return int(Exit.DONE)
