"""Reading CTRF: `results.tests[]`, with the older dialect of pytest-json-ctrf told apart.

The older dialect (0.3.x, pinned by many task verifiers) writes one row for each test *function*, whatever its
parameters, counts the folded results in `retries`, and writes seconds. It is known by `file_path` or `raw_status`,
which the format itself spells `filePath` and `rawStatus`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from proctor.core import strictjson
from proctor.core.canonical import MAX_SAFE_INTEGER
from proctor.core.reasons import Reason
from proctor.core.refusal import Refusal
from proctor.grading.decoding import MENDED, mend_json, without_bom
from proctor.grading.files import MAX_REPORT_BYTES, MAX_REPORT_ROWS
from proctor.grading.reports import (
    CaseCounts,
    Report,
    Row,
    Source,
    Status,
    declared_disclosures,
    duplicate_disclosure,
)

_MAX_DEPTH = 128
_STATUSES: Mapping[str, Status] = {
    status.value: status for status in (Status.PASSED, Status.FAILED, Status.SKIPPED, Status.PENDING, Status.OTHER)
}


def read_ctrf(data: bytes) -> Report:
    """Read a CTRF report of at most `MAX_REPORT_BYTES` and `MAX_REPORT_ROWS`.

    Raises:
        Refusal: `report_unreadable` where the bytes are not strict JSON within bounds, `report_unknown` where they
            are JSON without a list `results.tests`.
    """
    document, mended = _document(data)
    results = document.get("results") if isinstance(document, dict) else None
    tests = results.get("tests") if isinstance(results, dict) else None
    if not isinstance(results, dict) or not isinstance(tests, list):
        raise Refusal(Reason.REPORT_UNKNOWN, "the JSON has no list results.tests", required="results.tests[]")
    if len(tests) > MAX_REPORT_ROWS:
        raise Refusal(
            Reason.REPORT_UNREADABLE,
            "the report has too many rows",
            observed={"rows": len(tests)},
            required={"rows": MAX_REPORT_ROWS},
        )
    folds = any(isinstance(test, dict) and ("file_path" in test or "raw_status" in test) for test in tests)
    rows = tuple(_row(test, folds) for test in tests)
    tool = results.get("tool")
    name = tool.get("name") if isinstance(tool, dict) else None
    declared = _declared(results.get("summary"))
    report = Report(
        source=Source.CTRF,
        tool=name if isinstance(name, str) else None,
        rows=rows,
        declared=declared,
        duration_unit="s" if folds else "ms",
        coarse=any(row.merged for row in rows),
    )
    return _disclosed(report, tests, mended)


def _document(data: bytes) -> tuple[Any, bool]:
    data = without_bom(data)
    try:
        return strictjson.loads(data, max_bytes=MAX_REPORT_BYTES, max_depth=_MAX_DEPTH), False
    except Refusal as refusal:
        first = refusal
    mended = mend_json(data)
    if mended != data:
        try:
            return strictjson.loads(mended, max_bytes=2 * MAX_REPORT_BYTES, max_depth=_MAX_DEPTH), True
        except Refusal as refusal:
            first = refusal
    raise Refusal(Reason.REPORT_UNREADABLE, first.message, observed=first.observed, required=first.required) from first


def _row(test: Any, folds: bool) -> Row:
    if not isinstance(test, dict):
        return Row(name=None, group=None, suite=(), status=Status.OTHER, raw_status=type(test).__name__)
    written = _text(test.get("status"))
    status = _STATUSES.get(written or "", Status.OTHER)
    own_word = _text(test.get("rawStatus")) or _text(test.get("raw_status"))
    retries = _count(test.get("retries"))
    return Row(
        name=_text(test.get("name")),
        group=_text(test.get("filePath")) or _text(test.get("file_path")),
        suite=_suite(test.get("suite")),
        status=status,
        raw_status=own_word if own_word is not None or written in _STATUSES else written,
        message=_text(test.get("message")),
        duration=_duration(test.get("duration")),
        retries=None if folds else retries,
        merged=retries if folds else None,
        flaky=test.get("flaky") is True,
    )


def _suite(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(part for part in value if isinstance(part, str)) if isinstance(value, list) else ()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: Any) -> int | None:
    usable = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_SAFE_INTEGER
    return value if usable else None


def _duration(value: Any) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, float) or abs(value) <= MAX_SAFE_INTEGER else float(value)


def _declared(summary: Any) -> dict[str, int]:
    names = ("tests", *_STATUSES)
    found = {name: _count(summary.get(name)) for name in names} if isinstance(summary, dict) else {}
    return {name: count for name, count in found.items() if count is not None}


def _disclosed(report: Report, tests: list[Any], mended: bool) -> Report:
    counts: CaseCounts = report.counts()
    statuses = report.statuses()
    counted = {"tests": len(report.rows)} | {name: statuses[status] for name, status in _STATUSES.items()}
    said = [*declared_disclosures(report.declared, counted)]
    said += duplicate_disclosure(counts.rows, counts.identities, counts.duplicates)
    if report.coarse:
        merged = sum(row.merged or 0 for row in report.rows)
        said.append(
            f"the reporter writes one row for each test function: {merged} further results (parameters or reruns) "
            f"are folded into {sum(bool(row.merged) for row in report.rows)} of {len(report.rows)} rows, so outcomes "
            "of single tests are coarse"
        )
    unknown = sum(not isinstance(test, dict) or _text(test.get("status")) not in _STATUSES for test in tests)
    if unknown:
        said.append(f"{unknown} rows have a status that the format does not know; they are kept as other")
    nameless = sum(row.name is None for row in report.rows)
    if nameless:
        said.append(f"{nameless} rows have no name")
    if mended:
        said.append(MENDED)
    return replace(report, disclosures=tuple(said))
