"""tests.json: each test once, with what each report says of it.

Reports are joined by a test's full name. A pytest node id (`tests/test_a.py::TestB::test_c[1 + 1]`) and the JUnit
pair that pytest makes of it (`tests.test_a.TestB`, `test_c[1 + 1]`) are the same name. A test that stands in one
report only is `not_reported` in the other: reporters leave tests out and fold them, so absence is no failure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from proctor.core.refusal import Refusal
from proctor.grading.reports import Report, Row, Source, Verdict
from proctor.grading.verdicts import ReportRead, Verdicts

NOT_REPORTED = "not_reported"


@dataclass
class Joined:
    """One test's rows in each report, in the order of the file."""

    ctrf: list[Row] = field(default_factory=list)
    junit: list[Row] = field(default_factory=list)

    @property
    def name(self) -> str | None:
        """The full name: CTRF's, or JUnit's as `classname::name`; None where a report has no name at all."""
        if self.ctrf:
            return self.ctrf[0].name
        row = self.junit[0]
        parts = [part for part in (row.group, row.name) if part is not None]
        return "::".join(parts) if parts else None


def per_test_record(verdicts: Verdicts) -> dict[str, Any]:
    """The content of tests.json.

    `reports` has one object for each of ctrf and junit: `available` and either `reason` and `detail`, or `tool`,
    `duration_unit`, `coarse`, `declared` (totals as stated), `counts` (by identity) and `disclosures`. `tests` has
    one object for each full name, in the order of the CTRF report and then of what only JUnit has: `name`, and
    under `ctrf` and `junit` the rows of that test, or "not_reported", or null where there is no such report.
    """
    ctrf, junit = (read if isinstance(read, Report) else None for read in (verdicts.ctrf, verdicts.junit))
    return {
        "reports": {"ctrf": _report_record(verdicts.ctrf), "junit": _report_record(verdicts.junit)},
        "tests": [
            {
                "name": test.name,
                "ctrf": None if ctrf is None else _rows_record(test.ctrf),
                "junit": None if junit is None else _rows_record(test.junit),
            }
            for test in join(ctrf, junit)
        ],
    }


def join(ctrf: Report | None, junit: Report | None) -> list[Joined]:
    """Tests of both reports by full name: CTRF's in its order, then those that only JUnit has in its order."""
    joined: dict[tuple[str | None, str | None], Joined] = {}
    for row in ctrf.rows if ctrf else ():
        joined.setdefault(_ctrf_key(row), Joined()).ctrf.append(row)
    for row in junit.rows if junit else ():
        joined.setdefault((row.group, row.name), Joined()).junit.append(row)
    return list(joined.values())


def conflicts(ctrf: Report, junit: Report) -> int:
    """How many tests pass in one report and fail in the other, by the last row of each."""
    both = (test for test in join(ctrf, junit) if test.ctrf and test.junit)
    return sum({test.ctrf[-1].verdict, test.junit[-1].verdict} == {Verdict.PASS, Verdict.FAIL} for test in both)


def _ctrf_key(row: Row) -> tuple[str | None, str | None]:
    address, bracket, parameters = (row.name or "").partition("[")
    path, *inner = address.split("::")
    if path.endswith(".py") and inner:
        module = path.removesuffix(".py").replace("/", ".")
        return (".".join([module, *inner[:-1]]), inner[-1] + bracket + parameters)
    return (".".join(row.suite) or None, row.name)


def _report_record(read: ReportRead) -> dict[str, Any]:
    if isinstance(read, Refusal):
        return {"available": False, "reason": read.reason.id, "detail": read.message}
    record: dict[str, Any] = {
        "available": True,
        "tool": read.tool,
        "duration_unit": read.duration_unit,
        "coarse": read.coarse,
        "declared": dict(read.declared),
        "counts": read.counts().as_record(),
        "disclosures": list(read.disclosures),
    }
    if read.source is Source.JUNIT:
        record["suites"] = [
            {
                "path": list(suite.path),
                "declared": dict(suite.declared),
                "own_rows": suite.own_rows,
                "all_rows": suite.all_rows,
            }
            for suite in read.suites
        ]
    return record


def _rows_record(rows: list[Row]) -> list[dict[str, Any]] | str:
    return [row.as_record() for row in rows] if rows else NOT_REPORTED
