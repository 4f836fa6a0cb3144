"""proctor logs: the journal told for people, or what a trial's programs printed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.cli.common import json_option, run_argument
from proctor.cli.opened import one_trial, opened
from proctor.cli.words import WORD

if TYPE_CHECKING:
    from proctor.evidence.runfolder import RunFolder
    from proctor.report.tailing import JournalTail, TerminalText

_POLL_SEC = 0.2


@click.command(short_help="Tell a run's journal, or a trial's output")
@run_argument
@click.argument("trial", type=WORD, required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on until the run (or the trial) is over.")
@json_option
def logs(run: Path, trial: str | None, follow: bool, as_json: bool) -> None:
    """Tell the journal of RUN, a line an entry; or print what the last attempt of TRIAL printed.

    TRIAL is an id or the beginning of one, the name of a trial's folder, or task/arm/epoch. A line names each file;
    where standard output is no terminal, its bytes come raw. With --json: entries as JSON lines. Nothing of it is
    checked: that is what `proctor verify` does. Only where an entry does not follow the one before it, that is said.
    """
    folder = opened(run)
    if trial is None:
        _journal(folder, follow=follow, as_json=as_json)
        return
    if as_json:
        raise click.UsageError("what a trial's programs printed has no JSON form: leave out --json")
    _outputs(folder, trial, follow=follow)


def _journal(folder: RunFolder, *, follow: bool, as_json: bool) -> None:
    import json
    import time

    from proctor.evidence.kinds import Kind
    from proctor.report.tailing import JournalTail
    from proctor.report.telling import Teller

    tail, teller, watch = JournalTail(folder), Teller(), _Watch(folder.path)
    over = not follow
    while True:
        for entry in tail.new():
            watch.look(tail)
            if as_json:
                kind = entry.kind.id if isinstance(entry.kind, Kind) else entry.kind
                record = {"seq": entry.seq, "time": entry.time, "kind": kind, "body": entry.body}
                click.echo(json.dumps(record, ensure_ascii=False))
            else:
                click.echo(teller.line(entry))
        if over:
            watch.end()
            return
        # what was written before the writer let go is read in one more round
        over = not tail.live()
        if not over:
            time.sleep(_POLL_SEC)


def _outputs(folder: RunFolder, text: str, *, follow: bool) -> None:
    import time

    from proctor.evidence.kinds import Kind
    from proctor.report.reading import read_run
    from proctor.report.tailing import JournalTail, OutputTail

    row = one_trial(read_run(folder, validate=False), text)
    trial = row.trial.id
    tail, outputs, printer = JournalTail(folder), OutputTail(folder), _Printer()
    watch = _Watch(folder.path)
    attempt, over = None, not follow
    while True:
        final = False
        for entry in tail.new():
            watch.look(tail)
            if entry.kind in (Kind.ATTEMPT_ADMITTED, Kind.TRIAL_FINAL) and entry.body["trial"] == trial:
                final = entry.kind is Kind.TRIAL_FINAL
                attempt = attempt if final else entry.body["folder"]
        if attempt is not None:
            for path, data in outputs.new(attempt):
                printer.print(path, data)
        if over:
            break
        over = final or not tail.live()
        if not over:
            time.sleep(_POLL_SEC)
    withheld = [] if attempt is None else outputs.withheld(attempt)
    if withheld:
        from proctor.evidence.withheld import withheld_refusal

        raise withheld_refusal("what was printed", ", ".join(withheld))
    if not printer.printed:
        click.echo("nothing was printed" + (_of_a_row(folder, text) if row.question else ""), err=True)


def _of_a_row(folder: RunFolder, text: str) -> str:
    from proctor.report.text import command, safe, short_path

    shown = safe(command("proctor", "show", short_path(folder.path), text))
    return f": a question has no program of its own. What was asked and answered: {shown}"


class _Watch:
    """Says on standard error where the journal is broken, once, or at its end that nothing was checked."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._said = False

    def look(self, tail: JournalTail) -> None:
        """After each entry."""
        from proctor.report.unchecked import NOT_FOLLOWING, broken_lines

        if tail.broken is not None and not self._said:
            self._said = True
            where = f"journal.jsonl:{tail.broken + 1}: {NOT_FOLLOWING}"
            click.secho("\n".join(broken_lines(self._run, where)), fg="red", bold=True, err=True)

    def end(self) -> None:
        """After the last entry."""
        from proctor.report.unchecked import unchecked_line

        if not self._said:
            click.echo(unchecked_line(self._run), err=True)


class _Printer:
    """Puts each file's name on a line, and its bytes below it: raw, or safe for a terminal."""

    def __init__(self) -> None:
        self.printed = False
        self._path: str | None = None
        self._within_line = False
        self._terminal = sys.stdout.isatty()
        self._texts: dict[str, TerminalText] = {}

    def print(self, path: str, data: bytes) -> None:
        """The next bytes of a file."""
        from proctor.report.tailing import TerminalText
        from proctor.report.text import safe

        if path != self._path:
            before = "\n" if self._within_line else ""
            self._put(f"{before}==> {safe(path)} <==\n".encode())
            self._path = path
        self.printed = True
        self._within_line = not data.endswith(b"\n")
        self._put(self._texts.setdefault(path, TerminalText()).of(data).encode() if self._terminal else data)

    @staticmethod
    def _put(data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
