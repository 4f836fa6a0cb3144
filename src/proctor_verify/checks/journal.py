"""Checks of the journal as a journal: its lines, their order, and the openings that they belong to."""

from __future__ import annotations

from proctor_verify.check import Check
from proctor_verify.journal import Entry, Line, Stretch
from proctor_verify.run import Run
from proctor_verify.schema import KINDS


class There(Check):
    id = "journal.there"
    doc = (
        "a journal stands where a run was admitted: where there is a design, a checkpoint, a recorded or derived file, "
        "or a manifest that says `admitted`"
    )
    noun = "journal"
    unblinded = True
    needs_journal = False

    def finish(self) -> None:
        if self.run.no_journal is not None:
            self.fail("journal.jsonl", f"{self.run.no_journal}, and other parts of a run that was admitted stand")
        self.looked = 1


class Still(Check):
    id = "journal.still"
    doc = "once it was read, the journal is what it was when reading began: nobody wrote to it, cut or replaced it"
    noun = "bytes"
    unblinded = True

    def finish(self) -> None:
        self.looked = self.run.journal_bytes
        if self.run.journal_changed is not None:
            self.fail("journal.jsonl", self.run.journal_changed)


class Lines(Check):
    id = "journal.lines"
    doc = "every line is one canonical JSON value of at most 65,535 bytes, ended by a newline"
    noun = "lines"
    unblinded = True

    def line(self, line: Line) -> None:
        self.looked += 1
        if line.fault is not None:
            self.fail(f"journal.jsonl:{line.number + 1}", line.fault)

    def sound_lines(self, count: int) -> None:
        self.looked += count

    def finish(self) -> None:
        if not self.looked:
            self.fail("journal.jsonl", "there is no entry in it")


class Kinds(Check):
    id = "journal.kinds"
    doc = "every entry has exactly the fields of an entry, is of a known kind, and its body has that kind's shape"
    unblinded = True

    def line(self, line: Line) -> None:
        # one that has a fault, said by journal.lines, is of no shape
        self.looked += line.fault is None
        if line.misshapen is not None:
            self.fail(f"journal.jsonl:{line.number + 1}", line.misshapen)
        elif line.unknown_kind is not None:
            self.cannot_tell(f"line {line.number + 1} is of kind {line.unknown_kind}, which this program does not know")

    def sound_lines(self, count: int) -> None:
        self.looked += count


class Sequence(Check):
    id = "journal.sequence"
    doc = "`seq` counts 0, 1, 2 … without a gap"
    every = True
    unblinded = True
    _next = 0

    def joins(self, stretch: Stretch) -> bool:
        return stretch.entries[0].seq in (self._next, stretch.entries[0].line)

    def join(self, stretch: Stretch) -> None:
        self.looked += len(stretch.entries)
        self._next = stretch.entries[-1].seq + 1

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        if entry.seq != self._next and entry.seq != entry.line:
            self.fail_at(entry, f"seq is {entry.seq}, where {self._next} is next")
        self._next = entry.seq + 1


class Chain(Check):
    id = "journal.chain"
    doc = "`prev` is the SHA-256 of the line before, 64 zeros in entry 0"
    every = True
    unblinded = True

    def joins(self, stretch: Stretch) -> bool:
        return stretch.entries[0].prev == self.run.head

    def join(self, stretch: Stretch) -> None:
        self.looked += len(stretch.entries)

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        if entry.prev != self.run.head:
            self.fail_at(entry, f"prev is {entry.prev}, where the line before has {self.run.head}")


class Mono(Check):
    id = "journal.mono"
    doc = "`mono` never falls within one opening"
    every = True
    unblinded = True
    _last = 0

    def joins(self, stretch: Stretch) -> bool:
        return stretch.entries[0].mono >= self._last

    def join(self, stretch: Stretch) -> None:
        self.looked += len(stretch.entries)
        self._last = stretch.entries[-1].mono

    def entry(self, entry: Entry) -> None:
        self.looked += 1
        if entry.mono < self._last and entry.kind != "run.resumed":
            self.fail_at(entry, f"mono falls from {self._last} to {entry.mono}")
        self._last = entry.mono


class Openings(Check):
    id = "journal.openings"
    doc = (
        "entry 0, and no other, is `run.admitted`; after a `run.ended` comes `run.resumed` or nothing; "
        "`previous_ended` is true exactly there"
    )
    noun = "openings"
    kinds = tuple(KINDS)

    def joins(self, stretch: Stretch) -> bool:
        return stretch.entries[0].line > 0 and not self.run.ended

    def entry(self, entry: Entry) -> None:
        kind, ended = entry.kind, self.run.ended
        self.looked += kind in ("run.admitted", "run.resumed")
        if (kind == "run.admitted") != (entry.line == 0):
            self.fail_at(entry, f"is {kind}, and entry 0 alone is run.admitted")
        elif ended and kind != "run.resumed":
            self.fail_at(entry, f"is {kind} after a run.ended")
        elif kind == "run.resumed" and entry.body["previous_ended"] != ended:
            self.fail_at(entry, f"previous_ended is {entry.body['previous_ended']}, and the entry before says {ended}")


class Recovered(Check):
    id = "journal.recovered"
    doc = (
        "`run.recovered` follows `run.resumed`, always where the opening before had no end; it names the attempts in "
        "flight, and the end of each, outcome `lost`, comes next; no other attempt is lost"
    )
    noun = "recoveries"
    kinds = tuple(KINDS)
    within = ("attempt.ended",)

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._due = False
        self._lost: set[str] = set()

    def joins(self, stretch: Stretch) -> bool:
        return not self._due and not self._lost

    def entry(self, entry: Entry) -> None:
        kind, body = entry.kind, entry.body
        if kind == "run.resumed":
            # A recovery may itself have died anywhere: then this is the next one.
            self._due, self._lost = not self.run.ended, set()
        elif kind == "run.recovered":
            self.looked += 1
            self._recovery(entry)
        elif self._due:
            self.fail_at(entry, f"is {kind}, where run.recovered is due")
            self._due = False
        elif kind == "attempt.ended" and (body["outcome"] == "lost") != (body["attempt"] in self._lost):
            self.fail_at(entry, f"ends {body['attempt']} as {body['outcome']}, which run.recovered does not bear out")
        elif self._lost and not self._goes_between(entry):
            self.fail_at(entry, f"is {kind} before the ends of attempts that were lost")
            self._lost = set()
        if kind == "attempt.ended":
            self._lost.discard(body["attempt"])

    def _recovery(self, entry: Entry) -> None:
        named, in_flight = set(entry.body["lost"]), self.run.open.keys()
        if self.run.last_kind != "run.resumed":
            self.fail_at(entry, "does not follow a run.resumed")
        elif len(named) != len(entry.body["lost"]) or named != in_flight:
            self.fail_at(entry, f"names {len(named)} attempts as in flight, where {len(in_flight)} were")
        # no more than one entry can name, however many are open
        self._due, self._lost = False, named & in_flight

    def _goes_between(self, entry: Entry) -> bool:
        if entry.kind in ("exchange.ended", "attempt.files", "attempt.ended"):
            return entry.body["attempt"] in self._lost
        return entry.kind in ("checkpoint.made", "checkpoint.anchored")


class Ended(Check):
    id = "run.ended"
    doc = "the last entry is `run.ended`"
    noun = "ends"

    kinds = ("run.ended",)

    def entry(self, entry: Entry) -> None:
        self.looked += 1

    def finish(self) -> None:
        if not self.run.ended:
            last = f"the last entry is {self.run.last_kind}" if self.run.last_kind is not None else "there is no entry"
            self.fail("journal.jsonl", f"run_open: {last}: the run goes on, or died")
