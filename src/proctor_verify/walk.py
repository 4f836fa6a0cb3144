"""The walk over the journal: each line handed to the checks that want it, then to the facts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from proctor_verify.check import Check
from proctor_verify.clocks import Clock
from proctor_verify.errors import Unreadable
from proctor_verify.journal import MAX_HASHED, Block, Entry, Line, Stretch
from proctor_verify.judging import Span, lines_of, pieces
from proctor_verify.run import Run
from proctor_verify.schema import KINDS, body_fault, envelope_fault
from proctor_verify.strictjson import loads_canonical

# A journal has no line that cannot be read; what has so many is none, and of any size.
MAX_UNREADABLE = 100_000


class Walk:
    """Takes the journal piece by piece. `over` is whether nothing more of it is worth reading."""

    def __init__(self, run: Run, checks: Sequence[Check]) -> None:
        self._run = run
        self.over = False
        self._clock = Clock()
        self._unreadable = 0
        self._sound = [check.sound_lines for check in checks if type(check).sound_lines is not Check.sound_lines]
        self._lines = [check.line for check in checks if type(check).line is not Check.line]
        self._every: list[Callable[[Entry], None]] = [check.entry for check in checks if check.every]
        self._kinds: dict[str, list[Callable[[Entry], None]]] = defaultdict(list)
        # of a stretch: who is asked whether it joins, and who sees its entries then
        self._joining = [check for check in checks if type(check).joins is not Check.joins]
        self._within: dict[str, list[Callable[[Entry], None]]] = defaultdict(list)
        for check in checks:
            if run.design is not None or not check.needs_design:
                for kind in check.kinds:
                    self._kinds[kind].append(check.entry)
                    if check not in self._joining or kind in check.within:
                        self._within[kind].append(check.entry)

    def caveats(self) -> tuple[str, ...]:
        """What the report says of how the journal was read."""
        if not self.over:
            return tuple(self._clock.caveats())
        said = f"lines: {self._unreadable:,} of them cannot be read, and nothing after line {self._run.size:,} was read"
        return (said, *self._clock.caveats())

    def block(self, block: Block, spans: Sequence[Span]) -> None:
        """Lines that were judged."""
        for each in pieces(block, spans):
            if isinstance(each, Line):
                self.line(each)
                if self.over:
                    return
            elif all(check.joins(each) for check in self._joining):
                self._stretch(each)
            else:
                for line in lines_of(each):
                    self.line(line)

    def _stretch(self, stretch: Stretch) -> None:
        run, within, take = self._run, self._within, self._run.take
        for count in self._sound:
            count(len(stretch.entries))
        self._clock.pass_over(stretch)
        for check in self._joining:
            check.join(stretch)
        if run.blind is None:
            for entry in stretch.entries:
                for see in within[entry.kind]:
                    see(entry)
                take(entry)
        run.extend(stretch.head, stretch.subtrees)

    def line(self, line: Line) -> None:
        """A line that may be anything."""
        entry = _parse(line)
        for look in self._lines:
            look(line)
        run = self._run
        if line.fault or line.misshapen:
            self._unreadable += 1
            self.over = self._unreadable >= MAX_UNREADABLE
        if entry is not None and not line.misshapen:
            self._entry(entry)
        else:
            if entry is not None:
                self._envelope(entry)
            if run.blind is None:
                run.blind = f"line {line.number + 1} of the journal cannot be read, and what follows depends on it"
        if line.terminated:
            run.advance(line.digest, line.leaf)

    def _entry(self, entry: Entry) -> None:
        self._envelope(entry)
        if self._run.blind is None:
            for see in self._kinds[entry.kind]:
                see(entry)
            self._run.take(entry)

    def _envelope(self, entry: Entry) -> None:
        self._clock.take(entry)
        for see in self._every:
            see(entry)


def _parse(line: Line) -> Entry | None:
    """The line as an entry, as far as it is one; what it is not is noted on the line."""
    if line.given_up:
        line.fault = f"no newline ends it within {MAX_HASHED:,} bytes, and nothing from there on was read"
        return None
    if not line.terminated:
        line.fault = "no newline ends the last line: it was cut, or never finished"
        return None
    if line.raw is None:
        line.fault = "is longer than an entry may be"
        return None
    try:
        value = loads_canonical(line.raw)
    except Unreadable as error:
        line.fault = str(error)
        return None
    line.misshapen = envelope_fault(value)
    if line.misshapen is not None:
        return None
    kind, body = value["kind"], value["body"]
    if kind in KINDS:
        line.misshapen = body_fault(kind, body)
    else:
        line.unknown_kind = kind
    return Entry(line.number, value["seq"], value["prev"], value["time"], value["mono"], kind, body)
