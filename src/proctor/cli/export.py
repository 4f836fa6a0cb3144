"""proctor export: a run in a form that can be given to others."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from proctor.cli.common import json_option, print_json, run_argument
from proctor.cli.opened import opened
from proctor.cli.words import PATH, WORD
from proctor.evidence.public.withhold import DEFAULT, Withhold

if TYPE_CHECKING:
    from proctor.evidence.public.publish import Published

_NONE = "none"
_INDENT = 12


def _words(kinds: Collection[Withhold]) -> str:
    return ", ".join(kind.word for kind in Withhold if kind in kinds)


@click.group(short_help="Write a run in a form for others")
def export() -> None:
    """Write a run in a form that can be given to others."""


@export.command(short_help="Copy a run without chosen bodies")
@run_argument
@click.option(
    "-o",
    "--output",
    type=PATH,
    required=True,
    metavar="OUT",
    help="The folder of the copy, which must not exist or be empty.",
)
@click.option(
    "--withhold",
    type=WORD,
    multiple=True,
    metavar="WHAT,…",
    help=f"What to leave out, of {_words(list(Withhold))}; or {_NONE}. Default: {_words(DEFAULT)}.",
)
@json_option
def public(run: Path, output: Path, withhold: tuple[str, ...], as_json: bool) -> None:
    """Copy RUN to OUT without the bodies that are to stay with you: anyone can still verify it, without your key.

    The journal is copied whole: what stands in its entries is shown, such as names, grades, costs, and what a scorer
    said of an answer. A body that is of two kinds is left out if one of them is. The digests of what is left out stay:
    whoever is shown a body later can hold it against them, and a short text can be guessed from its digest.
    """
    from proctor.evidence.public.publish import publish

    asked = _asked(withhold)
    made = publish(opened(run), output, asked)
    if as_json:
        print_json(_record(made, run, asked))
        return
    for line in _lines(made, run, asked):
        click.echo(line)


def _asked(options: tuple[str, ...]) -> frozenset[Withhold]:
    if not options:
        return DEFAULT
    words = [word.strip() for each in options for word in each.split(",")]
    if words == [_NONE]:
        return frozenset()
    asked = set()
    for word in words:
        kind = Withhold.by_word(word)
        if kind is None:
            raise click.UsageError(f"--withhold takes {_words(list(Withhold))}, or {_NONE} alone; not {word!r}")
        asked.add(kind)
    return frozenset(asked)


def _record(made: Published, run: Path, asked: Collection[Withhold]) -> dict[str, Any]:
    return {
        "path": str(made.out),
        "run": str(run),
        "run_id": made.run_id,
        "key": made.fingerprint,
        "entries": made.entries,
        "ended": made.ended,
        "asked": [kind.word for kind in Withhold if kind in asked],
        "withheld": {word: {"bodies": bodies, "bytes": size} for word, (bodies, size) in made.withheld.items()},
        "left_out": {
            "files": made.left_out.count,
            "first": [{"path": path, "bytes": size} for path, size in made.left_out.first],
        },
    }


def _lines(made: Published, run: Path, asked: frozenset[Withhold]) -> Iterator[str]:
    from proctor.report.text import amount, command, count, field, safe, short_path

    out = short_path(made.out)
    yield from field("copy", safe(out), _INDENT)
    entries = count(made.entries, "entry", "entries")
    yield from field("of", safe(f"{short_path(run)}, run {made.run_id}, {entries}"), _INDENT)
    total, size = (sum(column) for column in zip((0, 0), *made.withheld.values(), strict=True))
    yield from field("withheld", f"{count(total, 'body', 'bodies')}, {amount(size)}", _INDENT)
    for word, (bodies, size) in sorted(made.withheld.items()):
        yield from field("", f"{word}: {count(bodies, 'body', 'bodies')}, {amount(size)}", _INDENT)
    shown = _words([kind for kind in Withhold if kind not in asked])
    yield from field("shown", f"the journal, whole{f'; {shown}' if shown else ''}", _INDENT)
    if made.left_out.count:
        named = ", ".join(path for path, _ in made.left_out.first[:3]) + (" …" if made.left_out.count > 3 else "")
        lacking = f"{count(made.left_out.count, 'file')} with bytes that no entry names: {named}"
        yield from field("left out", safe(lacking), _INDENT)
    if Withhold.AGENT_FILES not in asked and asked & {Withhold.REQUESTS, Withhold.RESPONSES}:
        yield from field("note", "agent-files are shown: what an agent logged may repeat what models said", _INDENT)
    if not made.ended:
        yield from field("note", "the run has no end, and a verification of the copy says so", _INDENT)
    yield from field("verify", safe(command("proctor", "verify", out, "--key", made.fingerprint)), _INDENT)
    yield from field(
        "", "all that was copied is stored as its entries name it; that the run verifies was not asked", _INDENT
    )
