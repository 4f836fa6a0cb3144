"""proctor plan: what a study's stages are to cost, and the amounts that a budget needs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.common import json_option, print_json, print_refusals, say
from proctor.cli.completing import stage_option
from proctor.cli.words import PATH, WORD

if TYPE_CHECKING:
    from proctor.core.money import Usd
    from proctor.runner.planning import StagePlan


@click.command(short_help="Size the money of a study")
@click.argument("study", type=PATH)
@stage_option
@click.option("--pilot", type=PATH, metavar="RUN", help="Take expected costs from this run.")
@click.option(
    "--assume",
    "assumed",
    type=WORD,
    multiple=True,
    metavar="MODEL=USD",
    help="What the whole stage is to cost with MODEL; again for more.",
)
@click.option("--write", is_flag=True, help="Write the amounts into the study; comments and order stay.")
@json_option
def plan(
    study: Path, stage: str | None, pilot: Path | None, assumed: tuple[str, ...], write: bool, as_json: bool
) -> int:
    """Say what STUDY is to cost and can cost at most, and fill in caps and reserves of its models."""
    import difflib

    from proctor.core.exits import Exit
    from proctor.runner.launch import Launch, requests
    from proctor.runner.planning import as_record, plan_stage, read_pilot

    asked = list(requests(Launch(command="plan", study=study, stage=stage)))
    costs = _assumed(assumed)
    if len(asked) > 1 and (costs or pilot):
        raise click.UsageError("--assume and --pilot are of one stage: name it with --stage")
    told = read_pilot(pilot) if pilot is not None else {}
    plans = [plan_stage(request, costs, told) for request in asked]
    refusals = [refusal for each in plans for refusal in each.refusals]
    file = study / "study.toml" if study.is_dir() else study
    before = after = ""
    if not refusals:
        before = file.read_bytes().decode("utf-8")
        after = before
        for each in plans:
            after = each.edit(after)
    diff = "".join(
        difflib.unified_diff(
            before.splitlines(keepends=True), after.splitlines(keepends=True), file.name, f"{file.name} (planned)"
        )
    )
    written = write and not refusals and after != before
    if written:
        _replace(file, after)
    if as_json:
        print_json({"stages": [as_record(each) for each in plans], "diff": diff, "written": written})
    else:
        for each in plans:
            for line in _lines(each):
                click.echo(line)
        if diff and not written:
            click.echo("")
            click.echo(diff, nl=False)
    print_refusals(refusals)
    if written:
        say(f"wrote {file}")
    elif diff:
        say("nothing is written without --write")
    return int(Exit.REFUSED if refusals else Exit.DONE)


def _assumed(words: Iterable[str]) -> dict[str, Usd]:
    from proctor.core.money import ZERO, Usd
    from proctor.core.refusal import Refusal

    costs: dict[str, Usd] = {}
    for word in words:
        name, _, amount = word.partition("=")
        try:
            cost = Usd.parse(amount)
        except Refusal as refusal:
            raise click.UsageError(f"--assume {word}: {refusal.message}; give MODEL=USD, such as luna=36.20") from None
        if not name or cost < ZERO or name in costs:
            raise click.UsageError(f"--assume {word}: give MODEL=USD once for a model, not negative")
        costs[name] = cost
    return costs


def _lines(plan: StagePlan) -> list[str]:
    from proctor.core.money import exact_dollars
    from proctor.report.text import count, field, table

    if not plan.study:
        return []
    head = [f"{plan.study} / {plan.stage}: {count(plan.trials, 'trial')} in {count(plan.blocks, 'block')}"]
    if plan.amounts is None:
        return [*head, *([] if plan.refusals else ["nothing is priced: no budget is needed"])]
    frame, shares = plan.amounts.frame, plan.amounts.shares
    rows = [
        (
            name,
            exact_dollars(share.expected),
            plan.sources[name],
            exact_dollars(share.cap),
            exact_dollars(share.reserve),
            share.blocks,
        )
        for name, share in shares.items()
    ]
    head += table(("model", "expected", "from", "cap", "reserve", "blocks"), rows, right={1, 3, 4, 5})
    head += field("expected", f"{exact_dollars(plan.amounts.total)} USD")
    head += field("cap", f"{exact_dollars(frame.cap)} USD: no block is admitted beyond it")
    head += field("ceiling", f"{exact_dollars(frame.ceiling)} USD: no request is sent beyond it")
    if plan.at_most is not None:
        spent = f", after {exact_dollars(frame.spent_before)} spent before" if frame.spent_before.pico else ""
        head += field("at most", f"{exact_dollars(plan.at_most)} USD for a run{spent}")
    if plan.amounts.is_short:
        away = "take the stage's tables budget, caps and reserves out of the study to have all of it worked out anew"
        head += field("too little", f"what is expected does not fit into the allocation and the cap; {away}")
    if plan.synthetic:
        head += field("SYNTHETIC", f"made up, no real money: {', '.join(plan.synthetic)}")
    return head


def _replace(file: Path, text: str) -> None:
    """Put the new text in the file's place, whole or not at all; a link stays one, and the mode as it was.

    Raises:
        click.UsageError: it cannot be written.
    """
    import stat

    from proctor.evidence.disk import Disk

    try:
        real = file.resolve()
        mode = stat.S_IMODE(real.stat().st_mode)
        Disk().put(real, text.encode("utf-8"))
        real.chmod(mode)
    except OSError as error:
        raise click.UsageError(f"{file} cannot be written: {error.strerror or error}") from error
