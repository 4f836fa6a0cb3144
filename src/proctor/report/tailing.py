"""A run as it grows: new journal entries and new bytes of output files, without waiting and without a writer's help."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.evidence.disk import unreadable
from proctor.evidence.entries import Entry, Links, parse_line
from proctor.evidence.lock import read_lock
from proctor.evidence.reader import read_lines
from proctor.evidence.runfolder import RunFolder
from proctor.report.text import safe, safe_output

# what an attempt's programs print, in the order in which they run
_ORACLE, _LOOP, _OUT, _ERR = "agent/oracle.txt", "agent/toolloop.txt", "agent/stdout.txt", "agent/stderr.txt"
VERIFIER_OUTPUT = "verifier/test-stdout.txt"
OUTPUTS = (_ORACLE, _LOOP, _OUT, _ERR, VERIFIER_OUTPUT)
# an agent's, the most telling first
AGENT_OUTPUTS = (_ERR, _OUT, _ORACLE, _LOOP)
_CHUNK = 1 << 20
_TAIL_BYTES = 8192
_LINE_SHOWN = 120


class JournalTail:
    """The entries that have come since the last look; a line that is not finished is looked at again.

    `broken` is the first entry (from 0) that does not follow the one before it; it comes all the same.
    """

    def __init__(self, run: RunFolder) -> None:
        self._run = run
        self._offset = 0
        self._links = Links()
        self.broken: int | None = None

    def new(self) -> Iterator[Entry]:
        """What came.

        Raises:
            Refusal: `evidence_damaged` names the line; `evidence_unreadable`.
        """
        try:
            with self._run.journal_path.open("rb") as file:
                file.seek(self._offset)
                for line in read_lines(file):
                    entry = parse_line(line, self._links.size + 1)
                    if self.broken is None and not self._links.lead_to(entry):
                        self.broken = self._links.size
                    yield entry
                    self._links.advance(line)
                    self._offset += len(line) + 1
        except OSError as error:
            raise unreadable("it", "journal.jsonl", error) from error

    def live(self) -> bool:
        """Whether a process writes the run now."""
        return read_lock(self._run).live


class OutputTail:
    """The new bytes of an attempt's output files."""

    def __init__(self, run: RunFolder) -> None:
        self._run = run
        self._offsets: dict[str, int] = {}

    def new(self, folder: str) -> Iterator[tuple[str, bytes]]:
        """Path relative to the run, and bytes of it that have come; `folder` is the attempt's.

        Raises:
            Refusal: `evidence_unreadable`, or `evidence_damaged` where a path leads out of the run.
        """
        for name in OUTPUTS:
            relative = f"{folder}/{name}"
            path = inside(self._run, relative)
            try:
                if not path.is_file():
                    continue
                with path.open("rb") as file:
                    file.seek(self._offsets.get(relative, 0))
                    while chunk := file.read(_CHUNK):
                        self._offsets[relative] = file.tell()
                        yield relative, chunk
            except OSError as error:
                raise unreadable("it", relative, error) from error

    def withheld(self, folder: str) -> list[str]:
        """Output files of an attempt that a public copy leaves out, relative to the run.

        Raises:
            Refusal: `evidence_unreadable`, `evidence_damaged`.
        """
        left_out = self._run.withheld
        return [] if left_out is None else [path for name in OUTPUTS if (path := f"{folder}/{name}") in left_out.files]


class TerminalText:
    """Bytes of one file as text that a terminal can be given: nothing in it is acted upon."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def of(self, data: bytes) -> str:
        """The text of the next bytes; half a character waits for its other half."""
        return safe_output(self._decoder.decode(data).replace("\r\n", "\n"))


def last_line(run: RunFolder, folder: str, names: Sequence[str]) -> tuple[str, str] | None:
    """Name and last line (safe, at most 120 characters) of the first of an attempt's files that ends in one.

    Raises:
        Refusal: `evidence_unreadable`, or `evidence_damaged` where a path leads out of the run.
    """
    for name in names:
        path = inside(run, f"{folder}/{name}")
        try:
            if not path.is_file():
                continue
            with path.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
                text = file.read(_TAIL_BYTES).decode("utf-8", "backslashreplace")
        except OSError as error:
            raise unreadable("it", f"{folder}/{name}", error) from error
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if lines:
            shown = safe(lines[-1])
            return name, shown if len(shown) <= _LINE_SHOWN else f"{shown[: _LINE_SHOWN - 2]} …"
    return None


def inside(run: RunFolder, relative: str) -> Path:
    """A path of the run, if no link leads out of it. Raises Refusal `evidence_damaged`."""
    path = run.path / relative
    if not path.resolve().is_relative_to(run.path.resolve()):
        raise Refusal(Reason.EVIDENCE_DAMAGED, "a path leads out of the run folder", path=relative)
    return path
