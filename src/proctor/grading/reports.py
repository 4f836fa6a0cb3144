"""Test reports in one form: every row as it stood, and how rows group into tests.

A row is what a tool wrote; a test is an identity, which may have several rows (reruns, parameters, a mistake). Rows
are never dropped, cut or renamed; counting is by identity, so that a rerun is no extra pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Identity = tuple[tuple[str, ...] | str | None, ...]


class Source(StrEnum):
    """Which kind of report."""

    CTRF = "ctrf"
    JUNIT = "junit"


class Status(StrEnum):
    """A row's outcome, in the words of both formats together."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    PENDING = "pending"
    OTHER = "other"


class Verdict(StrEnum):
    """What a status comes to."""

    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"
    OTHER = "other"


_VERDICTS: Mapping[Status, Verdict] = {
    Status.PASSED: Verdict.PASS,
    Status.FAILED: Verdict.FAIL,
    Status.ERROR: Verdict.FAIL,
    Status.SKIPPED: Verdict.SKIP,
    Status.PENDING: Verdict.SKIP,
    Status.OTHER: Verdict.OTHER,
}


@dataclass(frozen=True)
class Row:
    """One row of a report.

    Args:
        name: as written, whole; None where the report has none.
        group: JUnit's classname, CTRF's file; None where there is none.
        suite: names of the suites around it, outermost first.
        status: its outcome.
        raw_status: the tool's own word, where it has one.
        message: why it failed or was skipped, as written.
        duration: as written, in the report's `duration_unit`.
        retries: how often the tool ran the test again; None where it does not say.
        merged: how many further results were folded into this row; None unless the tool folds.
        flaky: the tool called it flaky, or it passed after a failure that the row records.
        results: the result elements of a JUnit row, by name, in order.
    """

    name: str | None
    group: str | None
    suite: tuple[str, ...]
    status: Status
    raw_status: str | None = None
    message: str | None = None
    duration: int | float | None = None
    retries: int | None = None
    merged: int | None = None
    flaky: bool = False
    results: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """What its status comes to."""
        return _VERDICTS[self.status]

    def as_record(self) -> dict[str, Any]:
        """The row as it stands in tests.json."""
        return {
            "name": self.name,
            "group": self.group,
            "suite": list(self.suite),
            "status": self.status.value,
            "raw_status": self.raw_status,
            "message": self.message,
            "duration": self.duration,
            "retries": self.retries,
            "merged": self.merged,
            "flaky": self.flaky,
            "results": list(self.results),
        }


@dataclass(frozen=True)
class Suite:
    """A JUnit suite: its attributes `tests`, `failures`, `errors`, `skipped` as declared, and its rows as counted."""

    path: tuple[str, ...]
    declared: Mapping[str, int]
    own_rows: int
    all_rows: int


@dataclass(frozen=True)
class CaseCounts:
    """Tests by identity: each is of one kind, `mixed` where its rows differ. `duplicates` have more than one row."""

    rows: int
    identities: int
    all_pass: int
    all_fail: int
    all_skip: int
    all_other: int
    mixed: int
    last_row_fails: int
    duplicates: int

    @property
    def ran(self) -> bool:
        """Whether any test was more than skipped."""
        return self.identities > self.all_skip

    def as_record(self) -> dict[str, int]:
        """The counts by name."""
        return dict(vars(self))


@dataclass(frozen=True)
class Report:
    """A report that could be read.

    Args:
        source: its format.
        tool: the name that the report gives, if any.
        rows: every row, in the order of the file.
        declared: totals that the report states itself, as stated, never added twice.
        duration_unit: "s" or "ms", of every row.
        coarse: rows stand for several tests each, so that a test's outcome cannot be told from them.
        suites: of a JUnit report, in the order of the file.
        disclosures: what a reader of its numbers must know, one sentence each.
    """

    source: Source
    tool: str | None
    rows: tuple[Row, ...]
    declared: Mapping[str, int]
    duration_unit: str
    coarse: bool = False
    suites: tuple[Suite, ...] = ()
    disclosures: tuple[str, ...] = ()

    def identity(self, row: Row) -> Identity:
        """What makes a row's test: (classname, name) in JUnit, (suite, file, name) in CTRF."""
        if self.source is Source.JUNIT:
            return (row.group, row.name)
        return (row.suite, row.group, row.name)

    def by_identity(self) -> dict[Identity, list[Row]]:
        """Rows of each test, in the order of the file."""
        tests: dict[Identity, list[Row]] = {}
        for row in self.rows:
            tests.setdefault(self.identity(row), []).append(row)
        return tests

    def statuses(self) -> Counter[Status]:
        """Rows by status."""
        return Counter(row.status for row in self.rows)

    def counts(self) -> CaseCounts:
        """Tests counted by identity."""
        tests = self.by_identity().values()
        kinds = [{row.verdict for row in rows} for rows in tests]
        alike = Counter(next(iter(kind)) for kind in kinds if len(kind) == 1)
        return CaseCounts(
            rows=len(self.rows),
            identities=len(kinds),
            all_pass=alike[Verdict.PASS],
            all_fail=alike[Verdict.FAIL],
            all_skip=alike[Verdict.SKIP],
            all_other=alike[Verdict.OTHER],
            mixed=sum(len(kind) > 1 for kind in kinds),
            last_row_fails=sum(rows[-1].verdict is Verdict.FAIL for rows in tests),
            duplicates=sum(len(rows) > 1 for rows in tests),
        )


def duplicate_disclosure(report_rows: int, identities: int, duplicates: int) -> tuple[str, ...]:
    """The sentence on identities that stand more than once, if any do."""
    if not duplicates:
        return ()
    return (
        f"{duplicates} test identities stand more than once ({report_rows} rows, {identities} tests): "
        "all rows are kept, and counting is by identity",
    )


def declared_disclosures(declared: Mapping[str, int], counted: Mapping[str, int]) -> tuple[str, ...]:
    """One sentence for each total that the report states and that its rows do not bear out."""
    return tuple(
        f"the report declares {name} = {stated}, its rows make {counted[name]}"
        for name, stated in sorted(declared.items())
        if name in counted and stated != counted[name]
    )
