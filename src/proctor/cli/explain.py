"""proctor explain: the long form of a reason."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from proctor.cli.common import json_option, print_json
from proctor.cli.completing import reasons
from proctor.cli.words import WORD

if TYPE_CHECKING:
    from proctor.core.reasons import Reason


@click.command(short_help="Say what a reason or a check means")
@click.argument("reason", type=WORD, required=False, shell_complete=reasons)
@json_option
def explain(reason: str | None, as_json: bool) -> None:
    """Say what a REASON means and what to do; without one, list them all.

    In its place can stand the name of a check of `proctor verify`, as `anchors.remote`: then what it asks is said.
    """
    from proctor.core.reasons import Reason
    from proctor.report.text import typable

    if reason is None:
        if as_json:
            print_json([_record(each) for each in Reason])
            return
        _list()
        return
    found = Reason.by_id(reason.strip().replace("-", "_"))
    if found is None:
        _check(reason.strip(), as_json=as_json)
        return
    if as_json:
        print_json(_record(found))
        return
    click.secho(found.id, bold=True)
    click.echo(f"  about      {found.family.value}")
    click.echo(f"  means      {found.summary}")
    click.echo(f"  do         {typable(found.remedy)}")
    click.echo(f"  waivable   {'yes, with --waive ' + found.id if found.waivable else 'no'}")


def _check(name: str, *, as_json: bool) -> None:
    """What a check of the second program asks, which alone knows them."""
    import difflib

    from proctor.core.reasons import Reason
    from proctor.report.text import field
    from proctor.runner.verifying import NoReport, table_of_checks

    rows = {}
    # then it is known of reasons alone
    with suppress(NoReport):
        rows = {row["check"]: row for row in table_of_checks()}
    row = rows.get(name)
    if row is None:
        close = difflib.get_close_matches(name, [*(each.id for each in Reason), *rows], n=3)
        hint = f" Closest: {', '.join(close)}." if close else ""
        raise click.UsageError(f"there is no reason and no check {name!r}.{hint}")
    if as_json:
        print_json(row)
        return
    click.secho(row["check"], bold=True)
    told = (("about", row["about"]), ("holds when", row["holds_when"]), ("more", "docs/verify.md, docs/checks.md"))
    for label, text in told:
        for line in field(f"  {label}", text, 13):
            click.echo(line)


def _list() -> None:
    """All of them, by what they are about, sorted."""
    from proctor.core.families import Family
    from proctor.core.reasons import Reason
    from proctor.report.text import field

    for number, family in enumerate(Family):
        if number:
            click.echo()
        click.secho(f"{family.value[0].upper()}{family.value[1:]}", bold=True)
        for each in sorted((each for each in Reason if each.family is family), key=lambda each: each.id):
            for line in field(f"  {each.id}", each.summary, 30):
                click.echo(line)


def _record(reason: Reason) -> dict[str, object]:
    return {
        "reason": reason.id,
        "about": reason.family.value,
        "means": reason.summary,
        "do": reason.remedy,
        "waivable": reason.waivable,
    }
