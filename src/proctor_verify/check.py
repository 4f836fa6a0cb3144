"""What a check is: a named step that is fed the journal's entries and says what does not hold."""

from __future__ import annotations

from typing import ClassVar

from proctor_verify.design import Design, Trials
from proctor_verify.journal import Entry, Line, Stretch
from proctor_verify.report import SHOWN_FINDINGS, Finding, Result, Status, plain
from proctor_verify.run import Run


class Check:
    """One rule with a stable id. Subclasses override what they need of `line`, `entry` and `finish`.

    `kinds` are the kinds of entries that `entry` wants; `every` asks for the envelope of each entry instead, known
    kind or not. `within` are those that a check which has `joins` wants of a stretch that joined. `unblinded` marks
    checks that still mean something after a line that could not be read; `needs_design` those that mean nothing without
    the design, `needs_journal` is false for the one that means something without a journal.
    """

    id: ClassVar[str]
    doc: ClassVar[str]
    noun: ClassVar[str] = "entries"
    kinds: ClassVar[tuple[str, ...]] = ()
    every: ClassVar[bool] = False
    within: ClassVar[tuple[str, ...]] = ()
    unblinded: ClassVar[bool] = False
    needs_design: ClassVar[bool] = False
    needs_journal: ClassVar[bool] = True

    run: Run

    def __init__(self, run: Run | None = None) -> None:
        """`run` is None for a rule of a design that stands alone."""
        if run is not None:
            self.run = run
        self.looked = 0
        self._fails: list[Finding] = []
        self._failed = 0
        self._doubt: str | None = None
        # what a pass says, where a count says too little
        self.said: str | None = None

    @property
    def design(self) -> Design:
        """The design, for checks that need it."""
        assert self.run.design is not None
        return self.run.design

    @property
    def trials(self) -> Trials:
        """The design's trials, for checks that need them."""
        assert self.run.trials is not None
        return self.run.trials

    def line(self, line: Line) -> None:
        """A line of the journal that stands in no stretch, readable or not."""

    def sound_lines(self, count: int) -> None:
        """So many lines of the journal, each of which is an entry of a known kind and its shape."""

    def joins(self, stretch: Stretch) -> bool:
        """Whether nothing is wrong with a stretch where it begins; with what comes later in it nothing can be.

        Only checks that say so have it. A stretch that does not join to one of them is walked line by line.
        """
        return True

    def join(self, stretch: Stretch) -> None:
        """A stretch that joined, to all checks: `entry` is called for those of `within` alone."""

    def entry(self, entry: Entry) -> None:
        """An entry of one of `kinds`, before the run's facts take it in."""

    def settle(self) -> None:
        """The journal is over, readable to its end or not: what was asked aside is waited for."""

    def finish(self) -> None:
        """The journal is over, and what the check needs was there."""

    def fail(self, path: str, seen: str) -> None:
        """Something does not hold."""
        self._failed += 1
        if len(self._fails) < SHOWN_FINDINGS:
            self._fails.append(Finding(plain(path), plain(seen)))

    def fail_body(self, path: str, seen: str) -> None:
        """A body that an entry names is not there as it was named: in a copy it may be one that is withheld."""
        if self.run.withheld.fault is None:
            self.fail(path, seen)
        else:
            self.cannot_tell(f"what is withheld is not known: {path} {seen}")

    def fail_unseen(self, count: int) -> None:
        """So many more findings that are counted and not shown."""
        self._failed += count

    def fail_at(self, entry: Entry, seen: str) -> None:
        """An entry does not hold."""
        self.fail(f"journal.jsonl:{entry.line + 1}", seen)

    def cannot_tell(self, why: str) -> None:
        """Something that the check needs is not there; the first reason is kept."""
        if self._doubt is None:
            self._doubt = plain(why)

    def result(self) -> Result:
        """The line of the report."""
        if self._failed:
            word = "finding" if self._failed == 1 else "findings"
            return Result(self.id, Status.FAIL, f"{self._failed:,} {word}", self._failed, tuple(self._fails))
        if self._doubt is not None:
            return Result(self.id, Status.CANNOT_TELL, self._doubt)
        if not self.looked:
            return Result(self.id, Status.NOT_APPLICABLE, f"no {self.noun}")
        return Result(self.id, Status.PASS, plain(self.said or f"{self.noun}: {self.looked:,}"))
