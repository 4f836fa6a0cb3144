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
    from proctor.evidence.public.publish import LeftOut, Published

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
    help=f"What to leave out, of {_words(list(Withhold))}; or {_NONE} (default: {_words(DEFAULT)}).",
)
@json_option
def public(run: Path, output: Path, withhold: tuple[str, ...], as_json: bool) -> None:
    """Copy RUN to OUT without the bodies that are to stay with you: anyone can still verify it, without your key.

    What was said is left out unless --withhold says otherwise: what agents were told, what models were asked and
    answered, what was submitted. The journal's entries are all shown: names, grades, costs, and what a scorer said of
    an answer, which may quote it and what it was compared with. What agents logged is shown too, and may repeat all of
    it. A body that is of two kinds is left out if one of them is. The digests of what is left out stay: whoever is
    shown a body later can hold it against them, and a short text can be guessed from its digest.
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
            "bytes": made.left_out.size,
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
        yield from _left_out(made.left_out)
    for note in _repeated(made, asked):
        yield from field("note", note, _INDENT)
    if not made.ended:
        yield from field("note", "the run has no end, and a verification of the copy says so", _INDENT)
    yield from field("verify", safe(command("proctor", "verify", out, "--key", made.fingerprint)), _INDENT)
    yield from field(
        "", "all that was copied is stored as its entries name it; that the run verifies was not asked", _INDENT
    )


def _left_out(bytes_of: LeftOut) -> Iterator[str]:
    from proctor.report.text import amount, count, field, safe

    files = f"{count(bytes_of.count, 'file')} with bytes that no entry names, {amount(bytes_of.size)}:"
    yield from field("left out", files, _INDENT)
    for path, size in bytes_of.first:
        yield from field("", safe(f"{path}: {amount(size)}"), _INDENT)
    if bytes_of.count > len(bytes_of.first):
        yield from field("", f"and {count(bytes_of.count - len(bytes_of.first), 'more file', 'more files')}", _INDENT)
    yield from field("note", "with these the run does not verify; the copy does not have them, and may verify", _INDENT)


def _repeated(made: Published, asked: frozenset[Withhold]) -> Iterator[str]:
    """What is shown and may say what is withheld."""
    from proctor.report.text import count

    if not asked & DEFAULT:
        return
    bodies = _words(DEFAULT - asked)
    if bodies:
        yield f"{bodies}: shown, and may repeat what is withheld"
    left = [kind for kind in (Withhold.AGENT_FILES, Withhold.VERIFIER_FILES, Withhold.ARTIFACTS) if kind not in asked]
    if left:
        yield f"{_words(left)}: shown where an attempt left any, and may repeat all that was said"
    if made.scored:
        said = count(made.scored, "answer has its", "answers have their")
        yield (
            f"the journal is shown: {said} scoring in it (`detail`), which may quote the answer "
            "and what was right; `proctor logs COPY --json` prints it"
        )
